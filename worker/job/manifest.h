/* The manifest: the object our worker writes last, which says that the output is complete. Fields:
 * worker_protocol.h. */
#pragma once
#include "common/units.h"
#include "io/sink.h"
#include "stats.h"
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
    /* Of an extended output, see worker_protocol.h. NULL: no earlier parts. */
    const json_t *earlier; /* array, borrowed */
    int64_t earlier_bytes; /* bytes of the objects of earlier parts */
    int64_t first_shard;
};

/* Append the manifest's text. Beyond MANIFEST_STATUSES_MAX distinct statuses the rarest are added
 * up as "(others)". */
void manifest_json(const struct manifest *m, struct buf *out);
/* False (ERR_LIMIT): an output of this many objects, with name_bytes of names in all, is more than
 * the controller reads (WP_OBJECTS_MAX), so that a job of drover would end well and its part fail
 * all the same. Always true of a run by hand (attempt ""). */
bool manifest_can_be_checked(const char *attempt, int64_t objects, int64_t name_bytes,
                             struct err *err) MUST_CHECK;
/* Write it; create_only as sink_put. ERR_LIMIT when it is longer than MANIFEST_BYTES_MAX. */
bool manifest_put(struct sink *s, const struct manifest *m, bool create_only,
                  struct err *err) MUST_CHECK;
/* Load the existing manifest; *ret is NULL when there is none. The caller decrefs. */
bool manifest_load(struct sink *s, json_t **ret, struct err *err) MUST_CHECK;
/* The task of the existing manifest; *ret_task is NULL when there is no manifest. The caller frees
 * it. */
bool manifest_task(struct sink *s, char **ret_task, struct err *err) MUST_CHECK;
/* True when the task's output is covered by the manifest (NULL: false): its own, or an earlier one
 * that was extended. With task "" (run by hand) only its own counts. */
bool manifest_is_of(const json_t *manifest, const char *task);
