/* People who ask anything at any time: retry and skip of a campaign or of one stage, pause,
 * resume, drain, cancel and the end of a stray, of what has just been submitted, is being
 * cancelled, is held by a gate or has long ended. Only some worlds have such people, who hold
 * and release parts, too, and wait for what is seldom (deep_seldom.c). What is carried out and
 * what is refused core/leader/verbs.h says, to them as to the API; what must hold is what all
 * others judge. Cells of its table that were met are counted. */
#include "deep_verbs.h"
#include "store/api/archive.h"
#include "store/api/operations.h"
#include "store/api/strays.h"
#include "store/pg/tx.h"
#include <stdio.h>

#define CALM_US (2 * HOUR)

static struct verb_cells met; /* by this world */

static struct rng *draws(void)
{
    return &deep->rng_operators;
}

bool verbs_allow(enum verb verb, const struct apidb_wish *now, struct err *err)
{
    enum verb_answer a =
        now->archived ? verb_answer_archived(verb) : verb_answer_any(verb, now->state, now->wanted);
    return !verb_refused(a) || err_set(err, ERR_CONFLICT, "%s", verb_refusal(a));
}

size_t verbs_row(const struct campaign *c, const struct apidb_wish *now)
{
    struct apidb_gate gate = {0};
    struct err err;
    if (now->archived) {
        return CAMPAIGN_STATE_COUNT + 2;
    }
    if (now->wanted == WANTED_CANCEL && !campaign_state_terminal(now->state)) {
        return CAMPAIGN_STATE_COUNT;
    }
    bool gated = now->wanted == WANTED_RUN && apidb_campaign_gate(deep->api, c->id, &gate, &err) &&
                 gate.held;
    return gated ? CAMPAIGN_STATE_COUNT + 1 : (size_t)now->state;
}

void verbs_met(const struct campaign *c, enum verb verb, const struct apidb_wish *now,
               int64_t stage_id)
{
    if (!deep->operators) {
        return;
    }
    size_t at = verbs_row(c, now);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, c->id);
    param_i64(&p, stage_id);
    AUTO_RESULT PGresult *r = sql_asked(
        "verbs_met",
        "SELECT state FROM stage_run WHERE campaign_id = $1 AND ($2 = 0 OR stage_id = $2)", &p);
    for (int i = 0; i < row_count(r); i++) {
        met.met[verb][at][stage_state_parse(row_text(r, i, 0))] = true;
    }
}

/* One stage, by the name that a person would write; false: all. wanted_id: this one, 0: any. */
static bool some_stage(const struct campaign *c, int64_t wanted_id, int64_t *ret_id,
                       enum stage_state *ret_state, char ret_json[static 128])
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, c->id);
    param_i64(&p, wanted_id);
    AUTO_RESULT PGresult *r =
        sql_asked("verbs_stages",
                  "SELECT s.id, s.name, n.state FROM stage s JOIN stage_run n ON n.stage_id = s.id "
                  "WHERE s.campaign_id = $1 AND ($2 = 0 OR s.id = $2) ORDER BY s.seq",
                  &p);
    *ret_id = 0;
    (void)snprintf(ret_json, 128, "{}");
    if (row_count(r) == 0 || (wanted_id == 0 && rng_chance(draws(), 0.3))) {
        return false;
    }
    int at = (int)rng_below(draws(), (uint64_t)row_count(r));
    *ret_id = row_i64(r, at, 0);
    *ret_state = stage_state_parse(row_text(r, at, 2));
    (void)snprintf(ret_json, 128, "{\"stage\": \"%s\"}", row_text(r, at, 1));
    return true;
}

/* As api/handlers/bulk_changes.c does. */
static bool parts(struct campaign *c, enum verb verb, int64_t stage_id, char json[static 128],
                  struct err *err)
{
    struct apidb_selector sel = {.campaign_id = c->id};
    struct apidb_match m = {.sample = BUF_INIT(4096)};
    enum stage_state state = STAGE_RUNNING; /* refused there: refused for all */
    AUTO_TX struct store *tx = deep->api;
    struct apidb_wish now;
    int64_t id;
    if (!tx_begin(tx, TX_WRITE, err) || !apidb_campaign_lock(tx, c->id, &now, err)) {
        return false;
    }
    (void)some_stage(c, stage_id, &sel.stage_id, &state, json);
    verbs_met(c, verb, &now, sel.stage_id);
    enum verb_answer a =
        now.archived ? verb_answer_archived(verb) : verb_answer(verb, now.state, now.wanted, state);
    if (verb_refused(a)) {
        return err_set(err, ERR_CONFLICT, "%s", verb_refusal(a));
    }
    bool late = now.wanted == WANTED_CANCEL && campaign_state_terminal(now.state);
    bool ok = (!late || apidb_campaign_want(tx, c->id, WANTED_RUN, err)) &&
              (verb == VERB_RETRY || verb == VERB_SKIP
                   ? apidb_retry_count(tx, &sel, &m, err)
                   : apidb_hold_count(tx, &sel, verb_parts_from(verb), &m, err)) &&
              apidb_operation_insert(tx, c->id, verb_name(verb), json, "{}", m.parts, "people", &id,
                                     err) &&
              apidb_notify(tx, err) && tx_commit(tx, err);
    buf_done(&m.sample);
    c->skips |= ok && verb == VERB_SKIP;
    return ok;
}

