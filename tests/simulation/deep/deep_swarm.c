/* What a seed draws: which faults exist, how strong they are and when they strike, and all
 * sizes. Each fault has a random stream of its own, so that a draw for one does not move
 * another. */
#include "deep.h"
#include <math.h>
#include <stdio.h>

static const struct fault_row {
    const char *word;
    enum fault_kind kind;
    double most;
    const char *text;
} rows[FAULT_N] = {
#define X(f, kind, most, text) {#f, kind, most, text},
#include "deep_faults.def"
#undef X
};

const char *fault_word(enum harm f)
{
    return rows[f].text;
}

bool fault(enum harm f)
{
    struct world *w = deep;
    bool is = !w->calm && w->strength[f] > 0 && rng_chance(&w->rng_fault[f], w->strength[f]);
    w->disturbed_us = is ? w->now_us : w->disturbed_us;
    return is;
}

enum harm query_harm(const char *name)
{
    uint32_t hash = 2166136261u;
    if (deep == NULL || deep->cur == NULL) { /* the world's own */
        return FAULT_BUSY;
    }
    for (const char *c = name; *c != '\0'; c++) {
        hash = (hash ^ (uint8_t)*c) * 16777619u;
    }
    return deep->runs[hash % ARRAY_LEN(deep->runs)]++ < 8 ? FAULT_SELDOM : FAULT_BUSY;
}

/* Moves that came later have streams of their own: a world without them is as it was. */
#define MOVE(word, stream, chance, member)                                                         \
    {                                                                                              \
        word, stream, chance, offsetof(struct world, rng_##member), offsetof(struct world, member) \
    }
static const struct move {
    const char *word, *stream;
    double chance;
    size_t rng_at, has_at;
} moves[] = {
    MOVE("bad-rows", "poison", 0.25, poisons),   MOVE("listings", "listing", 0.16, listings),
    MOVE("holds", "held", 0.1, holds),           MOVE("late-bills", "bills", 0.16, late_bills),
    MOVE("figures", "figures", 0.04, figures),   MOVE("locks", "locks", 0.08, locks),
    MOVE("secrets", "secrets", 0.04, secrets),   MOVE("lies", "lies", 0.1, lies),
    MOVE("clocks", "clocks", 0.1, clocks),       MOVE("restores", "restores", 0.08, restores),
    MOVE("outputs", "outputs", 0.08, outputs),   MOVE("verbs", "operators", 0.08, operators),
    MOVE("crowds", "crowds", 0.03, crowds),      MOVE("lost-rows", "gone", 0.35, lost),
    MOVE("silence", "silence", 0.06, silent),    MOVE("imports", "imports", 0.5, imports),
    MOVE("stored", "stored", 0.025, stored),     MOVE("rates", "rates", 0.06, rates),
    MOVE("db-steps", "db-steps", 0.5, db_steps), MOVE("doomed", "doomed", 0.75, doomed),
};

static bool *has_move(struct world *w, const struct move *m)
{
    return (bool *)((char *)w + m->has_at);
}

static void moves_draw(struct world *w, uint64_t seed)
{
    struct rng all;
    rng_seed(&all, seed);
    for (size_t i = 0; i < ARRAY_LEN(moves); i++) {
        struct rng *r = (struct rng *)((char *)w + moves[i].rng_at);
        rng_split(&all, moves[i].stream, r);
        *has_move(w, &moves[i]) = rng_chance(r, moves[i].chance);
    }
    w->figures = w->figures || w->stored;
    w->operators = w->operators || (w->stored && rng_chance(&w->rng_stored, 0.5));
    w->restores = w->restores && !w->poisons && !w->listings && !w->figures && !w->locks;
    w->holds = w->holds || w->operators;
    w->lost = w->lost && w->poisons;
    w->lies = w->lies || (w->clocks && rng_chance(&w->rng_clocks, 0.4));
}

static bool has_word(struct world *w, const char *word, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(moves); i++) {
        if (strlen(moves[i].word) == len && memcmp(moves[i].word, word, len) == 0) {
            return *has_move(w, &moves[i]);
        }
    }
    return false;
}

