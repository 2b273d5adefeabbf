/* Whether a stage's gate lets the stages that need it start, by the last value of its metric that
 * each of its runs printed. Pure. */
#pragma once
#include "core/spec/spec.h"

#define GATE_RUNS_MAX 1000 /* looked at; a gate over more holds */

struct gate_run {     /* of a stage, by its newest good attempt */
    int64_t seq;      /* of the task */
    bool known;       /* the metric was found */
    double value;     /* its last one */
    int64_t step;     /* -1: not known */
    bool partly_read; /* its log was not read to its end: a value is SageMaker's */
};
/* skipped: runs of the stage that were done before, or that people gave up: what they would have
 * printed is not known. Writes why it holds, as "loss is 3.21 at step 500 of run 0, not below
 * 3". */
bool gate_passes(const struct spec_gate *g, const struct gate_run *runs, size_t n, int64_t skipped,
                 char *ret_text, size_t text_n);
