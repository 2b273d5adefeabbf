/* Inputs that a submit does not wait for: a stage's objects in S3, listed page by page in the
 * background by droverd's listings, whose thread's looks are events here. Pages are refused, the
 * thread's COMMIT fails or its answer is lost, leaders change in the middle, people cancel. What
 * must hold (I17): a listed stage has one part for each object, in their order, and none else. */
#include "api/handlers/listings.h"
#include "core/spec/spec.h"
#include "deep.h"
#include "store/api/input_listings.h"
#include <stdio.h>

#define PAGE_MAX     4 /* keys: a few pages a listing */
#define OTHER_IN_KEY 3 /* one object in so many matches no pattern */

/* The i-th key below the prefix, spread as hashes are; in the order of i. */
static void key_of(const char *prefix, int64_t i, int64_t n, char out[static 128])
{
    uint64_t place = (uint64_t)(i * (UINT32_MAX / (n + 1)) + (i * 7919) % 4096);
    (void)snprintf(out, 128, "%s%08llx.%s", prefix, (unsigned long long)place,
                   i % OTHER_IN_KEY == OTHER_IN_KEY - 1 ? "txt" : "bin");
}

/* "listed/<objects>/<number>/": how many there are. */
static int64_t objects_of(const char *prefix)
{
    long long n = 0;
    return sscanf(prefix, "listed/%lld/", &n) == 1 ? n : 0;
}

static struct rng *draws(void)
{
    return &deep->rng_listings;
}

/* A world in six has some. Drawn from a stream of its own, as deep_poison.c does. */
void listing_draw(void)
{
    if (deep->listings) {
        deep->listing_strength = 0.05 + 0.95 * rng_unit(draws()) * rng_unit(draws());
    }
}

bool listing_pattern(struct buf *b)
{
    bool listed = deep->listing_strength > 0 && rng_chance(draws(), 0.7);
    if (listed) {
        buf_addf(b, "s3://bbb/listed/%lld/%d/*.bin", (long long)between(draws(), 2, 18),
                 ++deep->listings_n);
    }
    return listed;
}

bool listing_happens(double most)
{
    return !deep->calm && deep->listing_strength > 0 &&
           rng_chance(draws(), most * deep->listing_strength);
}

void listing_page(const struct s3_uri *u, const char *after, const char *token,
                  struct s3_result *ret)
{
    if (strncmp(u->key, "out/", 4) == 0) { /* what a job has left is counted */
        s3_answer_list(u, ret);
        return;
    }
    int64_t n = objects_of(u->key), from = 0;
    int most = (int)between(draws(), 1, PAGE_MAX);
    struct s3_listing *l = xcalloc(1, sizeof *l);
    l->objects = xcalloc((size_t)most, sizeof *l->objects);
    const char *behind = token != NULL ? token : after;
    for (; from < n; from++) {
        char key[128];
        key_of(u->key, from, n, key);
        if (strcmp(key, behind) > 0) {
            break;
        }
    }
    if (rng_chance(draws(), 0.1)) { /* a page without a key, as S3 may give */
        most = 0;
    }
    for (; from < n && l->n < (size_t)most; from++) {
        char key[128];
        key_of(u->key, from, n, key);
        l->objects[l->n++] = (struct s3_object){
            .key = xstrdup(key), .etag = xstrdup("e"), .size = 1000 * (from + 1)};
    }
    *ret = (struct s3_result){.outcome = AWS_OK, .status = 200, .listing = l};
    if (from < n) {
        ret->next_token = l->n > 0 ? l->objects[l->n - 1].key : xstrdup(behind);
    }
}

/* The number of a stage's parts. */
int64_t listing_parts(const char *uri)
{
    const char *prefix = uri + strlen("s3://bbb/");
    int64_t n = objects_of(prefix);
    return n - n / OTHER_IN_KEY;
}

static bool under_way(void)
{
    return sql_asked_i64("listing_open",
                         "SELECT count(*) FROM input_listing WHERE state = 'running'", NULL) > 0;
}