bool swarm_has(uint64_t seed, const char *with)
{
    struct world *w = xcalloc(1, sizeof *w);
    moves_draw(w, seed);
    bool has = true;
    for (const char *p = with; has && p != NULL && *p != '\0'; p += *p == ',') {
        size_t len = strcspn(p, ",");
        has = has_word(w, p, len);
        p += len;
    }
    free(w);
    return has;
}

/* In a world in four with several droverds they were told leases of several lengths, as while a new
 * setting is rolled out. */
static void leases(struct world *w, const struct rng *all)
{
    struct rng r;
    rng_split(all, "leases", &r);
    bool differ = rng_chance(&r, 0.25);
    for (int i = 0; i < w->procs_n; i++) {
        int64_t shorter_us = MAX(15 * SEC, w->lease_us / between(&r, 2, 8));
        w->procs[i].lease_us = differ && rng_chance(&r, 0.5) ? shorter_us : w->lease_us;
    }
}

void swarm_draw(struct world *w, uint64_t seed)
{
    struct rng all, r;
    rng_seed(&all, seed);
    rng_split(&all, "swarm", &r);
    rng_split(&all, "time", &w->rng_time);
    rng_split(&all, "aws", &w->rng_aws);
    rng_split(&all, "people", &w->rng_people);
    moves_draw(w, seed);
    double exists = (double[]){0.0, 0.15, 0.3, 0.3, 0.5, 0.8}[rng_below(&r, 6)];
    for (int f = 0; f < FAULT_N; f++) {
        double u = rng_unit(&r), v = rng_unit(&r);
        bool usual = f == FAULT_VERBS || f == FAULT_CRASH || f == FAULT_CRASH_STEP ||
                     f == FAULT_PAUSE_RESUME || f == FAULT_LOG_DENIED;
        w->strength[f] = u < (usual ? MAX(exists, 0.85) : exists) ? rows[f].most * v * v : 0;
        rng_split(&all, rows[f].word, &w->rng_fault[f]);
    }
    w->seed = seed;
    for (int t = 0; t < TYPES; t++) {
        w->limits[t] = (struct use_limit){.now = DEEP_NEVER, .before = DEEP_NEVER};
    }
    w->procs_n = rng_chance(&r, 0.4) ? 2 : rng_chance(&r, 0.1) ? 3 : 1;
    w->campaigns_n = (int)(rng_chance(&r, 0.8) ? 2 : between(&r, 3, 5));
    w->calm_us = (rng_chance(&r, 0.8) ? between(&r, 30, 120) : between(&r, 120, 300)) * MINUTE;
    w->lease_us = (rng_chance(&r, 0.15) ? between(&r, 15, 60) : between(&r, 120, 600)) * SEC;
    w->tick_us = (rng_chance(&r, 0.15) ? between(&r, 20, 60) : between(&r, 120, 600)) * SEC;
    w->observe_us = between(&r, 15, 150) * SEC;
    w->quota_us = between(&r, 5, 60) * MINUTE;
    w->window_us = 15 * MINUTE;
    for (int i = 0; i < w->procs_n; i++) {
        w->procs[i].id = i;
        w->procs[i].boot_ahead_us = between(&r, 0, 1000) * SEC;
        w->procs[i].wall_ahead_us = rng_chance(&r, 0.2) ? between(&r, -60, 60) * SEC : 0;
        rng_split(&all, i == 0 ? "proc0" : i == 1 ? "proc1" : "proc2", &w->procs[i].rng);
    }
    leases(w, &all);
}

/* Secrets and seeds of the product, linked in place of common/rng.c: drawn from the seed, too. */
void __wrap_rng_secret(void *p, size_t n);
void __wrap_rng_secret(void *p, size_t n)
{
    uint8_t *at = p;
    for (size_t i = 0; i < n; i++) {
        at[i] = deep == NULL
                    ? 7
                    : (uint8_t)rng_u64(deep->cur != NULL ? &deep->cur->rng : &deep->rng_people);
    }
}

static void start_again(void *ctx, int64_t life)
{
    struct proc *p = ctx;
    if (!p->up && p->life == (uint32_t)life) {
        proc_start(p);
    } else if (p->up && p->stop) { /* still stopping */
        event_at(deep->now_us + SEC, start_again, p, life);
    }
}

