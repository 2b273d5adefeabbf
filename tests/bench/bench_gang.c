/* What reservations promise and what they cost: a run of 24 instances comes to a fleet of 24 to 32
 * slots busy with parts, and streams of runs and parts beside each other. Usage: bench_gang [SEEDS
 * [FIRST]]. Prints JSON lines. */
#include "tests/unit/statistics/gang_sim.h"

static void line(const char *name, double value, const char *unit, int n, const char *note)
{
    (void)printf("{\"name\":\"%s\",\"value\":%.4g,\"unit\":\"%s\",\"n\":%d,\"note\":\"%s\"}\n",
                 name, value, unit, n, note);
}

static void arrivals(uint64_t first, int seeds, enum gs_noise noise, int queue, const char *suffix,
                     const char *how)
{
    struct gs_result r = gs_arrivals(first, seeds, noise, queue);
    char name[64];
    char note[300];
    (void)snprintf(name, sizeof name, "gang_by_promise%s", suffix);
    (void)snprintf(note, sizeof note,
                   "share of runs of 24 started by their first promised P95; %s; wait %.0f s on "
                   "average, promised %.0f s, draining %.0f s",
                   how, r.wait_s, r.promise_s, r.wait_drain_s);
    line(name, (double)r.kept / r.seeds, "share", seeds, note);
    (void)snprintf(name, sizeof name, "gang_promise_ratio%s", suffix);
    (void)snprintf(note, sizeof note,
                   "mean wait promised over mean wait; median of the ratios %.3f, mean %.3f",
                   r.ratio_median, r.ratio_mean);
    line(name, r.promise_s / r.wait_s, "ratio", seeds, note);
    (void)snprintf(name, sizeof name, "gang_idle_ratio%s", suffix);
    (void)snprintf(note, sizeof note,
                   "slot-time idle while it waits over that of draining, same seeds; %.0f of %.0f "
                   "slot-s; %.1f parts backfilled a run, %.1f of them by spare slots",
                   r.idle_s, r.idle_drain_s, (double)r.check.backfilled / seeds,
                   (double)(r.check.backfilled - r.check.in_time) / seeds);
    line(name, r.idle_s / r.idle_drain_s, "ratio", seeds, note);
    (void)snprintf(name, sizeof name, "gang_backfill_broken%s", suffix);
    (void)snprintf(note, sizeof note,
                   "parts started with a P90 end after the promise and nothing spare; %lld of %lld "
                   "in-time starts ended after it all the same",
                   (long long)r.check.late, (long long)r.check.in_time);
    line(name, (double)r.check.broken, "parts", seeds, note);
}

static void streams(uint64_t first, int seeds, enum gs_load load, const char *suffix)
{
    struct gs_streams r = gs_streams_worst(first, seeds, load);
    char name[64];
    char note[300];
    (void)snprintf(name, sizeof name, "gang_longest_hunger%s", suffix);
    (void)snprintf(note, sizeof note,
                   "longest time without a start while some wait; parts %.0f s, runs of 24 %.0f s, "
                   "of 8 %.0f s; longest wait of one %.0f, %.0f, %.0f s; %d of %d ended",
                   r.hunger_s[0], r.hunger_s[1], r.hunger_s[2], r.wait_s[0], r.wait_s[1],
                   r.wait_s[2], r.ended, r.tasks);
    line(name, fmax(r.hunger_s[0], fmax(r.hunger_s[1], r.hunger_s[2])), "s", seeds, note);
}

int main(int argc, char **argv)
{
    int seeds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 200;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    if (seeds < 1) {
        (void)fprintf(stderr, "bench_gang: no seeds\n");
        return 2;
    }
    arrivals(first, seeds, GS_LOG_NORMAL, GS_QUEUE, "",
             "parts arrive; durations log-normal 0.1 around what size tells");
    arrivals(first, seeds, GS_UNIFORM, GS_QUEUE, "_uniform",
             "parts arrive; durations within 20 % of what size tells");
    /* Longest first leaves ends level: draining idles little, and there is little to fill. */
    arrivals(first, seeds, GS_LOG_NORMAL, GS_PARTS, "_batch",
             "all parts there from the start, longest first");
    streams(first, seeds, GS_ARRIVING, "");
    streams(first, seeds, GS_FULL, "_full");
    streams(first, seeds, GS_LARGE, "_large");
    return 0;
}
