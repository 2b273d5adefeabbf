/* Aim: named situations with an expected result. Method: worlds of the simulator without random
 * faults, set up and observed from here; the judge of the simulation judges them, too. Prints
 * TAP and figures.
 *
 * Usage: scenarios [NAME ...] */
#include "sim_world.h"
#include <stdio.h>

#define QUOTA 18

static int failed;

static bool say(bool ok, const char *name, const char *what)
{
    printf("%s - scenario %s: %s\n", ok ? "ok" : "not ok", name, what);
    failed += !ok;
    return ok;
}

/* One campaign with one stage of equal parts on one type, and no wishes of people. */
static void plain(struct sim_config *c, uint64_t seed, int parts)
{
    swarm_draw(seed, c);
    memset(c->strength, 0, sizeof c->strength);
    c->ctls = c->projects = c->campaigns = c->types = 1;
    c->parts = parts;
    c->fault_us = 6 * HOUR;
    c->tick_us = 2 * SEC;
    c->observe_us = 10 * SEC;
    c->create_rate = 1;
    c->create_burst = 16;
}

static void made(struct world *w)
{
    op_guard(w, &(struct breaker_rules){.canary = 3, .k = 3, .n = 10, .quarantine = 3});
    w->aws.quota[0] = QUOTA;
    w->aws.warm_quota[0] = 0;
    for (int i = 0; i < MARKET_COUNT; i++) {
        w->aws.total_quota[i] = -1;
    }
    w->aws.per_job = w->aws.longest_run_s = w->aws.volume_gb = -1;
    w->aws.price[0] = 4 * MUSD_PER_USD;
    w->type_limit[0] = w->global_limit = w->project_limit[0] = -1;
    w->spec[0].parts_limit = -1;
    w->spec[0].instances_n = 0;
    w->spec[0].stages_n = 1;
    w->spec[0].at_limit = AT_LIMIT_DRAIN;
    w->stage[0].instance_type_n = w->stage[0].instance_count = 1;
    w->stage[0].spot = false;
    w->stage[0].max_runtime_s = w->stage[0].min_runtime_s = 3600;
    memset(w->stage[0].retry, 0, sizeof w->stage[0].retry);
    w->nature[0].base_s = 600;
    w->nature[0].per_mb_ms = 0;
    w->nature[0].all_fail = NULL;
    ((struct budget *)db_row(w, T_GLOBAL, 0))->cap_musd = -1;
    ((struct budget *)db_row(w, T_PROJECT, 0))->cap_musd = -1;
}

/* Removes the limits and caps that a submit has drawn. */
static void open_caps(struct world *w)
{
    CAMPAIGN(w, 0)->version++;
    STAGE(w, 0)->parts_limit = -1;
    STAGE(w, 0)->money.cap_musd = -1;
    CAMPAIGN(w, 0)->money.cap_musd = -1;
    w->stage[0].per_task_musd = -1;
    for (size_t i = 0; i < w->db.t[T_TASK].n; i++) {
        TASK(w, i)->money.cap_musd = -1;
    }
}

static bool there(const struct world *w)
{
    return w->db.t[T_CAMPAIGN].n > 0;
}

struct bug {
    const char *text;
    bool begun;
    int64_t paid, held_us;
};

static void bug_made(struct world *w)
{
    made(w);
    w->nature[0].all_fail = ((struct bug *)w->cfg.scenario)->text;
    w->nature[0].base_s = 200; /* with a durable shard after five minutes it would pass */
}

static void bug_watch(struct world *w)
{
    struct bug *b = w->cfg.scenario;
    if (!there(w) || b->held_us != 0) {
        return;
    }
    if (!b->begun) {
        open_caps(w);
        b->begun = true;
    }
    b->paid = w->aws.accepted;
    b->held_us = STAGE(w, 0)->state == STAGE_HELD ? w->now_us : 0;
}

/* Three controllers, replies that take up to 150 ms or are lost, crashes, freezes, jobs of minutes.
 */
