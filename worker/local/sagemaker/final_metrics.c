/* See final_metrics.h. */
#include "final_metrics.h"
#include "common/regex.h"
#include "local/app.h"
#include "local/services/services.h"
#include <math.h>
#include <stdio.h>

#define TAIL_BYTES      (256 << 10)
#define DEFINITIONS_MAX 40

struct final_metric {
    const char *name;
    struct regex *regex;
    double value;
    int64_t at_ms; /* -1: not found yet */
};

static bool number(struct str text, double *ret)
{
    char copy[64];
    char *end = NULL;
    if (text.n == 0 || text.n >= sizeof copy) {
        return false;
    }
    (void)snprintf(copy, sizeof copy, STR_FMT, STR_ARG(text));
    *ret = strtod(copy, &end);
    return *end == '\0' && isfinite(*ret);
}

static void line_read(struct final_metric *m, size_t n, int64_t ms, struct str text)
{
    struct str group;
    double value;
    for (size_t i = 0; i < n; i++) {
        if (ms >= m[i].at_ms && regex_first_group(m[i].regex, text, &group) == REGEX_FOUND &&
            number(group, &value)) {
            m[i].value = value;
            m[i].at_ms = ms;
        }
    }
}

static void log_read(const char *path, struct final_metric *m, size_t n)
{
    AUTO_FILE FILE *f = fopen(path, "re");
    AUTO_FREE char *line = NULL;
    size_t cap = 0;
    ssize_t got;
    if (f == NULL) {
        return;
    }
    bool whole = fseeko(f, -(off_t)TAIL_BYTES, SEEK_END) != 0;
    if (whole) {
        (void)fseeko(f, 0, SEEK_SET);
    }
    while ((got = getline(&line, &cap, f)) > 0) {
        struct str text = {line, (size_t)got - (line[got - 1] == '\n')};
        struct str stamp = str_split(&text, ' ');
        int64_t ms = 0;
        if (whole && parse_i64(stamp, 0, INT64_MAX, &ms, NULL)) {
            line_read(m, n, ms, text);
        }
        whole = true; /* the first one may be the rest of a line */
    }
}

json_t *final_metrics(const struct app *app, const struct local_job *job)
{
    const json_t *algorithm = json_object_get(job->request, "AlgorithmSpecification");
    const json_t *defined = json_object_get(algorithm, "MetricDefinitions");
    struct final_metric m[DEFINITIONS_MAX];
    struct err err = ERR_INIT;
    char path[PATH_MAX];
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(defined) && n < DEFINITIONS_MAX; i++) {
        const json_t *d = json_array_get(defined, i);
        m[n] = (struct final_metric){.name = json_string_value(json_object_get(d, "Name")),
                                     .at_ms = -1};
        n += regex_new(json_string_value(json_object_get(d, "Regex")), &m[n].regex, &err);
    }
    for (int64_t k = 1; n > 0 && k <= job->instances; k++) {
        if (logs_path(app, job, k, path)) {
            log_read(path, m, n);
        }
    }
    json_t *list = NULL;
    for (size_t i = 0; i < n; i++) {
        if (m[i].at_ms >= 0) {
            list = list != NULL ? list : json_array();
            (void)json_array_append_new(list, json_pack("{s:s, s:f, s:f}", "MetricName", m[i].name,
                                                        "Value", m[i].value, "Timestamp",
                                                        (double)m[i].at_ms / 1e3));
        }
        regex_free(m[i].regex);
    }
    return list;
}
