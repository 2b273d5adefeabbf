/* From a line of a training job's log to the figures it prints: the metric definitions of its stage
 * are tried on it. Bounded: a long line is cut, and a pattern that keeps running away is set aside.
 * Pure. */
#pragma once
#include "common/str.h"
#include "common/units.h"
#include "core/spec/spec.h"

#define METRIC_LINE_CHARS_MAX 4096
#define METRIC_RUNAWAYS_MAX   20     /* of one pattern, then it is tried no more */
#define METRIC_STEP           "step" /* its value is the step of the other metrics */

struct metric_value {
    int metric_i;
    usec_t at_us;
    int64_t step; /* of this line or of the last that had one; -1: none yet */
    double value; /* finite, at most 1e100; NaN: the line says nan, inf or more */
};
struct metric_lines;
/* A metric that does not compile is never found: validation has refused it. */
struct metric_lines *metric_lines_new(const struct spec_metric *metrics, int n);
void metric_lines_free(struct metric_lines *m);
int metric_lines_n(const struct metric_lines *m);
const char *metric_lines_name(const struct metric_lines *m, int metric_i);
/* The step of the last line that had one; -1: none. Set after a takeover. */
int64_t metric_lines_step(const struct metric_lines *m);
void metric_lines_set_step(struct metric_lines *m, int64_t step);
/* The values on one line into ret[SPEC_METRICS_MAX], in the order of the definitions; the step is
 * none of them. Returns how many. */
int metric_lines_read(struct metric_lines *m, usec_t at_us, struct str line,
                      struct metric_value *ret);
/* The first metric that was set aside; NULL: none was. */
const char *metric_lines_set_aside(const struct metric_lines *m);
/* A whole text as a finite number; spaces around it are left out. */
bool metric_number(struct str text, double *ret);
