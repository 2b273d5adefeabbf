/* Decoding processes. Pictures come from strangers and decoders have bugs: each picture is decoded
 * in a process that has nothing but a piece of shared memory and a socket, with limits on memory
 * and CPU time and, where the kernel has it, a filter of system calls. When it dies, one image is
 * lost and a new process is made.
 *
 * A small mother process, forked before any thread starts, makes them: forking a program that has
 * threads is not safe. All of them ignore SIGTERM (which may be sent to a whole process group) and
 * end when their socket closes or their parent dies. */
#pragma once
#include "decode.h"

#define DECODE_POOL_CPU_SECONDS_MAX 10 /* of one image */
#define DECODE_POOL_MEMORY_MAX      (UINT64_C(1) << 30)

struct decode_pool;
struct decode_pool_child; /* one decoding process; of one thread at a time */

struct decode_pool_limits { /* of a child */
    uint64_t memory_max;
    unsigned cpu_seconds_max; /* of one image */
};

/* Call before the first thread. The options are copied into each child. */
bool decode_pool_new(const struct image_options *o, struct decode_pool **ret,
                     struct err *err) MUST_CHECK;
/* With limits other than the usual. */
bool decode_pool_new_limited(const struct image_options *o, const struct decode_pool_limits *limits,
                             struct decode_pool **ret, struct err *err) MUST_CHECK;
void decode_pool_free(struct decode_pool *p);
bool decode_pool_child_new(struct decode_pool *p, struct decode_pool_child **ret,
                           struct err *err) MUST_CHECK;
void decode_pool_child_free(struct decode_pool_child *c);
/* Decode body in the child, boxes as decode_one takes them. *ret_died: it crashed or hit a limit
 * (ret is then not written) and has been replaced. Image and exif are appended to ret's buffers. An
 * error means that no child can be had any more. */
bool decode_pool_decode(struct decode_pool_child *c, struct str body, const struct bboxes *boxes,
                        struct decoded *ret, bool *ret_died, struct err *err) MUST_CHECK;
