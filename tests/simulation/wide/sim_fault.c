/* Draws whether a fault happens. Each fault has a random stream of its own and counts its
 * occurrences, so that removing one (sim_shrink.c) does not move the others. */
#include "sim_world.h"

static const struct {
    const char *word, *text;
    enum fault_kind kind;
    double most;
} faults[] = {
#define X(f, kind, most, text) {#f, text, kind, most},
#include "sim_faults.def"
#undef X
};

const char *fault_text(enum harm f)
{
    return faults[f].text;
}

const char *fault_word(enum harm f)
{
    return faults[f].word;
}

enum fault_kind fault_kind_of(enum harm f)
{
    return faults[f].kind;
}

static bool fires(struct world *w, enum harm f)
{
    uint32_t k = w->fires[f]++;
    if (w->cfg.deny[f] != NULL && k < FIRES_KEPT &&
        (w->cfg.deny[f][k / 8] & (1U << (k % 8))) != 0) {
        return false;
    }
    w->cover->faults[f]++;
    return true;
}

bool fault(struct world *w, enum harm f)
{
    double p = w->cfg.strength[f] * faults[f].most;
    return p > 0 && !w->calm && rng_chance(&w->rng_fault[f], p) && fires(w, f);
}

bool fault_open(const struct world *w, enum harm f)
{
    return w->open[f] > 0;
}

static void next_strike(struct world *w, enum harm f)
{
    double per_hour = w->cfg.strength[f] * faults[f].most;
    double u = rng_unit(&w->rng_fault[f]);
    int64_t gap_us = (int64_t)(2.0 * u * (double)HOUR / per_hour) + SEC;
    if (w->now_us + gap_us < w->fault_until_us) {
        ev_push(w, w->now_us + gap_us, EV_FAULT, 0, 0, (int)f, 0);
    }
}

void fault_start(struct world *w)
{
    for (int f = 0; f < FAULT_N; f++) {
        if (faults[f].kind != CHANCE && w->cfg.strength[f] > 0) {
            next_strike(w, (enum harm)f);
        }
    }
}

static struct ctl *some_ctl(struct world *w, enum harm f)
{
    return &w->ctl[rng_below(&w->rng_fault[f], (uint64_t)w->cfg.ctls)];
}

static void strike_ctl(struct world *w, enum harm f)
{
    struct ctl *c = some_ctl(w, f);
    struct rng *r = &w->rng_fault[f];
    if (f == FAULT_CRASH) {
        ctl_crash(w, c);
    } else if (f == FAULT_FREEZE) {
        ctl_freeze(w, c, between(r, 100 * 1000, 3 * w->cfg.lease_us));
    } else {
        static const int64_t steps[] = {-24 * HOUR, -HOUR, -7 * SEC, 7 * SEC, HOUR, 24 * HOUR};
        c->wall_ahead_us += steps[rng_below(r, ARRAY_LEN(steps))];
        tell(w, -1, "the wall clock of controller %d jumps", c->id);
    }
}

/* Picks a live job, preferably in a rare state. */
static int some_job(struct world *w, struct rng *r)
{
    int i = 0;
    for (int tries = 0; tries < 12; tries++) {
        i = (int)(w->aws.jobs_n - 1 - rng_below(r, MIN(w->aws.jobs_n, (size_t)40)));
        const struct job *j = &w->aws.jobs[i];
        const struct intent_seen *in = j->intent >= 0 ? &w->judge.intents[j->intent] : NULL;
        bool unknown = in != NULL && !in->lost && ATTEMPT(w, in->id)->state == ATTEMPT_UNKNOWN;
        if (!j->over && in != NULL &&
            (unknown || j->v.phase == PHASE_UPLOADING || j->v.status == JOB_STOPPING)) {
            break;
        }
    }
    return i;
}

