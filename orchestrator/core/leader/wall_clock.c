/* See wall_clock.h. */
#include "wall_clock.h"
#include "core/sched/ready_queue.h"

#define STEP_MIN_US USEC_PER_SEC /* less is not worth a look at everything */

/* 0 and USEC_NEVER are no times. */
static void move(usec_t *t, int64_t by_us)
{
    usec_t to;
    if (*t != 0 && *t != USEC_NEVER) {
        *t = add_i64(*t, by_us, &to) ? MAX(to, (usec_t)1) : *t;
    }
}

static void move_stage(struct live_stage *ls, int64_t by_us)
{
    struct ready_queue *const queues[] = {ls->ready, ls->unchecked, ls->held};
    usec_t *const times[] = {&ls->check_again_us,          &ls->check_told_us,
                             &ls->refused_since_us,        &ls->refused_until_us,
                             &ls->no_start_until_us,       &ls->reservation.since_us,
                             &ls->reservation.promised_us, &ls->reservation.expected_us,
                             &ls->reservation.latest_us,   &ls->reservation.target_us};
    for (size_t i = 0; i < ARRAY_LEN(queues); i++) {
        if (queues[i] != NULL) {
            ready_queue_move(queues[i], by_us);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        move(times[i], by_us);
    }
    for (int i = 0; i < CAPACITY_LADDER_RUNGS_MAX; i++) {
        move(&ls->ladder.rung[i].shut_until_us, by_us);
        move(&ls->ladder.rung[i].probe_until_us, by_us);
    }
}

static void move_all(struct leader_state *s, int64_t by_us)
{
    for (size_t i = 0; i < s->campaigns_n; i++) {
        move(&s->campaigns[i]->last_start_us, by_us);
        for (int k = 0; k < s->campaigns[i]->stages_n; k++) {
            move_stage(&s->campaigns[i]->stages[k], by_us);
        }
    }
    for (size_t i = 0; i < s->attempts_n; i++) {
        move(&s->attempts[i]->row.intended_us, by_us);
        move(&s->attempts[i]->ending_us, by_us);
    }
    for (size_t i = 0; i < s->pools_n; i++) {
        move(&s->pools[i]->row.intended_us, by_us);
        move(&s->pools[i]->row.available_us, s->pools[i]->timed ? by_us : 0);
        move(&s->pools[i]->row.expires_us, s->pools[i]->timed ? by_us : 0);
    }
    for (size_t i = 0; i < s->slots_n; i++) {
        move(&s->slots[i].s.foreign_us, by_us);
        move(&s->slots[i].probe_us, by_us);
    }
    for (int m = 0; m < MARKET_COUNT; m++) {
        move(&s->account.total[m].foreign_us, by_us);
    }
    for (size_t i = 0; i < s->records_n; i++) {
        move(&s->records[i].r.not_before_us, by_us);
    }
    move(&s->watch_from_us, by_us);
}

int64_t leader_wall_clock(struct leader_state *s, usec_t wall_us, int64_t boot_us, int64_t told_us,
                          uint64_t answers)
{
    struct leader_clock *k = &s->clock;
    int64_t by_us = k->known ? wall_us - boot_us - k->ahead_us : 0;
    bool stepped = by_us >= STEP_MIN_US || by_us <= -STEP_MIN_US;
    if (!k->known || stepped) {
        k->ahead_us = wall_us - boot_us;
    }
    if (stepped) {
        move_all(s, by_us);
        k->aws_ahead_us -= by_us;
    }
    bool news = k->known && answers != k->answers;
    if (!k->known || told_us != k->told_us || (news && !stepped)) { /* else it may be of before */
        k->told_us = k->aws_ahead_us = told_us;
    }
    k->unsure = !k->known || stepped || (k->unsure && !news);
    k->answers = answers;
    k->known = true;
    return stepped ? by_us : 0;
}

usec_t leader_wall_of_aws(const struct leader_state *s, usec_t t)
{
    usec_t ours;
    return add_i64(t, -s->clock.aws_ahead_us, &ours) ? ours : t;
}

usec_t leader_wall_to_aws(const struct leader_state *s, usec_t now_us)
{
    usec_t theirs;
    return add_i64(now_us, s->clock.aws_ahead_us, &theirs) ? theirs : now_us;
}
