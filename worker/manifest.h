/* The object our worker writes last: it says the output is whole. Fields: worker_protocol.h. */
#pragma once
#include "common/units.h"
#include "download/stats.h"
#include "sink.h"

#define MANIFEST_BYTES_MAX    (512u << 20)
#define MANIFEST_STATUSES_MAX 256

struct manifest { /* value; strings borrowed */
    const char *task;
    const char *attempt;
    int64_t rows_in;
    int64_t rows_out;
    struct stats total; /* borrowed contents */
    usec_t started_us;
    usec_t ended_us;
    const struct sink_object *objects; /* objects[objects_n], by name */
    size_t objects_n;
};

/* The text. Beyond MANIFEST_STATUSES_MAX distinct texts the rarest are summed up as "(others)". */
void manifest_json(const struct manifest *m, struct buf *out);
/* Is there a manifest already, and whose? *ret_task is NULL when there is none; caller frees. */
bool manifest_task(struct sink *s, char **ret_task, struct err *err) MUST_CHECK;