static void strike_aws(struct world *w, enum harm f)
{
    struct rng *r = &w->rng_fault[f];
    int type = (int)rng_below(r, (uint64_t)w->kinds);
    if (f == FAULT_QUOTA_CHANGE) {
        w->aws.quota[type] = between(r, 0, 24);
        w->aws.warm_quota[type] = between(r, 0, 1) * w->aws.quota[type];
        w->aws.per_job = rng_chance(r, 0.5) ? between(r, 1, 8) : -1;
        w->aws.longest_run_s = rng_chance(r, 0.5) ? between(r, 1, 8) * 3600 : -1;
        w->aws.volume_gb = rng_chance(r, 0.5) ? between(r, 30, 480) : -1;
        tell(w, -1, "the quota of %s becomes %lld", w->types[type], (long long)w->aws.quota[type]);
    } else if (f == FAULT_PRICE_CHANGE) {
        w->aws.price[type] = between(r, 50000, 40000000);
        tell(w, -1, "the price of %s becomes %lld", w->types[type], (long long)w->aws.price[type]);
    } else if (f == FAULT_GHOST) {
        char name[64] = SIM_PREFIX "-ghost-0000";
        uint64_t n = rng_below(r, 10000);
        for (size_t i = strlen(name); n > 0; n /= 10) {
            name[--i] = (char)('0' + n % 10);
        }
        (void)aws_ghost(w, name, type);
    } else if (w->aws.jobs_n > 0) { /* HUMAN_STOP, REPLACED */
        int i = some_job(w, r);
        struct job *j = &w->aws.jobs[i];
        if (j->over || j->intent < 0 || j->deleted) {
            return;
        }
        tell(w, w->judge.intents[j->intent].task, "somebody %s job %s",
             f == FAULT_HUMAN_STOP ? "stops" : "replaces", j->name.s);
        j->by_human = true;
        if (f == FAULT_HUMAN_STOP) {
            job_stop(w, i);
        } else {
            struct job_name name = j->name;
            job_delete(w, i);
            w->judge.intents[j->intent].conflict = true;
            (void)aws_ghost(w, name.s, type);
        }
    }
}

/* A window opens: on what, and for how long. */
static void open_window(struct world *w, enum harm f)
{
    struct rng *r = &w->rng_fault[f];
    int64_t for_us = rng_chance(r, 0.3) ? between(r, 10, 60) * MINUTE : between(r, 5, 300) * SEC;
    int what = 0;
    w->open[f]++;
    if (f == FAULT_CUT_STORE || f == FAULT_CUT_AWS) {
        what = (int)rng_below(r, (uint64_t)w->cfg.ctls);
        *(f == FAULT_CUT_STORE ? &w->ctl[what].cut_store : &w->ctl[what].cut_aws) = true;
    } else if (f == FAULT_FOREIGN) {
        int type = (int)rng_below(r, (uint64_t)w->kinds);
        int64_t n = between(r, 1, MAX(1, w->aws.quota[type]));
        w->aws.foreign[type] += n;
        what = type + (int)n * KINDS_MAX;
    } else if (f == FAULT_CAPACITY || f == FAULT_PRICE_UNKNOWN) {
        what = (int)rng_below(r, (uint64_t)w->kinds);
        if (f == FAULT_CAPACITY) {
            w->aws.no_capacity[what] = true;
        } else {
            w->aws.price_known[what] = false;
        }
    }
    tell(w, -1, "%s, for %lld s", fault_text(f), (long long)(for_us / SEC));
    ev_push(w, MIN(w->now_us + for_us, w->fault_until_us), EV_CLOSE, 0, 0, (int)f, what);
}

void fault_close(struct world *w, enum harm f, int what)
{
    w->open[f]--;
    tell(w, -1, "over: %s", fault_text(f));
    if (f == FAULT_CUT_STORE) {
        w->ctl[what].cut_store = false;
    } else if (f == FAULT_CUT_AWS) {
        w->ctl[what].cut_aws = false;
    } else if (f == FAULT_FOREIGN) {
        w->aws.foreign[what % KINDS_MAX] -= what / KINDS_MAX;
    } else if (f == FAULT_CAPACITY) {
        w->aws.no_capacity[what] = false;
    } else if (f == FAULT_PRICE_UNKNOWN) {
        w->aws.price_known[what] = true;
    }
}

void fault_strike(struct world *w, enum harm f)
{
    next_strike(w, f);
    if (w->calm || !fires(w, f)) {
        return;
    }
    if (faults[f].kind == WINDOW) {
        open_window(w, f);
    } else if (f == FAULT_CRASH || f == FAULT_FREEZE || f == FAULT_CLOCK_STEP) {
        strike_ctl(w, f);
    } else if (f == FAULT_FAILOVER) {
        db_failover(w);
    } else if (f >= FAULT_OP_CANCEL) {
        op_strike(w, f);
    } else {
        strike_aws(w, f);
    }
}
