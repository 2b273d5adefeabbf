/* Warm pools: how many jobs start warm, what idle instances cost beside the plain way, and what the
 * warm starts save. JSON lines, means over seeds. */
#include "warm_world.h"
#include <stdio.h>

static const struct ww_case base = {
    .stages = 1, .slots = WW_SLOTS, .warm_quota = WW_SLOTS, .knows = true};

struct sums {
    int64_t idle_s, start_s, makespan_s;
    int after_first, reused, at_full, refused, ended, expired;
    int64_t outlived_s;
    double worst_reuse;
};

static struct sums run(struct ww *w, enum ww_policy policy)
{
    struct ww_case c = base;
    struct sums s = {.worst_reuse = 1};
    c.policy = policy;
    for (uint64_t seed = 1; seed <= WW_SEEDS; seed++) {
        if (!ww_run(w, &c, seed)) {
            (void)fprintf(stderr, "bench_warm: seed %llu did not come to an end\n",
                          (unsigned long long)seed);
            exit(1);
        }
        s.idle_s += w->r.idle_s;
        s.start_s += w->r.start_s;
        s.makespan_s += w->r.makespan_s;
        s.after_first += w->r.after_first;
        s.reused += w->r.reused;
        s.at_full += w->r.at_full;
        s.refused += w->r.refused;
        s.ended += w->r.ended;
        s.expired += w->r.expired;
        s.outlived_s = MAX(s.outlived_s, w->r.outlived_s);
        s.worst_reuse = MIN(s.worst_reuse, (double)w->r.reused / w->r.after_first);
    }
    return s;
}

static void print(const char *name, double value, const char *unit, const char *note)
{
    (void)printf("{\"name\":\"%s\",\"value\":%.4f,\"unit\":\"%s\",\"n\":%d,\"note\":\"%s\"}\n",
                 name, value, unit, WW_SEEDS, note);
}

int main(void)
{
    struct ww *w = xcalloc(1, sizeof *w);
    struct sums sched = run(w, WW_SCHED);
    struct sums none = run(w, WW_NONE);
    struct sums always = run(w, WW_ALWAYS);
    char note[200];
    (void)snprintf(note, sizeof note,
                   "of %d jobs after the first %d; worst seed %.3f; %.1f of them at %d of %d slots",
                   WW_PARTS - WW_SLOTS, WW_SLOTS, sched.worst_reuse,
                   (double)sched.at_full / WW_SEEDS, WW_SLOTS, WW_SLOTS);
    print("warm_reuse_ratio", (double)sched.reused / sched.after_first, "ratio", note);
    (void)snprintf(note, sizeof note,
                   "idle instance-seconds a campaign: %.0f; with keep-alive 3600 on every job %.0f",
                   (double)sched.idle_s / WW_SEEDS, (double)always.idle_s / WW_SEEDS);
    print("warm_idle_cost_ratio", (double)sched.idle_s / (double)always.idle_s, "ratio", note);
    (void)snprintf(note, sizeof note, "longest without a waiting task that matches; tick %d s",
                   WW_TICK_S);
    print("warm_pool_outlived_s", (double)sched.outlived_s, "s", note);
    (void)snprintf(note, sizeof note,
                   "start time saved less idle time paid, a campaign of %d; makespan %.3f of cold",
                   WW_PARTS, (double)sched.makespan_s / (double)none.makespan_s);
    print("warm_savings_instance_h",
          (double)(none.start_s - sched.start_s - sched.idle_s) / 3600 / WW_SEEDS, "h", note);
    free(w);
    return sched.refused + none.refused + always.refused == 0 ? 0 : 1;
}
