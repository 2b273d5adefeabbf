/* See attempt.h. */
#include "attempt.h"
#include "filesystem_use.h"
#include "parking.h"
#include <stdio.h>

#define DESCRIBE_STALE_US (600 * USEC_PER_SEC)
#define RESEND_BASE_US    (500 * USEC_PER_MSEC)
#define RESEND_CAP_US     (60 * USEC_PER_SEC)

struct live_attempt *leader_add_intended(struct leader_state *s, const struct attempt_row *row,
                                         struct live_campaign *lc)
{
    struct live_attempt *a = leader_state_add_attempt(s, row, lc);
    protocol_intended(&a->p);
    return a;
}

/* The pool that it will leave, and the one it was intended on. */
static void find_pools(struct leader_state *s, struct live_attempt *a)
{
    for (size_t i = 0; i < s->pools_n; i++) {
        struct live_pool *p = s->pools[i];
        if (p->row.attempt_id == a->row.id) {
            a->pool = p;
            p->attempt = a;
        }
        if (p->row.id == a->row.pool_id && p->row.taken_by == a->row.id) {
            a->taken = p;
        }
    }
}

/* What earlier leaders have seen of its end. */
static void know_end(struct live_attempt *a)
{
    const char *place = a->row.artifacts, *why = a->row.reason;
    a->placed = place != NULL;
    (void)snprintf(a->artifacts, sizeof a->artifacts, "%s", a->placed ? place : "");
    (void)snprintf(a->reason, sizeof a->reason, "%s", why != NULL ? why : "");
}

struct live_attempt *leader_take_over_attempt(struct leader_state *s, const struct attempt_row *row,
                                              struct live_campaign *lc,
                                              const struct attempt_takeover *t,
                                              struct protocol_effect *ret_effect)
{
    *ret_effect = (struct protocol_effect){0};
    if (row->epoch == s->epoch && !t->again) {
        return leader_add_intended(s, row, lc);
    }
    struct live_attempt *a = leader_state_add_attempt(s, row, lc);
    bool goes_on = lc->row.wanted == WANTED_RUN || lc->row.wanted == WANTED_DRAIN;
    a->stopped_by_us = row->unwanted;
    a->created_us = row->created_us;
    a->running_us = row->state == ATTEMPT_RUNNING ? t->now_us : 0;
    know_end(a);
    find_pools(s, a);
    if (!t->again) {
        breaker_started(&a->stage->breaker, row->id);
    }
    protocol_taken_over(row->state, row->failed_as, goes_on && !row->unwanted, t->lease_end_us,
                        t->protocol, &a->p, ret_effect);
    return a;
}

void leader_protocol_config(int64_t signature_window_us, struct protocol_config *ret)
{
    *ret = (struct protocol_config){.signature_window_us = signature_window_us,
                                    .describe_stale_us = DESCRIBE_STALE_US,
                                    .resend_base_us = RESEND_BASE_US,
                                    .resend_cap_us = RESEND_CAP_US};
}

/* The newest of each kind: calls are made one at a time, and a listing, a hint or a wish need not
 * be heard twice. */
static void keep_fact(struct live_attempt *a, const struct fact *f)
{
    for (int i = 0; i < a->facts_n; i++) {
        if (a->facts[i].kind == f->kind) {
            a->facts[i] = *f;
            return;
        }
    }
    ASSERT(a->facts_n < ATTEMPT_FACTS_MAX);
    a->facts[a->facts_n++] = *f;
}

void leader_attempt_fact(struct leader_state *s, struct live_attempt *a, const struct fact *f,
                         const struct protocol_config *cfg, struct protocol_effect *ret)
{
    memset(ret, 0, sizeof *ret);
    if (a->recording) {
        keep_fact(a, f);
        return;
    }
    protocol_step(&a->p, f, cfg, ret);
    a->wake_us = 0;
    s->act = true;
}

/* Parked or locked, and its time has not come. */
static bool set_aside(const struct leader_state *s, const struct live_attempt *a, int64_t boot_us)
{
    const struct parking_subject who = PARKING_ATTEMPT(a->row.campaign_id, a->row.id);
    return parking_parked(s, &who) && !parking_may(s, &who, boot_us);
}

