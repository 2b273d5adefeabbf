/* See metric_line.h. */
#include "metric_line.h"
#include "common/regex.h"
#include <math.h>
#include <stdlib.h>

#define NUMBER_CHARS_MAX 63
#define NUMBER_MAX       1e100              /* sums of them stay finite */
#define STEP_MAX         9007199254740992.0 /* 2^53: whole as a double */

struct metric_lines {
    int n;
    int step_i; /* -1: no metric is the step */
    int64_t step;
    struct {
        char *name;
        struct regex *re; /* NULL: set aside */
        int runaways;
    } of[SPEC_METRICS_MAX];
};

struct metric_lines *metric_lines_new(const struct spec_metric *metrics, int n)
{
    struct metric_lines *m = xcalloc(1, sizeof *m);
    struct err ignored = ERR_INIT;
    ASSERT(n >= 0 && n <= SPEC_METRICS_MAX);
    m->n = n;
    m->step_i = -1;
    m->step = -1;
    for (int i = 0; i < n; i++) {
        m->of[i].name = xstrdup(metrics[i].name);
        if (!regex_new(metrics[i].regex, &m->of[i].re, &ignored)) {
            m->of[i].re = NULL;
        }
        if (strcmp(metrics[i].name, METRIC_STEP) == 0) {
            m->step_i = i;
        }
    }
    return m;
}

void metric_lines_free(struct metric_lines *m)
{
    for (int i = 0; m != NULL && i < m->n; i++) {
        free(m->of[i].name);
        regex_free(m->of[i].re);
    }
    free(m);
}

int metric_lines_n(const struct metric_lines *m)
{
    return m->n;
}

const char *metric_lines_name(const struct metric_lines *m, int metric_i)
{
    ASSERT(metric_i >= 0 && metric_i < m->n);
    return m->of[metric_i].name;
}

int64_t metric_lines_step(const struct metric_lines *m)
{
    return m->step;
}

void metric_lines_set_step(struct metric_lines *m, int64_t step)
{
    m->step = step;
}

/* A whole text as a number, also nan and inf. */
static bool number(struct str text, double *ret)
{
    char copy[NUMBER_CHARS_MAX + 1];
    char *end;
    text = str_trim(text);
    if (text.n == 0 || text.n > NUMBER_CHARS_MAX) {
        return false;
    }
    memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    *ret = strtod(copy, &end);
    return end == copy + text.n;
}

bool metric_number(struct str text, double *ret)
{
    return number(text, ret) && fabs(*ret) <= NUMBER_MAX;
}

static bool value_of(struct metric_lines *m, int i, struct str line, double *ret)
{
    struct str group;
    if (m->of[i].re == NULL) {
        return false;
    }
    enum regex_result found = regex_first_group(m->of[i].re, line, &group);
    if (found == REGEX_LIMIT && ++m->of[i].runaways >= METRIC_RUNAWAYS_MAX) {
        regex_free(m->of[i].re);
        m->of[i].re = NULL;
    }
    if (found != REGEX_FOUND || metric_number(group, ret)) {
        return found == REGEX_FOUND;
    }
    bool printed = number(group, ret);
    *ret = NAN; /* a run that diverged must not seem good */
    return printed;
}

int metric_lines_read(struct metric_lines *m, usec_t at_us, struct str line,
                      struct metric_value *ret)
{
    int n = 0;
    double step;
    line.n = MIN(line.n, (size_t)METRIC_LINE_CHARS_MAX);
    if (m->step_i >= 0 && value_of(m, m->step_i, line, &step) && step >= 0 && step <= STEP_MAX) {
        m->step = (int64_t)step;
    }
    for (int i = 0; i < m->n; i++) {
        struct metric_value v = {.metric_i = i, .at_us = at_us, .step = m->step};
        if (i != m->step_i && value_of(m, i, line, &v.value)) {
            ret[n++] = v;
        }
    }
    return n;
}

const char *metric_lines_set_aside(const struct metric_lines *m)
{
    for (int i = 0; i < m->n; i++) {
        if (m->of[i].runaways >= METRIC_RUNAWAYS_MAX) {
            return m->of[i].name;
        }
    }
    return NULL;
}