static void bug_fails_every_part(const char *name)
{
    static const char *const texts[] = {
        "AlgorithmError: ExecuteUserScriptError: the same in every part, exit code: 2",
        "something nobody has read before, exit code: 99",
        "AlgorithmError: Framework Error: OSError: [Errno 28] No space left on device"};
    static const enum harm harms[] = {FAULT_CRASH,      FAULT_FREEZE,         FAULT_CRASH_COMMIT,
                                      FAULT_DROP_AFTER, FAULT_COMMIT_UNKNOWN, FAULT_VIEW_STALE};
    struct coverage *cover = xcalloc(1, sizeof *cover);
    int64_t most = 0, held = 0, runs = 0, broken = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct sim_config c;
        struct outcome o;
        struct bug b = {.text = texts[seed % ARRAY_LEN(texts)]};
        plain(&c, seed, 128);
        c.ctls = CTLS_MAX;
        for (size_t i = 0; seed > 3 && i < ARRAY_LEN(harms); i++) {
            c.strength[harms[i]] = 0.3;
        }
        c.made = bug_made;
        c.watch = bug_watch;
        c.scenario = &b;
        c.until_us = 4 * HOUR;
        sim_run(&c, cover, &o);
        runs++;
        broken += o.broken;
        held += b.held_us != 0;
        most = MAX(most, b.paid);
    }
    char what[160];
    (void)snprintf(what, sizeof what,
                   "%lld of %lld runs held, at most %lld attempts paid before (canary 3, k 3), "
                   "%lld promises broken",
                   (long long)held, (long long)runs, (long long)most, (long long)broken);
    (void)say(held == runs && most <= 3 && broken == 0, name, what);
    free(cover);
}

#define FROM_US  (20 * MINUTE)
#define TO_US    (FROM_US + HOUR)
#define AFTER_US (TO_US + HOUR)

struct throttle {
    bool on, begun, open;
    struct traffic before, during,
        after; /* calls at the beginning and the end of that hour, and one hour later */
    int64_t accepted_at_end, resumed_us, seen_us;
    int64_t failed, attempts, done;
};

static void throttle_watch(struct world *w)
{
    struct throttle *t = w->cfg.scenario;
    if (there(w) && !t->begun) {
        open_caps(w);
        t->begun = true;
    }
    if (w->now_us < FROM_US) {
        t->before = w->traffic;
    }
    if (w->now_us < TO_US) {
        t->during = w->traffic;
        t->accepted_at_end = w->aws.accepted;
    } else if (t->resumed_us == 0 && w->aws.accepted > t->accepted_at_end) {
        t->resumed_us = w->now_us;
    }
    if (w->now_us < AFTER_US) {
        t->after = w->traffic;
    }
    bool open = t->on && w->now_us >= FROM_US && w->now_us < TO_US;
    w->open[FAULT_THROTTLE] += open - t->open;
    t->open = open;
}

static void throttle_ended(struct world *w)
{
    struct throttle *t = w->cfg.scenario;
    t->failed = STAGE(w, 0)->counts[TASK_FAILED];
    t->done = STAGE(w, 0)->counts[TASK_DONE];
    for (size_t i = 0; i < w->db.t[T_TASK].n; i++) {
        t->attempts += TASK(w, i)->attempts;
    }
}

static int64_t calls(const struct traffic *from, const struct traffic *to)
{
    return to->calls - from->calls;
}

static void throttle_run(uint64_t seed, bool on, struct throttle *t, struct outcome *o)
{
    struct coverage *cover = xcalloc(1, sizeof *cover);
    struct sim_config c;
    *t = (struct throttle){.on = on};
    plain(&c, seed, 300);
    c.made = made;
    c.watch = throttle_watch;
    c.ended = throttle_ended;
    c.scenario = t;
    sim_run(&c, cover, o);
    free(cover);
}

