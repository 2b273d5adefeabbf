/* The object our worker writes last: it says the output is whole. Fields: worker_protocol.h. */
#pragma once
#include "common/units.h"
#include "download/shard/stats.h"
#include "io/sink.h"
#include <jansson.h>

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
    /* Of an extended output: see worker_protocol.h. NULL: there is nothing before ours. */
    const json_t *earlier; /* array, borrowed */
    int64_t earlier_bytes; /* of those among objects that are not ours */
    int64_t first_shard;
};

/* The text. Beyond MANIFEST_STATUSES_MAX distinct texts the rarest are summed up as "(others)". */
void manifest_json(const struct manifest *m, struct buf *out);
/* The manifest that is there, an object; *ret is NULL when there is none. Caller decrefs. */
bool manifest_load(struct sink *s, json_t **ret, struct err *err) MUST_CHECK;
/* Is there a manifest already, and whose? *ret_task is NULL when there is none; caller frees. */
bool manifest_task(struct sink *s, char **ret_task, struct err *err) MUST_CHECK;
/* Is that task's output part of what a manifest (NULL: none) is of: its own or an earlier one that
 * was extended? Without a task (by hand, "") only its own counts. */
bool manifest_is_of(const json_t *manifest, const char *task);
