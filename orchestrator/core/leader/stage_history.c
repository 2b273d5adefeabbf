/* See stage_history.h. */
#include "stage_history.h"
#include "attempt.h"
#include "awake.h"
#include "common/hash.h"
#include "core/failure/breaker.h"
#include "core/failure/retry_policy.h"
#include "parking.h"
#include "quota_learning.h"
#include <stdio.h>
#include <stdlib.h>

#define FOREIGN_ALIVE_US (600 * USEC_PER_SEC) /* a user's image that lives so long works */
/* A smaller change of what is expected is not written. */
#define PROMISE_MOVED_US (30 * USEC_PER_SEC)
#define STARTS_KEPT      20 /* start times are averaged over this many */

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

/* The signature of a failure, without hashing what is known already: mostly they fail alike. */
static uint64_t signature_of(const struct live_stage *ls, enum cause cause, const char *words)
{
    for (int i = 0; i < ls->breaker.signatures_n; i++) {
        if (ls->breaker.signature[i].cause == cause && ls->trip_words[i] != NULL &&
            strcmp(ls->trip_words[i], words) == 0) {
            return ls->breaker.signature[i].hash;
        }
    }
    return stage_history_signature(cause, words);
}

/* asked: a request could be made of its part. Where none can, its stage may be as good as ever. */
static bool saw_end(struct live_stage *ls, int64_t attempt_id, enum attempt_state state,
                    enum cause cause, bool ran, bool asked, const char *words)
{
    bool good = state == ATTEMPT_SUCCEEDED;
    enum cause c = good ? CAUSE_NONE : cause != CAUSE_NONE ? cause : CAUSE_STOPPED;
    bool counts = good || ran || (asked && retry_counts(c));
    bool alike = counts && !good; /* only such a failure is compared with others */
    uint64_t hash = alike ? signature_of(ls, c, words) : 0;
    bool trips = breaker_ended(&ls->breaker, &ls->rules, attempt_id, c, counts, hash);
    if (alike) {
        keep_words(ls, hash, words);
    }
    return trips;
}

void stage_history_init(struct live_stage *ls)
{
    if (ls->spec != NULL) {
        ls->rules = breaker_rules_of(&ls->spec->guard);
    }
    duration_init(&ls->duration, ls->spec != NULL ? ls->spec->expect_s * USEC_PER_SEC : 0);
    breaker_init(&ls->breaker);
    breaker_reset(&ls->breaker, ls->row.breaker_since);
    ls->passed_kept = ls->row.breaker_passed;
    if (ls->row.breaker_passed) {
        breaker_passed(&ls->breaker);
    }
}

void stage_history_saw_breaker_row(struct live_stage *ls, const struct breaker_row *row)
{
    char words[SIGNATURE_MAX + 1] = "";
    bool asked = row->state != ATTEMPT_VOID ||
                 strncmp(row->reason, ATTEMPT_NO_REQUEST_WHY, strlen(ATTEMPT_NO_REQUEST_WHY)) != 0;
    if (row->state != ATTEMPT_SUCCEEDED && (row->ran || retry_counts(row->cause))) {
        cause_signature(str_of(row->reason), words);
    }
    breaker_started(&ls->breaker, row->attempt_id);
    (void)saw_end(ls, row->attempt_id, row->state, row->cause, row->ran, asked, words);
}

void stage_history_saw_duration(struct live_stage *ls, int64_t size, int64_t run_us)
{
    duration_learn(&ls->duration, size_mb_of(size), run_us);
}

static void take_promise(struct live_stage *ls, const struct promise_row *p)
{
    ls->promise = *p;
    ls->reservation =
        (struct reservation){.task_id = p->task_id,
                             .instances = p->instances,
                             .since_us = p->since_us,
                             .promised_us = p->promised_us > 0 ? p->promised_us : USEC_NEVER,
                             .expected_us = p->expected_us > 0 ? p->expected_us : USEC_NEVER,
                             .latest_us = p->latest_us > 0 ? p->latest_us : USEC_NEVER};
}

void stage_history_take_promises(struct live_stage *ls, const struct promise_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (rows[i].stage_id == ls->row.id) {
            take_promise(ls, &rows[i]);
        }
    }
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

void stage_history_resumed(struct live_stage *ls, int64_t last_attempt_id)
{
    breaker_reset(&ls->breaker, last_attempt_id);
    forget_words(ls);
    ls->row.breaker_since = last_attempt_id;
    ls->row.resumes_taken = ls->row.resumes;
    ls->passed_kept = false;
}

/* Is its rung one of the ladder? A row may say another. */
static bool on_ladder(const struct live_attempt *a)
{
    const struct spec_stage *spec = a->stage->spec;
    return spec != NULL && a->row.instance_type_i < spec->instance_type_n &&
           a->row.subnet_i < MAX(spec->subnets_n, 1);
}

