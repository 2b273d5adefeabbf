/* People who wait for what is seldom, in worlds where they ask anything (deep_verbs.c): whenever
 * the state of a campaign or of a stage moves they look, and ask one verb after the other of those
 * that are in states that few worlds show. When all has ended they archive it. */
#include "deep_verbs.h"
#include "store/pg/tx.h"
#include <stdio.h>

#define ASKS_MAX    120 /* a world; each asks for statements of its own */
#define ASKS_A_LOOK 6
#define GONE_US     (12 * HOUR) /* by then all rows of what is archived are */
#define LOOK_US     (2 * MINUTE)
#define COMMON      0.04 /* of a running or cancelled campaign: the others ask that, too */
#define SELDOM      0.7
#define CANCELS     0.3 /* few live on after it */
/* Rows of the table beside the states. */
#define CANCELLING CAMPAIGN_STATE_COUNT
#define GATED      (CAMPAIGN_STATE_COUNT + 1)
#define ARCHIVED   (CAMPAIGN_STATE_COUNT + 2)

/* Which states of a stage a campaign can show. Nothing of one that ended is open; stages are
 * cancelled with their campaign only; what is planned has not begun. */
#define OPEN      (1 << STAGE_BLOCKED | 1 << STAGE_RUNNING | 1 << STAGE_HELD)
#define DONE      (1 << STAGE_SUCCEEDED | 1 << STAGE_SKIPPED)
#define FAILED    (1 << STAGE_FAILED)
#define CANCELLED (1 << STAGE_CANCELLED)
static const int shows[VERBS_CAMPAIGNS] = {
    [CAMPAIGN_PLANNED] = 1 << STAGE_BLOCKED,
    [CAMPAIGN_RUNNING] = OPEN | DONE | FAILED,
    [CAMPAIGN_DRAINING] = OPEN | DONE | FAILED,
    [CAMPAIGN_PAUSED] = OPEN | DONE | FAILED,
    [CAMPAIGN_HELD] = OPEN | DONE | FAILED,
    [CAMPAIGN_SUCCEEDED] =
        1 << STAGE_SUCCEEDED, /* a skipped one waits again when its need is met */
    [CAMPAIGN_FAILED] = DONE | FAILED,
    [CAMPAIGN_CANCELLED] = DONE | FAILED | CANCELLED,
    [CANCELLING] = OPEN | DONE | FAILED | CANCELLED,
    [GATED] = OPEN | DONE | FAILED,
    [ARCHIVED] = DONE | FAILED | CANCELLED,
};

bool seldom_can_be(size_t row, size_t stage)
{
    return (shows[row] >> stage & 1) != 0;
}

static struct {
    bool moved, at_end;
    int asks;
    int next[VERBS_CAMPAIGNS][STAGE_STATE_COUNT]; /* the verb to ask, and how many were */
    int asked[VERBS_CAMPAIGNS][STAGE_STATE_COUNT];
} seen;

static struct rng *draws(void)
{
    return &deep->rng_operators;
}

void seldom_start(void)
{
    memset(&seen, 0, sizeof seen);
    for (int c = 0; c < VERBS_CAMPAIGNS && deep->operators; c++) {
        for (int s = 0; s < STAGE_STATE_COUNT; s++) {
            seen.next[c][s] = (int)rng_below(draws(), VERB_COUNT);
        }
    }
}

void seldom_moved(const char *statement)
{
    seen.moved |= strcmp(statement, "campaign_state") == 0 || strcmp(statement, "stage_state") == 0;
}

bool seldom_at_end(void)
{
    return seen.at_end;
}

struct pair {
    struct campaign *campaign;
    int64_t stage_id;
    size_t row, stage;
};

/* The row of the table that a campaign is in: of one that is wanted to run a gate may hold it. */
static size_t row_of(const struct campaign *c, const char *state, const char *wanted)
{
    struct apidb_wish now = {.state = campaign_state_parse(state), .wanted = wanted_parse(wanted)};
    bool asks =
        c != NULL && deep->now_us >= deep->db_down_until_us && !campaign_state_terminal(now.state);
    return asks ? verbs_row(c, &now) : (size_t)now.state;
}

