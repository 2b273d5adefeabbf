/* What tests of an attempt's end share: its record planned, and committed as the leader does. */
#pragma once
#include "core/leader/attempt.h"
#include "core/leader/outcome.h"
#include "core/leader/record_queue.h"
#include "leader_world.h"

UNUSED static struct pending_record plan(struct leader_world *w, struct live_attempt *a,
                                         const struct protocol_effect *e, struct outcome_notes *n)
{
    struct outcome_notes ignored;
    struct pending_record p;
    leader_plan_record(&w->s, a, e, WALL, &p, n != NULL ? n : &ignored);
    return p;
}

UNUSED static struct protocol_effect ended_as(enum cause cause)
{
    return (struct protocol_effect){.changed = true,
                                    .from = ATTEMPT_RUNNING,
                                    .release_slot = true,
                                    .settle = true,
                                    .task_ends = true,
                                    .cause = cause};
}

/* Commits p and removes what is over, as the controller does. Returns whether the breaker trips. */
UNUSED static bool commit(struct leader_world *w, struct live_attempt *a, struct pending_record *p)
{
    struct record_applied then;
    leader_push_record(&w->s, a, p);
    leader_apply_record(&w->s, &w->s.records[w->s.records_n - 1], WALL, BOOT, &then);
    w->s.records_n--;
    if (then.ended_pool != NULL) {
        leader_state_remove_pool(&w->s, then.ended_pool);
    }
    assert_int_equal(then.ended, p->r.task_moves);
    if (then.ended) {
        leader_state_remove_attempt(&w->s, a);
    }
    return then.trips;
}
