/* What the attempts of a stage teach: how long parts run, which rung has capacity, whether the work
 * can be done at all, how long a start takes. Fed by committed records only, so that a leader which
 * takes over and reads the rows comes to the same mind. */
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"
#include "ctl.h"
#include <stdio.h>

#define FOREIGN_ALIVE_US (600 * USEC_PER_SEC) /* a user's image that lives so long works */
#define PROMISE_MOVED_US                                                                           \
    (30 *                                                                                          \
     USEC_PER_SEC)     /* a smaller change of what is expected is not told                        \
                         */
#define STARTS_KEPT 20 /* start times are averaged over so many */

uint64_t stage_history_signature(enum cause cause, const char *words)
{
    char text[SIGNATURE_MAX + 32];
    uint8_t digest[32];
    uint64_t hash = 0;
    int n = snprintf(text, sizeof text, "%s %s", cause_name(cause), words);
    hash_sha256(text, (size_t)n, digest);
    for (int i = 0; i < 8; i++) {
        hash = hash << 8 | digest[i];
    }
    return hash;
}

static uint32_t size_mb(int64_t size)
{
    return (uint32_t)MIN(size / (1024 * 1024), UINT32_MAX);
}

/* --- the breaker --- */

static void keep_words(struct live_stage *ls, uint64_t hash, const char *words)
{
    for (int i = 0; i < ls->breaker.signatures_n; i++) {
        if (ls->breaker.signature[i].hash == hash && ls->trip_words[i] == NULL) {
            ls->trip_words[i] = xstrdup(words);
        }
    }
}

static void forget_words(struct live_stage *ls)
{
    for (int i = 0; i < BREAKER_OF_MAX; i++) {
        free(ls->trip_words[i]);
        ls->trip_words[i] = NULL;
    }
}

static void breaker_end(struct live_stage *ls, int64_t attempt_id, enum attempt_state state,
                        enum cause cause, const char *words)
{
    bool good = state == ATTEMPT_SUCCEEDED;
    enum cause c = good ? CAUSE_NONE : cause != CAUSE_NONE ? cause : CAUSE_STOPPED;
    bool counts = good || retry_counts(c);
    uint64_t hash = stage_history_signature(c, words);
    bool trips = breaker_ended(&ls->breaker, &ls->rules, attempt_id, c, counts, good ? 0 : hash);
    keep_words(ls, hash, words);
    if (trips) {
        log_event(LOG_WARN, "breaker_tripped", LF_I("stage", ls->row.id),
                  LF_S("cause", cause_name(c)), LF_S("signature", words));
    }
}

static bool load_breaker(struct controller *c, struct live_stage *ls, struct err *err)
{
    AUTO_FREE struct breaker_row *rows = NULL;
    size_t n = 0;
    breaker_init(&ls->breaker);
    breaker_reset(&ls->breaker, ls->row.breaker_since);
    ls->passed_kept = ls->row.breaker_passed;
    if (ls->row.breaker_passed) {
        breaker_passed(&ls->breaker);
    }
    if (!view_breaker(c->store, ls->row.id, ls->row.breaker_since, BREAKER_OF_MAX, &rows, &n,
                      err)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        char words[SIGNATURE_MAX + 1];
        cause_signature(str_of(rows[i].reason), words);
        breaker_started(&ls->breaker, rows[i].attempt_id);
        breaker_end(ls, rows[i].attempt_id, rows[i].state, rows[i].cause, words);
    }
    return true;
}

void stage_history_trip_text(const struct live_campaign *lc, const struct live_stage *ls, char *ret,
                             size_t size)
{
    const struct breaker *b = &ls->breaker;
    int i = b->tripped_i;
    if (b->signatures_n == 0) {
        (void)snprintf(ret, size, "breaker");
        return;
    }
    const char *words = ls->trip_words[i] != NULL ? ls->trip_words[i] : "";
    (void)snprintf(ret, size,
                   "breaker: %lld of %lld attempts failed alike: %s: %.160s; mend the cause, then: "
                   "drover resume c-%lld, and drover retry c-%lld for the parts that failed",
                   (long long)b->signature[i].n, (long long)b->ended,
                   cause_name(b->signature[i].cause), words, (long long)lc->row.id,
                   (long long)lc->row.id);
}

