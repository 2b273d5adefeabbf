/* incremental_mode: what becomes of what is in the output already. incremental keeps finished
 * shards and redoes the others; overwrite removes an earlier output first; extend leaves it and
 * numbers its own shards after it. A marker, _mode.json, lets an interrupted overwrite or extend of
 * a task go on where it was: without it the next attempt would remove, or double, the work of the
 * last. */
#pragma once
#include "options.h"
#include "shard.h"
#include "sink.h"

#define MODE_MARKER_KEY       "_mode.json"
#define MODE_MARKER_BYTES_MAX 4096

/* Has this task finished here already (*ret_done)? The finished output of another task is an error
 * for incremental. Nothing is changed. */
bool mode_is_done(struct sink *sink, const struct options *o, const char *task, bool *ret_done,
                  struct err *err) MUST_CHECK;
/* Make the output fit for the run: removes for overwrite, sets f->first_shard for extend. Called
 * when the input is known to be good. */
bool mode_begin(struct sink *sink, const struct options *o, const char *task,
                struct shard_format *f, struct err *err) MUST_CHECK;
/* After the manifest. */
bool mode_end(struct sink *sink, const struct options *o, struct err *err) MUST_CHECK;