void stage_history_started(struct live_attempt *a, usec_t now_us)
{
    breaker_started(&a->stage->breaker, a->row.id);
    if (on_ladder(a)) {
        capacity_ladder_started(&a->stage->ladder, a->stage->spec, a->row.instance_type_i,
                                a->row.subnet_i, now_us);
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

void stage_history_moved(struct leader_state *s, struct live_attempt *a, usec_t now_us)
{
    if (!a->accepted && a->row.state >= ATTEMPT_SUBMITTED && a->row.state <= ATTEMPT_VERIFYING) {
        a->accepted = true;
        quota_learning_accepted(s, a, now_us);
    }
    if (a->row.state == ATTEMPT_RUNNING) { /* spot may have started it again: it begins again */
        bool again = a->running_us > 0;
        a->running_us = again || a->row.started_us == 0 ? now_us : a->row.started_us;
        a->hang = (struct hang_detector_state){0};
        a->fresh_us = a->suspect_us = 0;
    }
    if (a->row.state == ATTEMPT_RUNNING && on_ladder(a)) {
        capacity_ladder_worked(&a->stage->ladder, a->stage->spec, a->row.instance_type_i,
                               a->row.subnet_i);
        learn_start(a);
    }
    bool ending = a->row.state == ATTEMPT_UPLOADING || a->row.state == ATTEMPT_STOPPING;
    if (ending && a->ending_us == 0) {
        a->ending_us = now_us;
    }
}

void stage_history_passed(struct leader_state *s, struct live_attempt *a)
{
    if (!a->passed) {
        a->passed = true;
        breaker_passed(&a->stage->breaker);
        campaign_wake(a->campaign);
        s->decide = true;
    }
}

void stage_history_refused_capacity(struct live_attempt *a, usec_t now_us)
{
    if (on_ladder(a)) {
        capacity_ladder_refused(&a->stage->ladder, a->stage->spec, a->row.instance_type_i,
                                a->row.subnet_i, now_us);
    }
}

bool stage_history_ended(struct live_attempt *a, enum attempt_state to, enum cause cause, bool ran,
                         const char *words, usec_t now_us)
{
    bool asked = to != ATTEMPT_VOID || !leader_attempt_unasked(a);
    bool trips = saw_end(a->stage, a->row.id, to, cause, ran, asked, words);
    campaign_wake(a->campaign);
    if (cause == CAUSE_CAPACITY) {
        stage_history_refused_capacity(a, now_us);
    }
    if (to == ATTEMPT_SUCCEEDED && a->row.started_us > 0) {
        stage_history_saw_duration(a->stage, a->row.size, a->row.ended_us - a->row.started_us);
    }
    return trips;
}

/* By the boot clock: a wall clock that jumps would prove what has only just begun. */
void stage_history_tick(struct leader_state *s, int64_t boot_us)
{
    for (size_t i = 0; i < s->attempts_n; i++) {
        struct live_attempt *a = s->attempts[i];
        bool foreign = a->stage->spec != NULL && a->stage->spec->worker == WORKER_NONE;
        if (a->row.state != ATTEMPT_RUNNING) {
            a->alive_us = 0;
            continue;
        }
        a->alive_us = a->alive_us == 0 ? boot_us : a->alive_us;
        if (foreign && !a->passed && boot_us - a->alive_us >= FOREIGN_ALIVE_US) {
            stage_history_passed(s, a);
        }
    }
}

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
    const struct reservation *g = &ls->reservation;
    const struct promise_row *p = &ls->promise;
    return g->task_id != p->task_id ||
           (g->task_id != 0 && (or_zero(g->promised_us) != p->promised_us ||
                                moved(or_zero(g->expected_us), p->expected_us) ||
                                moved(or_zero(g->latest_us), p->latest_us)));
}

bool stage_history_plan(const struct live_stage *ls, struct stage_history_write *ret)
{
    const struct reservation *g = &ls->reservation;
    *ret = (struct stage_history_write){.passed = ls->breaker.passed && !ls->passed_kept,
                                        .promise_moves = promise_differs(ls),
                                        .promise = {.stage_id = ls->row.id,
                                                    .campaign_id = ls->row.campaign_id,
                                                    .task_id = g->task_id,
                                                    .instances = g->instances,
                                                    .since_us = g->since_us,
                                                    .promised_us = or_zero(g->promised_us),
                                                    .expected_us = or_zero(g->expected_us),
                                                    .latest_us = or_zero(g->latest_us)}};
    return ret->passed || ret->promise_moves;
}

void stage_history_apply(struct live_stage *ls, const struct stage_history_write *w)
{
    ls->passed_kept |= w->passed;
    if (w->promise_moves) {
        ls->promise = w->promise;
    }
}

bool stage_history_dirty(const struct leader_state *s)
{
    struct stage_history_write ignored;
    bool any = false;
    for (size_t i = 0; i < s->awake->n; i++) {
        const struct live_campaign *lc = s->awake->campaigns[i];
        for (int k = 0; parking_reports(lc) && k < lc->stages_n; k++) {
            any |= stage_history_plan(&lc->stages[k], &ignored);
        }
    }
    return any;
}