bool stage_history_resume(struct controller *c, struct live_stage *ls, struct err *err)
{
    int64_t last = 0;
    if (!stage_last_attempt(c->store, ls->row.id, &last, err) ||
        !store_stage_breaker(c->store, ls->row.id, last, false, ls->row.resumes, err)) {
        return false;
    }
    breaker_reset(&ls->breaker, last);
    forget_words(ls);
    ls->row.breaker_since = last;
    ls->row.resumes_taken = ls->row.resumes;
    ls->passed_kept = false;
    return true;
}

/* --- loading --- */

static bool load_durations(struct controller *c, struct live_stage *ls, struct err *err)
{
    AUTO_FREE struct duration_row *rows = NULL;
    size_t n = 0;
    if (!view_durations(c->store, ls->row.campaign_id, ls->row.id, DURATION_KEPT, &rows, &n, err)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        duration_learn(&ls->duration, size_mb(rows[i].size), rows[i].run_us);
    }
    return true;
}

static bool load_promise(struct controller *c, struct live_stage *ls, struct err *err)
{
    AUTO_FREE struct promise_row *rows = NULL;
    size_t n = 0;
    if (!view_promises(c->store, ls->row.campaign_id, &rows, &n, err)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (rows[i].stage_id != ls->row.id) {
            continue;
        }
        const struct promise_row *p = &rows[i];
        ls->promise = *p;
        ls->gang =
            (struct reservation){.task_id = p->task_id,
                                 .instances = p->instances,
                                 .since_us = p->since_us,
                                 .promised_us = p->promised_us > 0 ? p->promised_us : USEC_NEVER,
                                 .expected_us = p->expected_us > 0 ? p->expected_us : USEC_NEVER,
                                 .latest_us = p->latest_us > 0 ? p->latest_us : USEC_NEVER};
    }
    return true;
}

bool stage_history_load(struct controller *c, struct live_campaign *lc, struct live_stage *ls,
                        struct err *err)
{
    (void)lc;
    if (ls->spec != NULL) {
        ls->rules = breaker_rules_of(&ls->spec->guard);
    }
    duration_init(&ls->duration, ls->spec != NULL ? ls->spec->expect_s * USEC_PER_SEC : 0);
    return load_breaker(c, ls, err) && load_durations(c, ls, err) && load_promise(c, ls, err);
}

void stage_history_free(struct live_stage *ls)
{
    forget_words(ls);
}

/* --- feeding --- */

void stage_history_started(struct live_attempt *a)
{
    breaker_started(&a->stage->breaker, a->row.id);
    if (a->stage->spec != NULL) {
        capacity_ladder_started(&a->stage->place, a->stage->spec, a->row.instance_type_i,
                                a->row.subnet_i, clock_wall_us());
    }
}

static void learn_start(struct live_attempt *a)
{
    bool warm = a->pool_seen.status == WARM_POOL_IN_USE || a->row.pool_id > 0;
    struct start_time *t = warm ? &a->stage->warm : &a->stage->cold;
    int64_t us = a->row.started_us - a->row.created_us;
    if (a->row.created_us == 0 || a->row.started_us == 0 || us < 0) {
        return;
    }
    t->n = MIN(t->n + 1, STARTS_KEPT);
    t->us += (us - t->us) / t->n;
}

void stage_history_moved(struct live_attempt *a)
{
    if (!a->accepted && a->row.state >= ATTEMPT_SUBMITTED && a->row.state <= ATTEMPT_VERIFYING) {
        a->accepted = true;
        quota_learning_accepted(a);
    }
    if (a->row.state == ATTEMPT_RUNNING) { /* spot may have started it again: it begins anew */
        bool again = a->running_us > 0;
        a->running_us = again || a->row.started_us == 0 ? clock_wall_us() : a->row.started_us;
        a->hang = (struct hang_detector_state){0};
        a->fresh_us = a->suspect_us = 0;
    }
    if (a->row.state == ATTEMPT_RUNNING && a->stage->spec != NULL) {
        capacity_ladder_worked(&a->stage->place, a->stage->spec, a->row.instance_type_i,
                               a->row.subnet_i);
        learn_start(a);
    }
    bool ending = a->row.state == ATTEMPT_UPLOADING || a->row.state == ATTEMPT_STOPPING;
    if (ending && a->ending_us == 0) {
        a->ending_us = clock_wall_us();
    }
}

