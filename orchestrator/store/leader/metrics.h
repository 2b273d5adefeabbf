/* Metric series of training jobs, written by the leader from their logs. Written between
 * leader_begin and leader_commit. Errors: those of query.h. */
#pragma once
#include "core/metrics/gate.h"
#include "core/metrics/metric_place.h"
#include "core/model.h"
#include "core/rows.h"
#include "store/pg/connection.h"

struct metric_source_row { /* the log of an attempt that is still read */
    int64_t attempt_id, campaign_id;
    struct job_name job;
    struct metric_place place;
    int64_t step;       /* of the last line that had one; -1: none */
    char *metrics_json; /* [[name, regex], ...]; caller frees */
};
/* All of them, by id; the caller frees them. */
bool view_metric_sources(struct store *s, struct metric_source_row **ret, size_t *ret_n,
                         struct err *err) MUST_CHECK;
/* Values behind those that are there; the arrays lie side by side. */
struct metric_points {
    const char *const *names; /* [names_n], each once */
    size_t names_n;
    const int64_t *name_i; /* [n] into names */
    const int64_t *at_us, *step;
    const double *value;
    size_t n;
};
bool store_metric_points(struct store *s, int64_t attempt_id, const struct metric_points *p,
                         struct err *err) MUST_CHECK;
/* note "": as before. */
bool store_metric_source(struct store *s, int64_t attempt_id, const struct metric_place *place,
                         int64_t step, const char *note, struct err *err) MUST_CHECK;
/* The log is read no more. names[n] with their final values. */
bool store_metric_close(struct store *s, int64_t attempt_id, const char *const *names,
                        const double *values, size_t n, struct err *err) MUST_CHECK;
/* What a gate is judged by: at most n runs of a stage into ret, in order. *ret_complete: no log of
 * them is still being read. */
bool view_gate_values(struct store *s, int64_t stage_id, const char *metric, struct gate_run *ret,
                      size_t n, size_t *ret_n, bool *ret_complete, struct err *err) MUST_CHECK;