/* Restarts a process that has died, as its supervisor would. */
static void watch(void *ctx, int64_t arg)
{
    struct proc *p = ctx;
    if (!p->up) {
        int64_t us = between(&deep->rng_time, 0, 60) * SEC;
        event_at(deep->now_us + us, start_again, p, p->life);
        event_at(deep->now_us + us + 20 * SEC, watch, p, arg);
        return;
    }
    event_at(deep->now_us + 20 * SEC, watch, p, arg);
}

static void strike_proc(enum harm f, struct rng *r)
{
    struct proc *p = &deep->procs[rng_below(r, (uint64_t)deep->procs_n)];
    int64_t n = between(r, 1, 200);
    int64_t lease_s = deep->lease_us / SEC; /* half of all freezes outlast a lease */
    int64_t us = (rng_chance(r, 0.5) ? between(r, 1, 30) : between(r, lease_s, 3 * lease_s)) * SEC;
    if (fault(FAULT_RESUME_LOADED)) { /* the next leader finds it paused */
        people_pause_resume();
    }
    if (f == FAULT_CRASH) {
        proc_kill(p);
    } else if (f == FAULT_CRASH_STEP) {
        p->step_crash = (int)n;
    } else if (f == FAULT_FREEZE) {
        proc_freeze(p, us);
    } else if (f == FAULT_RESTART) {
        trace("droverd %d is asked to stop", p->id);
        proc_stop(p);
    } else {
        p->wall_ahead_us += between(r, -600, 600) * SEC;
        trace("the wall clock of droverd %d steps: it is %lld s ahead", p->id,
              (long long)(p->wall_ahead_us / SEC));
    }
}

static void has_capacity(void *ctx, int64_t type)
{
    (void)ctx;
    deep->no_capacity[type] = false;
}

static void strike_aws(enum harm f, struct rng *r)
{
    int type = (int)rng_below(r, TYPES);
    if (f == FAULT_QUOTA_MOVES) {
        deep->quota[type][0] = between(r, 0, 12);
        deep->foreign[type] = between(r, 0, 4);
        trace("the quota of %s is %lld now, others use %lld", deep_types[type],
              (long long)deep->quota[type][0], (long long)deep->foreign[type]);
    } else if (f == FAULT_NO_CAPACITY) {
        deep->no_capacity[type] = true;
        event_at(deep->now_us + between(r, 5, 120) * MINUTE, has_capacity, NULL, type);
    } else {
        aws_strike(f, r);
    }
}

static void strike(void *ctx, int64_t arg);

static void next_strike(enum harm f)
{
    struct world *w = deep;
    double hours = -log(1.0 - rng_unit(&w->rng_fault[f])) / w->strength[f];
    if (hours < 1e4) {
        event_at(w->now_us + (int64_t)(hours * (double)HOUR), strike, NULL, f);
    }
}

static void strike(void *ctx, int64_t arg)
{
    enum harm f = (enum harm)arg;
    struct rng *r = &deep->rng_fault[f];
    (void)ctx;
    if (deep->calm) {
        return;
    }
    lies_disturbed();
    if (f == FAULT_CRASH || f == FAULT_CRASH_STEP || f == FAULT_FREEZE || f == FAULT_RESTART ||
        f == FAULT_WALL_STEP) {
        strike_proc(f, r);
    } else if (f == FAULT_DB_DOWN) {
        deep->db_down_until_us = deep->now_us + between(r, 1, 120) * SEC;
        trace("the database is gone for a while");
    } else if (f == FAULT_VERBS) {
        people_verb();
    } else if (f == FAULT_PAUSE_RESUME) {
        people_pause_resume();
    } else {
        strike_aws(f, r);
    }
    next_strike(f);
}

void faults_start(void)
{
    for (int f = 0; f < FAULT_N; f++) {
        if (rows[f].kind == RATE && deep->strength[f] > 0) {
            next_strike((enum harm)f);
        }
    }
    for (int i = 0; i < deep->procs_n; i++) {
        event_at(0, watch, &deep->procs[i], 0);
    }
}
