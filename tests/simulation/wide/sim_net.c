/* Calls between a controller and SageMaker: requests are sent or lost, answers are lost, and a
 * request may take effect long after its sender gave up. */
#include "sim_world.h"

#define TIME_OUT_US (30 * SEC)

int call_new(struct world *w, struct ctl *c, enum call_kind kind, int attempt)
{
    int i;
    if (w->calls_free_n > 0) {
        i = w->calls_free[--w->calls_free_n];
    } else {
        if (w->calls_n == w->calls_cap) {
            size_t old = w->calls_cap;
            w->calls_cap = MAX(64, old * 2);
            w->calls = xrealloc(w->calls, w->calls_cap * sizeof *w->calls);
            memset(w->calls + old, 0, (w->calls_cap - old) * sizeof *w->calls);
            w->calls_free = xrealloc(w->calls_free, w->calls_cap * sizeof *w->calls_free);
        }
        i = (int)w->calls_n++;
    }
    struct call *k = &w->calls[i];
    struct listed *list = k->list;
    size_t cap = k->list_cap;
    *k = (struct call){.kind = (uint8_t)kind,
                       .ctl = (uint8_t)c->id,
                       .lead = c->lead,
                       .attempt = attempt,
                       .sent_us = w->now_us,
                       .boot_us = ctl_boot(w, c),
                       .job = -1,
                       .code = "",
                       .list = list,
                       .list_cap = cap};
    return i;
}

static void drop(struct world *w, int call)
{
    if (--w->calls[call].refs == 0) {
        w->calls_free[w->calls_free_n++] = call;
    }
}

static int64_t one_way(struct world *w)
{
    return between(&w->rng_net, 5000, 150000);
}

/* Only a time-out or a reset comes back. */
static void lose(struct world *w, int call, int64_t at_us)
{
    struct call *k = &w->calls[call];
    k->lost = true;
    k->refs++;
    ev_push(w, at_us, EV_REPLY, k->ctl, k->lead, call, 0);
}

static int64_t give_up_at(struct world *w)
{
    return w->now_us + (rng_chance(&w->rng_net, 0.5) ? TIME_OUT_US : one_way(w));
}

static void arrives(struct world *w, int call, int64_t at_us)
{
    w->calls[call].refs++;
    ev_push(w, at_us, EV_ARRIVE, 0, 0, call, 0);
}

static bool create_goes_wrong(struct world *w, int call)
{
    struct call *k = &w->calls[call];
    if (fault(w, FAULT_DROP_BEFORE)) {
        tell(w, w->judge.billable != NULL ? ATTEMPT(w, k->attempt)->task : -1,
             "the Create is lost on its way");
        lose(w, call, give_up_at(w));
        return true;
    }
    if (fault(w, FAULT_LATE)) {
        struct rng *r = &w->rng_fault[FAULT_LATE];
        int64_t most = rng_chance(r, 0.1) ? w->cfg.window_us + 2 * MINUTE : 90 * SEC;
        SOMETIMES(w, CREATE_LATE);
        arrives(w, call, w->now_us + between(r, SEC, most));
        lose(w, call, give_up_at(w));
        return true;
    }
    if (fault(w, FAULT_DROP_AFTER) || fault(w, FAULT_HALF_BODY)) {
        arrives(w, call, w->now_us + one_way(w));
        lose(w, call, give_up_at(w) + one_way(w));
        return true;
    }
    return false;
}

void call_send(struct world *w, int call)
{
    struct call *k = &w->calls[call];
    struct ctl *c = &w->ctl[k->ctl];
    w->traffic.calls += k->kind != CALL_VERIFY && k->kind != CALL_PROGRESS;
    if (c->cut_aws || (k->kind == CALL_CREATE && fault(w, FAULT_UNSENT))) {
        k->answer = ANSWER_UNSENT;
        k->refs++;
        ev_push(w, w->now_us + one_way(w) / 8, EV_REPLY, k->ctl, k->lead, call, 0);
        return;
    }
    if (k->kind == CALL_CREATE) {
        judge_wire(w, k);
        if (create_goes_wrong(w, call)) {
            return;
        }
    } else if (k->kind == CALL_STOP) {
        judge_stop(w, k);
    }
    if (k->kind == CALL_STOP && fault(w, FAULT_STOP_DROPPED)) {
        arrives(w, call, w->now_us + one_way(w));
        lose(w, call, give_up_at(w) + one_way(w));
        return;
    }
    if (k->kind != CALL_CREATE && k->kind != CALL_VERIFY && fault(w, FAULT_READ_FAILS)) {
        lose(w, call, give_up_at(w));
        return;
    }
    arrives(w, call, w->now_us + one_way(w));
}

static bool refused_at_the_door(struct world *w, struct call *k)
{
    if (k->kind == CALL_VERIFY || k->kind == CALL_PROGRESS) { /* the object store, not SageMaker */
        return false;
    }
    if (fault_open(w, FAULT_REGION_DOWN) ||
        (k->kind == CALL_CREATE && fault(w, FAULT_ERROR_BEFORE))) {
        k->answer = ANSWER_LOST;
    } else if (fault_open(w, FAULT_CREDENTIALS)) {
        k->answer = ANSWER_CREDENTIALS;
    } else if (fault_open(w, FAULT_THROTTLE) || fault(w, FAULT_THROTTLE_SOME)) {
        k->answer = ANSWER_THROTTLED;
    } else {
        return false;
    }
    return true;
}

void call_arrive(struct world *w, int call)
{
    struct call *k = &w->calls[call];
    if (!refused_at_the_door(w, k)) {
        if (k->kind == CALL_CREATE) {
            aws_create(w, k);
        } else {
            aws_read(w, k);
        }
    }
    k = &w->calls[call];
    trace(w, 0xa4417e0 + k->kind, (uint64_t)k->answer << 32 | (uint32_t)k->attempt);
    if (!k->lost) {
        if (k->kind == CALL_CREATE && k->answer == ANSWER_OK && fault(w, FAULT_ERROR_AFTER)) {
            k->answer = ANSWER_LOST;
        }
        k->refs++;
        ev_push(w, w->now_us + one_way(w), EV_REPLY, k->ctl, k->lead, call, 0);
    }
    drop(w, call);
}

void call_reply(struct world *w, int call)
{
    struct call *k = &w->calls[call];
    struct ctl *c = &w->ctl[k->ctl];
    if (c->up && c->leading && k->lead == c->lead) {
        if (k->lost) {
            struct call seen = *k; /* the effect may come later: only the reply is lost */
            seen.answer = ANSWER_LOST;
            execute_reply(w, c, &seen);
        } else {
            ctl_learns(c);
            execute_reply(w, c, k);
        }
    }
    drop(w, call);
}