void stage_history_passed(struct live_attempt *a)
{
    if (!a->passed) {
        a->passed = true;
        breaker_passed(&a->stage->breaker);
        a->io->c->state.decide = true;
    }
}

void stage_history_refused_capacity(struct live_attempt *a)
{
    if (a->stage->spec != NULL) {
        capacity_ladder_refused(&a->stage->place, a->stage->spec, a->row.instance_type_i,
                                a->row.subnet_i, clock_wall_us());
    }
}

void stage_history_ended(struct live_attempt *a, const struct pending_record *p)
{
    breaker_end(a->stage, a->row.id, p->r.to, p->r.cause, p->signature);
    if (p->r.cause == CAUSE_CAPACITY) {
        stage_history_refused_capacity(a);
    }
    if (p->r.to == ATTEMPT_SUCCEEDED && a->row.started_us > 0) {
        duration_learn(&a->stage->duration, size_mb(a->row.size),
                       a->row.ended_us - a->row.started_us);
    }
}

void stage_history_tick(struct controller *c)
{
    usec_t now_us = clock_wall_us();
    for (size_t i = 0; i < c->state.attempts_n; i++) {
        struct live_attempt *a = c->state.attempts[i];
        bool foreign = a->stage->spec != NULL && a->stage->spec->worker != WORKER_DOWNLOAD;
        if (foreign && !a->passed && a->row.state == ATTEMPT_RUNNING && a->row.started_us > 0 &&
            now_us - a->row.started_us >= FOREIGN_ALIVE_US) {
            stage_history_passed(a);
        }
    }
}

/* --- keeping --- */

static usec_t or_zero(usec_t t)
{
    return t == USEC_NEVER ? 0 : t;
}

static bool moved(usec_t a, usec_t b)
{
    return (a == 0) != (b == 0) || MAX(a, b) - MIN(a, b) > PROMISE_MOVED_US;
}

static bool promise_differs(const struct live_stage *ls)
{
    const struct reservation *g = &ls->gang;
    const struct promise_row *p = &ls->promise;
    return g->task_id != p->task_id ||
           (g->task_id != 0 && (or_zero(g->promised_us) != p->promised_us ||
                                moved(or_zero(g->expected_us), p->expected_us) ||
                                moved(or_zero(g->latest_us), p->latest_us)));
}

static bool stage_dirty(const struct live_stage *ls)
{
    return (ls->breaker.passed && !ls->passed_kept) || promise_differs(ls);
}

bool stage_history_dirty(struct controller *c)
{
    bool any = false;
    for (size_t i = 0; i < c->state.campaigns_n; i++) {
        for (int k = 0; k < c->state.campaigns[i]->stages_n; k++) {
            any |= stage_dirty(&c->state.campaigns[i]->stages[k]);
        }
    }
    return any;
}

static bool write_stage(struct controller *c, struct live_stage *ls, struct err *err)
{
    const struct reservation *g = &ls->gang;
    if (ls->breaker.passed && !ls->passed_kept) {
        if (!store_stage_breaker(c->store, ls->row.id, ls->row.breaker_since, true,
                                 ls->row.resumes_taken, err)) {
            return false;
        }
        ls->passed_kept = true;
    }
    if (!promise_differs(ls)) {
        return true;
    }
    struct promise_row p = {.stage_id = ls->row.id,
                            .campaign_id = ls->row.campaign_id,
                            .task_id = g->task_id,
                            .instances = g->instances,
                            .since_us = g->since_us,
                            .promised_us = or_zero(g->promised_us),
                            .expected_us = or_zero(g->expected_us),
                            .latest_us = or_zero(g->latest_us)};
    ls->promise = p;
    return g->task_id != 0 ? store_promise_put(c->store, &p, err)
                           : store_promise_drop(c->store, ls->row.id, err);
}

bool stage_history_write(struct controller *c, struct err *err)
{
    for (size_t i = 0; i < c->state.campaigns_n; i++) {
        for (int k = 0; k < c->state.campaigns[i]->stages_n; k++) {
            struct live_stage *ls = &c->state.campaigns[i]->stages[k];
            if (stage_dirty(ls) && !write_stage(c, ls, err)) {
                return false;
            }
        }
    }
    return true;
}