/* A look of the thread of p, as it leads; its process is neither gone nor frozen. */
static void look(struct proc *p)
{
    struct err err = ERR_INIT;
    if (p->listings_life != p->life) { /* those of a dead process are gone with it */
        p->listings_life = p->life;
        p->listings = listings_new(p->bridge);
    }
    if (!atomic_load(&p->status.leading)) {
        listings_let_go(p->listings);
        return;
    }
    deep->listing_breaks = listing_happens(0.3)   ? LISTING_COMMIT_FAILS
                           : listing_happens(0.3) ? LISTING_ANSWER_LOST
                                                  : LISTING_GOOD;
    if (!listings_look(p->listings, deep->api, &err)) {
        trace("a look at the listings of droverd %d fails: %s", p->id, err.message);
    }
    deep->listing_breaks = LISTING_GOOD;
    loop_ready(p->loop, bridge_fd(p->bridge));
}

static void looks(void *ctx, int64_t arg)
{
    for (int i = 0; i < deep->procs_n && deep->now_us >= deep->db_down_until_us; i++) {
        struct proc *p = &deep->procs[i];
        if (p->up && !p->stop && p->bridge != NULL && deep->now_us >= p->frozen_until_us) {
            look(p);
        }
    }
    if (listing_happens(0.05)) {
        people_cancel(&deep->campaigns[rng_below(draws(), (uint64_t)deep->campaigns_n)]);
    }
    if (listing_happens(0.1)) {
        proc_kill(&deep->procs[rng_below(draws(), (uint64_t)deep->procs_n)]);
    }
    deep->listing_looks = under_way();
    if (deep->listing_looks) {
        event_at(deep->now_us + between(draws(), 250, 8000) * 1000, looks, ctx, arg);
    }
}

void listing_begin(void)
{
    if (!deep->listing_looks) {
        deep->listing_looks = true;
        event_at(deep->now_us + between(draws(), 1, 250) * 1000, looks, NULL, 0);
    }
}

/* The parts of a listed stage, or none as long as it is not. */
static void check_stage(int64_t stage_id, const char *uri, bool done)
{
    const char *prefix = uri + strlen("s3://bbb/");
    int64_t n = objects_of(prefix), part = 0;
    char folder[96];
    (void)snprintf(folder, sizeof folder, "%.*s", (int)strcspn(prefix, "*"), prefix);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, stage_id);
    AUTO_RESULT PGresult *r = sql_asked(
        "listing_tasks", "SELECT uri, seq, size FROM task WHERE stage_id = $1 ORDER BY seq", &p);
    for (int64_t i = 0; i < n && done; i++) {
        char key[128], want[160];
        key_of(folder, i, n, key);
        if (i % OTHER_IN_KEY == OTHER_IN_KEY - 1) {
            continue;
        }
        (void)snprintf(want, sizeof want, "s3://bbb/%s", key);
        if (part >= row_count(r) || strcmp(row_text(r, (int)part, 0), want) != 0 ||
            row_int(r, (int)part, 1) != part || row_i64(r, (int)part, 2) != 1000 * (i + 1)) {
            wrong("I17", "part %lld of stage %lld is not %s", (long long)part, (long long)stage_id,
                  want);
            return;
        }
        part++;
    }
    if (row_count(r) != part) {
        wrong("I17", "stage %lld has %d parts, of %lld objects", (long long)stage_id, row_count(r),
              (long long)part);
    }
}

/* Nothing of a campaign starts before all its inputs are known. */
void judge_listed(const struct job *j)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, j->campaign_id);
    if (deep->listings_n > 0 &&
        sql_asked_i64("judge_listed",
                      "SELECT count(*) FROM input_listing WHERE campaign_id = $1 AND state = "
                      "'running'",
                      &p) > 0) {
        wrong("I17", "%s is started while an input of its campaign is being listed", j->name);
    }
}

void judge_listings(void)
{
    if (deep->listings_n == 0) {
        return;
    }
    AUTO_RESULT PGresult *r = sql_asked(
        "judge_listings",
        "SELECT stage_id, uri, state = 'done', state = 'failed', campaign_id FROM input_listing i "
        "WHERE NOT EXISTS (SELECT FROM archive h WHERE h.campaign_id = i.campaign_id)",
        NULL);
    for (int i = 0; i < row_count(r); i++) {
        if (row_bool(r, i, 3)) {
            wrong("I17", "the listing of %s has failed", row_text(r, i, 1));
        }
        const struct campaign *c = campaign_find(row_i64(r, i, 4));
        if (c != NULL && !poison_keeps(c)) { /* no part of it is gone */
            check_stage(row_i64(r, i, 0), row_text(r, i, 1), row_bool(r, i, 2));
        }
    }
}