static void throttle_of_an_hour(const char *name)
{
    static const struct traffic none;
    char what[800];
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct throttle quiet, t;
        struct outcome o, ignored;
        throttle_run(seed, false, &quiet, &ignored);
        throttle_run(seed, true, &t, &o);
        int64_t normal = calls(&quiet.before, &quiet.during);
        int64_t during = calls(&t.before, &t.during), after = calls(&t.during, &t.after);
        int64_t all = calls(&none, &t.after);
        int64_t retries = t.after.retries, firsts = all - retries;
        int64_t periods_x10 = (t.resumed_us - TO_US) * 10 / (10 * SEC);
        bool parts = !o.broken && t.failed == 0 && t.done == 300 && t.attempts == 300;
        bool traffic =
            during * 10 <= normal * 11 && after * 10 <= normal * 11 && all * 10 <= firsts * 11;
        bool resumed = t.resumed_us != 0 && t.resumed_us - TO_US <= 2 * 10 * SEC;
        (void)snprintf(
            what, sizeof what,
            "%lld parts done, %lld failed, %lld attempts consumed; calls in the hour %lld, in "
            "the next %lld, normal %lld; of all %lld first tries and %lld retries; starts again "
            "after %.1f periods%s%s",
            (long long)t.done, (long long)t.failed, (long long)(t.attempts - t.done),
            (long long)during, (long long)after, (long long)normal, (long long)firsts,
            (long long)retries, (double)periods_x10 / 10, o.broken ? "; " : "",
            o.broken ? o.what : "");
        (void)say(parts && traffic && resumed, name, what);
    }
}

#define CUT_US (25 * MINUTE) /* then nobody may spend any more */
#define PARTS  40

struct cap {
    int level;
    enum at_limit at_limit;
    bool begun, cut;
    musd_t cap_musd;
    int64_t held_us, live_at;                              /* when the campaign was held */
    int64_t started, started_before, stopped, done, waits; /* waits: parts that wait for money */
    int64_t failed;
};

static void cap_made(struct world *w)
{
    const struct cap *k = w->cfg.scenario;
    made(w);
    w->spec[0].at_limit = k->at_limit;
    if (k->level == BUDGET_TASK) { /* each first try leaves too little for a second one; none cut */
        w->nature[0].all_fail =
            "InternalServerError: We encountered an internal error. Please try again.";
        op_guard(w, &(struct breaker_rules){0});
    }
}

/* Edits as a person does: the leader sees it by the campaign's version. */
static void cap_set(struct world *w, const struct cap *k)
{
    struct budget *b[BUDGET_LEVELS];
    CAMPAIGN(w, 0)->version++;
    if (k->level == BUDGET_TASK) {
        w->stage[0].per_task_musd = k->cap_musd;
        for (size_t i = 0; i < w->db.t[T_TASK].n; i++) {
            TASK(w, i)->money.cap_musd = k->cap_musd;
        }
        return;
    }
    rows_budgets(w, 0, false, b);
    b[k->level]->cap_musd = k->cap_musd;
}

static int64_t count_stopped(struct world *w)
{
    int64_t n = 0;
    for (size_t i = 0; i < w->aws.jobs_n; i++) {
        n += w->aws.jobs[i].stop_asked;
    }
    return n;
}

static void cap_watch(struct world *w)
{
    struct cap *k = w->cfg.scenario;
    if (!there(w) || w->calm) {
        return;
    }
    if (!k->begun) {
        open_caps(w);
        cap_set(w, k);
        k->begun = true;
    }
    if (!k->cut && k->level != BUDGET_TASK && w->now_us >= CUT_US) {
        k->cut = true;
        k->cap_musd = 1;
        k->started_before = (int64_t)w->db.t[T_ATTEMPT].n;
        cap_set(w, k);
    }
    if (k->cut && CAMPAIGN(w, 0)->state == CAMPAIGN_HELD && k->held_us == 0) {
        k->held_us = w->now_us;
        k->live_at = STAGE(w, 0)->counts[TASK_ACTIVE];
    }
    k->started = (int64_t)w->db.t[T_ATTEMPT].n;
    k->stopped = count_stopped(w);
    k->done = STAGE(w, 0)->counts[TASK_DONE];
    k->failed = STAGE(w, 0)->counts[TASK_FAILED];
    enum wait_reason why = k->level == BUDGET_STAGE ? WAIT_STAGE_BUDGET : WAIT_BUDGET;
    k->waits = STAGE(w, 0)->reason == why ? STAGE(w, 0)->counts[TASK_WAITING] : 0;
}

