/* incremental_mode: what happens to existing output. incremental keeps finished shards and redoes
 * the others; overwrite removes an earlier output first; extend keeps it and numbers its own shards
 * after it. A marker, _mode.json, lets an interrupted overwrite or extend continue: without it the
 * next attempt would remove or duplicate the work of the last. */
#pragma once
#include "download/shard/shard.h"
#include "io/sink.h"
#include "manifest_extend.h"
#include "options.h"

#define INCREMENTAL_MODE_MARKER_KEY       "_mode.json"
#define INCREMENTAL_MODE_MARKER_BYTES_MAX 4096

/* Set *ret_done when this task has already finished here. For incremental the finished output of
 * another task is an error. Changes nothing. */
bool incremental_mode_is_done(struct sink *sink, const struct download_options *o, const char *task,
                              bool *ret_done, struct err *err) MUST_CHECK;
/* Prepare the output: overwrite removes it, and tells in p how far that is; extend sets
 * f->first_shard and returns the earlier output. Call once the input is known to be valid. */
bool incremental_mode_begin(struct sink *sink, const struct download_options *o, const char *task,
                            struct progress *p, struct shard_format *f, struct manifest_extend *ret,
                            struct err *err) MUST_CHECK;
/* Remove our marker, after the manifest or when the task has already finished. */
bool incremental_mode_end(struct sink *sink, const struct download_options *o, const char *task,
                          struct err *err) MUST_CHECK;
/* The first shard of its own interrupted overwrite or extend that it would continue; -1: none. */
bool incremental_mode_resumes(struct sink *sink, const struct download_options *o, const char *task,
                              int64_t *ret_first, struct err *err) MUST_CHECK;
/* Whether the output is the task's as far as can be told before its input is read; part: its name
 * in every campaign of the file. An extension of what another job writes is refused. */
bool incremental_mode_claims(struct sink *sink, const struct download_options *o, const char *task,
                             const char *part, bool *ret, struct err *err) MUST_CHECK;