/* Of the pairs of states that exist now, one that was asked about least. */
static bool least_asked(struct pair *ret)
{
    AUTO_RESULT PGresult *r = sql_asked(
        "seldom_pairs",
        "SELECT n.campaign_id, n.stage_id, n.state, r.state, c.wanted FROM stage_run n JOIN "
        "campaign_run r ON r.campaign_id = n.campaign_id JOIN campaign c ON c.id = n.campaign_id "
        "ORDER BY n.campaign_id, n.stage_id",
        NULL);
    int least = VERB_COUNT;
    size_t row = 0;
    for (int i = 0; i < row_count(r); i++) {
        struct campaign *c = campaign_find(row_i64(r, i, 0));
        if (i == 0 || row_i64(r, i, 0) != row_i64(r, i - 1, 0)) {
            row = row_of(c, row_text(r, i, 3), row_text(r, i, 4));
        }
        size_t stage = (size_t)stage_state_parse(row_text(r, i, 2));
        if (c != NULL && !seldom_can_be(row, stage)) {
            wrong("I7", "c-%lld is %s and a stage of it is %s", (long long)c->id, row_text(r, i, 3),
                  row_text(r, i, 2));
        }
        if (c != NULL && seen.asked[row][stage] < least) {
            least = seen.asked[row][stage];
            *ret = (struct pair){c, row_i64(r, i, 1), row, stage};
        }
    }
    return least < VERB_COUNT;
}

static void ask(const struct pair *p)
{
    enum verb v = (enum verb)seen.next[p->row][p->stage];
    seen.next[p->row][p->stage] = (seen.next[p->row][p->stage] + 1) % VERB_COUNT;
    seen.asked[p->row][p->stage]++;
    seen.asks++;
    if (v != VERB_CANCEL || rng_chance(draws(), CANCELS)) {
        (void)verbs_ask(p->campaign, v, p->stage_id);
    }
}

void seldom_between(void)
{
    struct pair p;
    if (!deep->operators || !seen.moved || seen.asks >= ASKS_MAX ||
        deep->now_us >= deep->calm_us + 2 * HOUR) {
        return;
    }
    seen.moved = false;
    for (int n = 0; n < ASKS_A_LOOK && least_asked(&p); n++) {
        bool common = p.row == CAMPAIGN_RUNNING || p.row == CAMPAIGN_CANCELLED;
        if (rng_chance(draws(), common ? COMMON : SELDOM)) {
            ask(&p);
        }
    }
}

static int64_t rows_left(void)
{
    return sql_i64(0, "SELECT (SELECT count(*) FROM task) + (SELECT count(*) FROM task_run) + "
                      "(SELECT count(*) FROM attempt) + (SELECT count(*) FROM pool)");
}

/* What is archived is refused all, but to be archived. */
static void ask_all(struct campaign *c)
{
    for (int v = 0; v < VERB_COUNT && !deep->wrong; v++) {
        if (verbs_ask(c, (enum verb)v, 0) && v != VERB_ARCHIVE) {
            wrong("I10", "%s of c-%lld is carried out, which is archived", verb_name((enum verb)v),
                  (long long)c->id);
        }
    }
}

/* A row is mended with what was kept of it, which would come back after its campaign has gone. */
static bool is_spoiled(const struct campaign *c)
{
    for (int i = 0; i < deep->poisons_n; i++) {
        if (deep->poison[i].campaign_id == c->id && !deep->poison[i].mended) {
            return true;
        }
    }
    return false;
}

/* Those that nothing hinders any more, say the log of a job that is still read. How many were
 * never submitted or are archived. */
static int archive_all(bool done[static CAMPAIGNS_MAX])
{
    int n = 0;
    for (int i = 0; i < deep->campaigns_n; i++) {
        struct campaign *c = &deep->campaigns[i];
        if (!done[i] && c->id > 0 && !is_spoiled(c) && verbs_ask(c, VERB_ARCHIVE, 0)) {
            done[i] = true;
            ask_all(c);
        }
        n += done[i] || c->id == 0;
    }
    return n;
}

void seldom_end(void)
{
    bool done[CAMPAIGNS_MAX] = {false};
    int64_t until_us = MAX(deep->now_us, deep->db_down_until_us) + GONE_US;
    int64_t left = 1;
    if (!deep->operators || deep->days > 0) {
        return;
    }
    seen.at_end = true;
    for (int64_t next_us = 0; !deep->wrong && left > 0 && event_next();) {
        if (deep->now_us >= next_us) {
            next_us = deep->now_us + LOOK_US;
            figures_archive();
            left = archive_all(done) < deep->campaigns_n ? 1 : rows_left();
        }
        if (deep->now_us >= until_us) {
            wrong("I18", "every campaign is archived, and %lld rows are left after %d hours",
                  (long long)left, (int)(GONE_US / HOUR));
        }
    }
    for (int i = 0; i < deep->campaigns_n && !deep->wrong; i++) {
        if (done[i]) {
            ask_all(&deep->campaigns[i]);
        }
    }
}