/* The expected result when a cap is cut to nothing while jobs run. */
static bool cap_good(const struct cap *k)
{
    if (k->level == BUDGET_TASK) { /* a part fails when its own cap pays for no other attempt */
        return k->started == PARTS && k->failed == PARTS && k->held_us == 0;
    }
    bool own = k->level == BUDGET_CAMPAIGN;
    /* A stage's cap closes that stage; the campaign is held, since it has no other. */
    bool drain = k->at_limit == AT_LIMIT_DRAIN || k->level == BUDGET_STAGE;
    bool stops = own && k->at_limit == AT_LIMIT_STOP;
    bool held = drain ? k->held_us != 0 && k->live_at == 0
                : own ? k->held_us != 0 && k->live_at > 0
                      : k->held_us == 0; /* another campaign may have spent it: it waits */
    bool ran_on = k->done == k->started;
    return held && k->waits > 0 && k->started_before >= 6 && k->started == k->started_before &&
           (stops ? k->stopped > 0 && !ran_on : k->stopped == 0 && ran_on);
}

static void cap_at(const char *name, int level, enum at_limit at_limit)
{
    static const char *const levels[] = {[BUDGET_TASK] = "task",
                                         [BUDGET_STAGE] = "stage",
                                         [BUDGET_CAMPAIGN] = "campaign",
                                         [BUDGET_PROJECT] = "project",
                                         [BUDGET_GLOBAL] = "global"};
    static const char *const ways[] = {
        [AT_LIMIT_DRAIN] = "drain", [AT_LIMIT_STOP] = "stop", [AT_LIMIT_HOLD] = "hold"};
    struct coverage *cover = xcalloc(1, sizeof *cover);
    struct sim_config c;
    struct outcome o;
    struct err err = ERR_INIT;
    struct cap k = {.level = level, .at_limit = at_limit};
    musd_t one = 0;
    plain(&c, 1, PARTS);
    c.fault_us = 3 * HOUR;
    bool ok = cost_worst_case(4 * MUSD_PER_USD, 1, 3600, 0, &one, &err);
    ASSERT(ok);
    k.cap_musd = level == BUDGET_TASK ? one : 6 * one;
    c.made = cap_made;
    c.watch = cap_watch;
    c.scenario = &k;
    sim_run(&c, cover, &o);
    char what[800], held[80] = "not held";
    if (k.held_us != 0) {
        (void)snprintf(held, sizeof held, "held %lld s later with %lld jobs live",
                       (long long)((k.held_us - CUT_US) / SEC), (long long)k.live_at);
    }
    (void)snprintf(what, sizeof what,
                   "cap of the %s, at_limit %s, cut to nothing after %lld starts: %lld more, %s, "
                   "%lld stopped, "
                   "%lld parts done, %lld failed, %lld wait for money; with the cap gone %s%s",
                   levels[level], ways[at_limit], (long long)k.started_before,
                   (long long)(k.started - k.started_before), held, (long long)k.stopped,
                   (long long)k.done, (long long)k.failed, (long long)k.waits,
                   o.broken ? "" : "all ends well", o.broken ? o.what : "");
    (void)say(!o.broken && cap_good(&k), name, what);
    free(cover);
}

static void caps_at_five_levels(const char *name)
{
    for (int level = 0; level < BUDGET_LEVELS; level++) {
        cap_at(name, level, AT_LIMIT_DRAIN);
        cap_at(name, level, AT_LIMIT_STOP);
        cap_at(name, level, AT_LIMIT_HOLD);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(const char *name);
    } all[] = {{"bug_fails_every_part", bug_fails_every_part},
               {"throttle_of_an_hour", throttle_of_an_hour},
               {"caps_at_five_levels", caps_at_five_levels}};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        bool wanted = argc == 1;
        for (int k = 1; k < argc; k++) {
            wanted |= strcmp(argv[k], all[i].name) == 0;
        }
        if (wanted) {
            all[i].run(all[i].name);
        }
    }
    return failed == 0 ? 0 : 1;
}