/* It was let go by people, so it ends: as soon as a leader that nothing disturbs sees it. */
static void look(void *ctx, int64_t since_us)
{
    const struct job *j = ctx;
    int64_t most_us = 2 * deep->observe_us + MINUTE, from_us = MAX(since_us, quiet_since());
    if (j->over || j->stop_asked || deep->restored_us > since_us) {
        return;
    }
    if (deep->now_us - from_us > most_us) {
        wrong("I8", "people stop the stray %s, and it goes on for %lld s", j->name,
              (long long)((deep->now_us - from_us) / SEC));
        return;
    }
    event_at(MAX(from_us + most_us, deep->now_us) + SEC, look, ctx, since_us);
}

/* As api/handlers/strays.c does. False: there is none. */
static bool stop_stray(void)
{
    struct err err = ERR_INIT;
    AUTO_RESULT PGresult *r =
        sql_asked("verbs_stray",
                  "SELECT name FROM stray WHERE holds ORDER BY name COLLATE \"C\" LIMIT 1", NULL);
    struct job *j = row_count(r) > 0 ? job_find(row_text(r, 0, 0)) : NULL;
    if (j == NULL) {
        return false;
    }
    AUTO_TX struct store *tx = deep->api;
    bool ok = tx_begin(tx, TX_WRITE, &err) && apidb_stray_stop(tx, j->name, &err) &&
              apidb_notify(tx, &err) && tx_commit(tx, &err);
    trace("people stop the stray %s%s%s", j->name, ok ? "" : ": ", ok ? "" : err.message);
    if (ok) {
        j->let_end = true;
        event_at(deep->now_us + SEC, look, j, deep->now_us);
    }
    return true;
}

/* As api/handlers/archive.c does. Of what has ended only when all has: what is archived the other
 * judges cannot see. */
static bool archive(struct campaign *c, struct err *err)
{
    AUTO_TX struct store *tx = deep->api;
    AUTO_BUF struct buf why = BUF_INIT(1024);
    AUTO_BUF struct buf folder = BUF_INIT(1024);
    struct apidb_wish now;
    bool asked;
    if (!tx_begin(tx, TX_WRITE, err) || !apidb_campaign_lock(tx, c->id, &now, err)) {
        return false;
    }
    bool ended = campaign_state_terminal(now.state);
    if (ended && !seldom_at_end()) {
        return true;
    }
    verbs_met(c, VERB_ARCHIVE, &now, 0);
    return verbs_allow(VERB_ARCHIVE, &now, err) && apidb_archive_hindrance(tx, c->id, &why, err) &&
           (why.n == 0 || err_set(err, ERR_CONFLICT, "%s", buf_cstr(&why))) &&
           apidb_archive_ask(tx, c->id, "people", "", &asked, &folder, err) &&
           apidb_notify(tx, err) && tx_commit(tx, err);
}

bool verbs_ask(struct campaign *c, enum verb v, int64_t stage_id)
{
    struct err err = ERR_INIT;
    char json[128] = "";
    if (c->id == 0 || deep->now_us < deep->db_down_until_us) {
        return false;
    }
    bool ok = verb_moves_parts(v) ? parts(c, v, stage_id, json, &err)
              : v == VERB_ARCHIVE ? archive(c, &err)
                                  : people_want(c, v, &err);
    deep->verbs++;
    deep->verbs_refused += !ok;
    trace("people: %s %s of c-%lld%s%s", verb_name(v), json, (long long)c->id, ok ? "" : ": ",
          ok ? "" : err.message);
    return ok;
}

static void ask(struct campaign *c)
{
    static const enum verb some[] = {VERB_RETRY,  VERB_RETRY, VERB_SKIP,    VERB_SKIP,
                                     VERB_HOLD,   VERB_HOLD,  VERB_RELEASE, VERB_PAUSE,
                                     VERB_RESUME, VERB_DRAIN, VERB_CANCEL,  VERB_ARCHIVE};
    enum verb v = some[rng_below(draws(), ARRAY_LEN(some))];
    if (v != VERB_CANCEL || !rng_chance(draws(), 0.85)) { /* few live on after it */
        (void)verbs_ask(c, v, 0);
    }
}