bool leader_attempt_waits(const struct leader_state *s, const struct live_attempt *a,
                          int64_t boot_us)
{
    return a->recording || a->reread || set_aside(s, a, boot_us);
}

bool leader_attempt_hears(const struct leader_state *s, struct live_attempt *a,
                          const struct fact *f, int64_t boot_us)
{
    bool stuck = a->reread || set_aside(s, a, boot_us);
    a->reread |= stuck && f->kind != FACT_LISTED;
    return !stuck;
}

bool leader_attempt_unasked(const struct live_attempt *a)
{
    return str_eq(buf_str(&a->request), STR(ATTEMPT_NO_REQUEST));
}

struct fact leader_create_fact(struct str request, bool rate_allows, bool lease_holds,
                               int64_t boot_us)
{
    bool sends = request.n > 0 && rate_allows && lease_holds;
    if (str_eq(request, STR(ATTEMPT_NO_REQUEST))) {
        return (struct fact){
            .kind = FACT_CREATE_REFUSED, .cause = CAUSE_BAD_REQUEST, .at_us = boot_us};
    }
    return (struct fact){.kind = sends ? FACT_CREATE_SIGNED : FACT_CREATE_UNSENT, .at_us = boot_us};
}

enum verify_step leader_verify_step(const struct live_attempt *a)
{
    if (a->p.failed_as != CAUSE_NONE) {
        return VERIFY_STEP_EXAMINE;
    }
    bool cancelled = !a->p.wanted && a->campaign->row.wanted == WANTED_CANCEL;
    if (cancelled && a->p.failures > 0) {
        return VERIFY_STEP_LEAVE;
    }
    if (a->stage->spec != NULL && !a->row.part_lost) {
        bool unplaced = a->stage->spec->verify == VERIFY_ARTIFACTS && !a->placed;
        return unplaced ? VERIFY_STEP_PLACE : VERIFY_STEP_LOOK;
    }
    return cancelled ? VERIFY_STEP_LEAVE : VERIFY_STEP_LATER;
}

bool leader_examined_long_enough(const struct live_attempt *a, int64_t boot_us)
{
    return boot_us >= a->p.examine_until_us;
}

bool leader_attempt_stop(struct live_attempt *a)
{
    a->stopped_by_us |= a->row.unwanted;
    return a->row.unwanted;
}

bool leader_attempt_unwant(struct leader_state *s, struct live_attempt *a, int64_t boot_us,
                           struct fact *ret)
{
    const struct parking_subject who = PARKING_ATTEMPT(a->row.campaign_id, a->row.id);
    parking_hurry(s, &who);
    *ret = (struct fact){.kind = FACT_UNWANTED, .at_us = boot_us};
    return a->p.wanted;
}

void leader_attempt_weigh(struct leader_state *s, struct live_attempt *a)
{
    enum wanted wanted = a->campaign->row.wanted;
    if ((wanted != WANTED_RUN && wanted != WANTED_DRAIN) || a->row.unwanted) {
        return;
    }
    bool unresolved = a->p.state == ATTEMPT_INTENDED || a->p.state == ATTEMPT_UNKNOWN;
    bool starts = !unresolved || !leader_filesystem_going(s, a->campaign, a->stage->spec);
    if (a->p.wanted != starts) {
        a->p.wanted = starts;
        a->wake_us = 0;
        s->act = true;
    }
}

bool leader_attempt_reread_due(const struct leader_state *s, const struct live_attempt *a,
                               int64_t boot_us)
{
    const struct parking_subject who = PARKING_ATTEMPT(a->row.campaign_id, a->row.id);
    const struct parking_subject part = PARKING_PART(a->row.campaign_id, a->row.task_id);
    bool back = a->row.part_lost && parking_may(s, &part, boot_us);
    return (a->reread || back) && !a->recording && parking_may(s, &who, boot_us);
}

bool leader_attempt_records(const struct protocol_effect *e)
{
    return e->changed || e->task_ends || e->release_slot || e->alert;
}

bool leader_attempt_kept_fact(struct live_attempt *a, struct fact *ret)
{
    if (a->recording || a->facts_n == 0) {
        return false;
    }
    *ret = a->facts[0];
    a->facts_n--;
    memmove(&a->facts[0], &a->facts[1], (size_t)a->facts_n * sizeof a->facts[0]);
    return true;
}
