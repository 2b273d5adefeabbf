/* The calls of a controller of the exhaustive check's world to SageMaker: sent, lost, delayed,
 * answered. */
#include "world_calls.h"

static bool act_create(struct world *w, int c, int p, const struct protocol_attempt *a,
                       const char **ret_wrong)
{
    struct memory *m = &w->ctl[c].part[p];
    if (!a->wanted || a->refused != CAUSE_NONE) {
        *ret_wrong = "a Create is signed for an attempt given up";
        return true;
    }
    if (m->known) {
        *ret_wrong = "a Create is signed under the name of a job that was seen";
        return true;
    }
    world_pack(m, a);
    if (!protocol_may_sign(NOW_US + w->ctl[c].lease * TICK_US, NOW_US)) {
        struct fact unsent = {.kind = FACT_CREATE_UNSENT, .at_us = NOW_US};
        world_step(w, c, p, &unsent, ret_wrong);
        return true;
    }
    m->send = SEND_SIGNED;
    m->send_valid = WINDOW + 1;
    struct fact f = {.kind = FACT_CREATE_SIGNED, .at_us = NOW_US};
    world_step(w, c, p, &f, ret_wrong);
    return true;
}

/* v: 0 accepted and answered; 1 accepted, the answer is lost; 2 the request is lost. */
static bool act_stop(struct world *w, int c, int p, int v, const char **ret_wrong)
{
    struct memory *m = &w->ctl[c].part[p];
    uint8_t *job = &w->part[p].job[m->n - 1];
    struct fact f = {.kind = v == 0 ? FACT_STOP_OK : FACT_STOP_FAILED, .at_us = NOW_US};
    if (v > 2) {
        return false;
    }
    if (!w->part[p].cancelled) {
        *ret_wrong = "a job that is wanted is stopped";
        return true;
    }
    if (world_free(*job)) {
        f.kind = FACT_STOP_FAILED;
    } else if (v < 2 && (*job == WORLD_STARTING || *job == WORLD_RUNNING)) {
        *job = WORLD_STOPPING;
    }
    world_step(w, c, p, &f, ret_wrong);
    return true;
}

/* v: 0 the output is complete, 1 it is short, 2 it could not be checked. */
static bool act_verify(struct world *w, int c, int p, int v, const char **ret_wrong)
{
    if (v > 2) {
        return false;
    }
    struct fact f = {.kind = v == 2 ? FACT_VERIFY_FAILED : FACT_VERIFIED,
                     .at_us = NOW_US,
                     .cause = v == 1 ? CAUSE_SHORT_OUTPUT : CAUSE_NONE};
    const uint8_t *row = &w->part[p].row[w->ctl[c].part[p].n - 1];
    bool before = *row == ATTEMPT_SUCCEEDED; /* by another leader */
    world_step(w, c, p, &f, ret_wrong);
    if (v != 0 && !before && *row == ATTEMPT_SUCCEEDED) {
        *ret_wrong = "success of output that is short or was not looked at";
    }
    return true;
}

bool call_act(struct world *w, int c, int p, int v, const char **ret_wrong)
{
    struct memory *m = &w->ctl[c].part[p];
    struct protocol_attempt a;
    int64_t wake_us;
    if (m->n == 0) {
        return false;
    }
    world_unpack(m, &a);
    enum protocol_action action = protocol_next(&a, NOW_US, &world_proto, &wake_us);
    world_coverage.actions |= 1U << action;
    if (action == ACT_NONE || (v > 0 && action != ACT_STOP && action != ACT_VERIFY)) {
        return false;
    }
    switch (action) {
    case ACT_CREATE:
        return act_create(w, c, p, &a, ret_wrong);
    case ACT_DESCRIBE:
        world_pack(m, &a);
        m->look = LOOK_SENT;
        m->look_age = 0;
        return true;
    case ACT_STOP:
        world_pack(m, &a);
        return act_stop(w, c, p, v, ret_wrong);
    case ACT_VERIFY:
        world_pack(m, &a);
        return act_verify(w, c, p, v, ret_wrong);
    case ACT_VOID:
        world_pack(m, &a);
        world_step(w, c, p, &(struct fact){.kind = FACT_VOID, .at_us = NOW_US}, ret_wrong);
        return true;
    case ACT_NONE:
        return false;
    }
    return false;
}

bool call_arrive(struct world *w, int c, int p, int v)
{
    struct memory *m = &w->ctl[c].part[p];
    if (m->send != SEND_SENT) {
        return false;
    }
    bool used = !world_free(w->part[p].job[m->n - 1]);
    if ((v == ANSWER_OK && (used || m->send_valid == 0)) ||
        (v == ANSWER_IN_USE && (!used || m->send_valid == 0)) ||
        (m->send_valid == 0 && v != ANSWER_THROTTLED)) { /* an expired signature is refused */
        return false;
    }
    uint8_t *denied = &w->part[p].denied[m->n - 1];
    if (*denied && (v == ANSWER_OK || v == ANSWER_QUOTA)) {
        return false;
    }
    if (v == ANSWER_OK) {
        world_create_job(w, p, m->n - 1);
    } else if (v == ANSWER_DENIED) {
        *denied = 1;
    }
    m->send = SEND_ANSWERED;
    m->send_valid = 0;
    m->answer = (uint8_t)v;
    return true;
}

