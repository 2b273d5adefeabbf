/* Decoding processes. Pictures are untrusted and decoders have bugs: each picture is decoded in a
 * process that has only a piece of shared memory and a socket, with limits on memory and CPU time
 * and, where the kernel supports it, a system call filter. When it dies, one image is lost and the
 * process is replaced.
 *
 * A small fork server, started before any thread, creates the processes, because forking a program
 * with threads is unsafe. All of them ignore SIGTERM (which may be sent to a whole process group)
 * and end when their socket closes or their parent dies. */
#pragma once
#include "decode.h"

#define DECODE_POOL_CPU_SECONDS_MAX 10 /* of one image */
#define DECODE_POOL_MEMORY_MAX      (UINT64_C(1) << 30)

struct decode_pool;
struct decode_pool_child; /* one decoding process; used by one thread at a time */

struct decode_pool_limits { /* of a child */
    uint64_t memory_max;
    unsigned cpu_seconds_max; /* of one image */
};

/* Call before the first thread. The options are copied into each child. */
bool decode_pool_new(const struct image_options *o, struct decode_pool **ret,
                     struct err *err) MUST_CHECK;
/* With other limits than the default. */
bool decode_pool_new_limited(const struct image_options *o, const struct decode_pool_limits *limits,
                             struct decode_pool **ret, struct err *err) MUST_CHECK;
void decode_pool_free(struct decode_pool *p);
/* Start a child; the caller frees it. An error means that none can be started. */
bool decode_pool_child_new(struct decode_pool *p, struct decode_pool_child **ret,
                           struct err *err) MUST_CHECK;
void decode_pool_child_free(struct decode_pool_child *c);
/* Decode body in the child; boxes as in decode_one. *ret_died: the child crashed or hit a limit and
 * was replaced; ret is then not written. Image and exif are appended to ret's buffers. An error
 * means that no child can be started. */
bool decode_pool_decode(struct decode_pool_child *c, struct str body, const struct bboxes *boxes,
                        struct decoded *ret, bool *ret_died, struct err *err) MUST_CHECK;
