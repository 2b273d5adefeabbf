/* A request shown before it is sent: what only its start decides stands as a placeholder. */
#pragma once
#include "common/arena.h"
#include "training_request.h"

struct preview_attempt { /* NULL or 0: as the stage says */
    const char *name;
    int64_t id;
    const char *instance_type;
    int volume_gb;
    int64_t max_runtime_s;
};
/* Writes the request of one attempt of `task` into *ret. ERR_INVALID as training_request_make. */
bool request_preview(const struct spec *s, const struct spec_stage *stage,
                     const struct spec_task *task, const struct preview_attempt *attempt,
                     const char *region, struct buf *ret, struct err *err) MUST_CHECK;
/* The three requests of a stage of kind endpoint, by their operations: {"CreateModel": {...},
 * "CreateEndpointConfig": {...}, "CreateEndpoint": {...}}. The model of another stage is where its
 * first attempt would leave it. ERR_INVALID as endpoint_request_make. */
bool request_preview_endpoint(const struct spec *s, const struct spec_stage *stage,
                              const char *region, struct buf *ret, struct err *err) MUST_CHECK;
/* {"CreateFileSystem": {...}} of a stage of kind lustre. ERR_INVALID as filesystem_request_make. */
bool request_preview_filesystem(const struct spec *s, const struct spec_stage *stage,
                                struct buf *ret, struct err *err) MUST_CHECK;
/* The first task of a stage before its input is known: the uri is the pattern with zeros for its
 * stars. The uri lives in `a`. */
struct spec_task request_preview_task(const struct spec_stage *stage, struct arena *a);