bool call_reply(struct world *w, int c, int p, int v, const char **ret_wrong)
{
    static const struct fact facts[ANSWER_N] = {
        [ANSWER_OK] = {.kind = FACT_CREATE_OK},
        [ANSWER_IN_USE] = {.kind = FACT_CREATE_IN_USE},
        [ANSWER_QUOTA] = {.kind = FACT_CREATE_REFUSED, .cause = CAUSE_QUOTA},
        [ANSWER_THROTTLED] = {.kind = FACT_CREATE_REFUSED, .cause = CAUSE_THROTTLED},
        [ANSWER_DENIED] = {.kind = FACT_CREATE_REFUSED, .cause = CAUSE_ACCESS_DENIED},
    };
    struct memory *m = &w->ctl[c].part[p];
    if (m->send != SEND_ANSWERED) {
        return false;
    }
    struct fact f = facts[m->answer];
    if (v == 1) {
        f = (struct fact){.kind = FACT_CREATE_UNKNOWN};
    }
    f.at_us = NOW_US;
    m->send = m->answer = 0;
    world_step(w, c, p, &f, ret_wrong);
    return true;
}

static struct job_seen seen(uint8_t job)
{
    static const struct job_seen as[] = {
        [WORLD_STARTING] = {JOB_IN_PROGRESS, PHASE_STARTING, true, WORLD_STARTING},
        [WORLD_RUNNING] = {JOB_IN_PROGRESS, PHASE_RUNNING, true, WORLD_RUNNING},
        [WORLD_STOPPING] = {JOB_STOPPING, PHASE_STOPPING, true, WORLD_STOPPING},
        [WORLD_COMPLETED] = {JOB_COMPLETED, PHASE_ENDED, true, WORLD_COMPLETED},
        [WORLD_FAILED] = {JOB_FAILED, PHASE_ENDED, true, WORLD_FAILED},
        [WORLD_STOPPED] = {JOB_STOPPED, PHASE_ENDED, true, WORLD_STOPPED},
        [WORLD_FOREIGN] = {JOB_IN_PROGRESS, PHASE_RUNNING, false, WORLD_RUNNING},
    };
    return as[job];
}

/* An older state that an eventually consistent read may return. WORLD_FOREIGN: there is none. */
static uint8_t older(const struct part *p, int n)
{
    if (p->fresh[n] && world_alive(p->job[n])) {
        return WORLD_NONE;
    }
    if (p->job[n] == WORLD_RUNNING || p->job[n] == WORLD_STOPPING) {
        return WORLD_STARTING;
    }
    return p->job[n] > WORLD_STOPPING && p->job[n] != WORLD_FOREIGN ? WORLD_RUNNING : WORLD_FOREIGN;
}

bool call_looked(struct world *w, int c, int p, int v, const char **ret_wrong)
{
    struct memory *m = &w->ctl[c].part[p];
    if (m->look == LOOK_NONE) {
        return false;
    }
    uint8_t truth = w->part[p].job[m->n - 1];
    struct fact f = {.kind = FACT_DESCRIBED, .at_us = NOW_US};
    if (m->look == LOOK_NOT_FOUND) {
        if (v != 0) {
            return false;
        }
        truth = WORLD_NONE;
    } else if (v == 1) {
        truth = older(&w->part[p], m->n - 1);
        if (truth == WORLD_FOREIGN) {
            return false;
        }
    } else if (v == 2) {
        f.kind = FACT_DESCRIBE_FAILED;
    } else if (v == 3) {
        m->look = LOOK_NOT_FOUND;
        return world_free(truth);
    } else if (v == 4 && (!world_free(truth) || world_may_land(w, p, m->n - 1))) {
        return false;
    }
    if (f.kind == FACT_DESCRIBED && world_free(truth)) {
        f.kind = v == 4 ? FACT_GONE : FACT_NOT_FOUND;
        f.at_us = NOW_US - m->look_age * TICK_US;
    } else if (f.kind == FACT_DESCRIBED) {
        f.job = seen(truth);
    }
    m->look = m->look_age = 0;
    world_step(w, c, p, &f, ret_wrong);
    return true;
}

/* A List shows no environment, so it does not tell whose job it is. */
bool call_list(struct world *w, int c, int p, const char **ret_wrong)
{
    struct memory *m = &w->ctl[c].part[p];
    if (m->n == 0 || world_free(w->part[p].job[m->n - 1])) {
        return false;
    }
    struct fact f = {.kind = FACT_LISTED, .at_us = NOW_US, .job = seen(w->part[p].job[m->n - 1])};
    f.job.ours = true;
    world_step(w, c, p, &f, ret_wrong);
    return true;
}

bool call_send(struct world *w, int c, int p, int v, const char **ret_wrong)
{
    struct memory *m = &w->ctl[c].part[p];
    if (m->send != SEND_SIGNED) {
        return false;
    }
    if (v == 0) {
        m->send = SEND_SENT;
        return true;
    }
    m->send = m->send_valid = 0;
    world_step(w, c, p, &(struct fact){.kind = FACT_CREATE_UNSENT, .at_us = NOW_US}, ret_wrong);
    return true;
}

bool call_time_out(struct world *w, int c, int p, const char **ret_wrong)
{
    struct memory *m = &w->ctl[c].part[p];
    if (m->send != SEND_SENT) {
        return false;
    }
    world_orphan(w, p, m);
    world_step(w, c, p, &(struct fact){.kind = FACT_CREATE_UNKNOWN, .at_us = NOW_US}, ret_wrong);
    return true;
}

bool call_take_cancel(struct world *w, int c, int p, const char **ret_wrong)
{
    const struct memory *m = &w->ctl[c].part[p];
    if (m->n == 0 || !w->part[p].cancelled || (m->flags_lo & 1) == 0) {
        return false;
    }
    world_step(w, c, p, &(struct fact){.kind = FACT_UNWANTED, .at_us = NOW_US}, ret_wrong);
    return true;
}