static void ask_later(void *ctx, UNUSED int64_t arg)
{
    ask(ctx);
}

/* What has just begun is soon over: being planned, or cancelled. */
void verbs_soon(struct campaign *c)
{
    if (deep->operators && rng_chance(draws(), 0.6)) {
        event_at(deep->now_us + between(draws(), 0, 30) * SEC, ask_later, c, 0);
    }
}

/* As a rule one in a state that is seldom. */
static struct campaign *some_campaign(void)
{
    AUTO_RESULT PGresult *r = sql_asked(
        "verbs_seldom",
        "SELECT campaign_id FROM campaign_run WHERE state NOT IN ('running', 'cancelled', "
        "'paused') ORDER BY campaign_id",
        NULL);
    int n = row_count(r);
    struct campaign *c = n > 0 && rng_chance(draws(), 0.7)
                             ? campaign_find(row_i64(r, (int)rng_below(draws(), (uint64_t)n), 0))
                             : NULL;
    return c != NULL ? c : &deep->campaigns[rng_below(draws(), (uint64_t)deep->campaigns_n)];
}

/* They go on in the calm, for a while: what has ended then is retried, and must end again. */
static void step(void *ctx, int64_t arg)
{
    if (deep->now_us >= deep->db_down_until_us) {
        struct campaign *c = some_campaign();
        for (int64_t n = between(draws(), 1, 4); n > 0; n--) {
            ask(c);
        }
    }
    if (deep->now_us < deep->calm_us + CALM_US) {
        event_at(deep->now_us + between(draws(), 1, 9) * MINUTE, step, ctx, arg);
    }
}

void verbs_start(void)
{
    if (deep->operators) {
        deep->strength[FAULT_JOB_FAILS] = MAX(deep->strength[FAULT_JOB_FAILS], 0.3);
        event_at(between(draws(), 1, 9) * MINUTE, step, NULL, 0);
    }
}

bool verbs_verb(void)
{
    if (!deep->operators || deep->calm || !rng_chance(draws(), 0.6)) {
        return false;
    }
    struct campaign *c = &deep->campaigns[rng_below(draws(), (uint64_t)deep->campaigns_n)];
    bool stray = deep->now_us >= deep->db_down_until_us && rng_chance(draws(), 0.3) && stop_stray();
    if (!stray) {
        ask(c);
        verbs_soon(c);
    }
    return true;
}

void verbs_add(struct verb_cells *sum, const struct verb_cells *one)
{
    const bool *from = &one->met[0][0][0];
    bool *to = &sum->met[0][0][0];
    for (size_t i = 0; i < sizeof *one / sizeof *from; i++) {
        to[i] = to[i] || from[i];
    }
}

void verbs_take(struct verb_cells *ret)
{
    *ret = met;
    met = (struct verb_cells){0};
}

static const char *campaign_word(int c)
{
    return c < CAMPAIGN_STATE_COUNT        ? campaign_state_name((enum campaign_state)c)
           : c == CAMPAIGN_STATE_COUNT     ? "cancelling"
           : c == CAMPAIGN_STATE_COUNT + 1 ? "gated"
                                           : "archived";
}

bool verbs_tell(const struct verb_cells *sum, int least)
{
    int n = 0, of = 0, can_be = 0;
    for (int v = 0; v < VERB_COUNT; v++) {
        for (int c = 0; c < VERBS_CAMPAIGNS; c++) {
            char rest[128] = "";
            for (int s = 0; s < STAGE_STATE_COUNT; s++) {
                size_t at = strlen(rest);
                bool open = seldom_can_be((size_t)c, (size_t)s) && !sum->met[v][c][s];
                n += sum->met[v][c][s];
                can_be += seldom_can_be((size_t)c, (size_t)s);
                of++;
                (void)snprintf(rest + at, sizeof rest - at, "%s%s", open ? " " : "",
                               open ? stage_state_name((enum stage_state)s) : "");
            }
            if (least >= 0 && rest[0] != '\0') {
                printf("# nobody asked: %s of a %s campaign, stages%s\n", verb_name((enum verb)v),
                       campaign_word(c), rest);
            }
        }
    }
    printf("# %d of %d cells of operation_table.def met; %d can be\n", n, of, can_be);
    if (least >= 0) {
        printf("%s - deep: at least %d cells of operation_table.def are met\n",
               n >= least ? "ok" : "not ok", least);
    }
    return n >= least;
}
