/* See gate.h. */
#include "gate.h"
#include <math.h>
#include <stdio.h>

/* NaN is neither below nor above anything. */
static bool is_good(const struct spec_gate *g, const struct gate_run *run)
{
    return (!g->has_below || run->value < g->below) && (!g->has_above || run->value > g->above);
}

static void say_value(const struct spec_gate *g, const struct gate_run *run, char *ret, size_t n)
{
    char step[40] = "";
    bool low = g->has_above && !(run->value > g->above);
    if (run->step >= 0) {
        (void)snprintf(step, sizeof step, " at step %lld", (long long)run->step);
    }
    (void)snprintf(ret, n, "%.64s is %.6g%s of run %lld, not %s %.6g", g->metric, run->value, step,
                   (long long)run->seq, low ? "above" : "below", low ? g->above : g->below);
}

static void say_unknown(const struct spec_gate *g, const struct gate_run *run, char *ret, size_t n)
{
    if (run->partly_read) {
        (void)snprintf(ret, n, "the log of run %lld was not read to its end: %.64s is not known",
                       (long long)run->seq, g->metric);
    } else {
        (void)snprintf(ret, n, "run %lld printed no %.64s", (long long)run->seq, g->metric);
    }
}

bool gate_passes(const struct spec_gate *g, const struct gate_run *runs, size_t n, int64_t skipped,
                 char *ret_text, size_t text_n)
{
    for (size_t i = 0; i < n && i < GATE_RUNS_MAX; i++) {
        if (!runs[i].known) {
            say_unknown(g, &runs[i], ret_text, text_n);
            return false;
        }
        if (!is_good(g, &runs[i])) {
            say_value(g, &runs[i], ret_text, text_n);
            return false;
        }
    }
    if (skipped > 0) {
        (void)snprintf(ret_text, text_n, "%lld of its runs %s skipped: %.64s is not known",
                       (long long)skipped, skipped == 1 ? "was" : "were", g->metric);
        return false;
    }
    if (n == 0 || n > GATE_RUNS_MAX) {
        (void)snprintf(ret_text, text_n,
                       n == 0 ? "none of its runs ended well" : "more runs than a gate looks at");
        return false;
    }
    return true;
}
