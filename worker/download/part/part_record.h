/* _part.json: the origin of an output, written before its first shard: the source (size, checksum
 * of its ends, rows), the settings that affect the output, and the task. A run that continues,
 * extends or checks an output compares it first, so that shards of another part or of other
 * settings are never mistaken for its own. */
#pragma once
#include "download/shard/shard.h"
#include "input.h"
#include "io/sink.h"
#include "options.h"

#define PART_RECORD_KEY       "_part.json"
#define PART_RECORD_BYTES_MAX (4u << 20)

struct part_record; /* of this run */

/* Read the sizes and ends of the source's files, of file_rows[i] rows each. The caller frees
 * *ret. */
bool part_record_new(const struct download_options *o, const struct input *in, const char *task,
                     const int64_t *file_rows, struct part_record **ret,
                     struct err *err) MUST_CHECK;
void part_record_free(struct part_record *p);
/* Check before any change that this run may continue in the output. ERR_INVALID, with both values
 * and a remedy, when the output is of something else or of unknown origin. Overwrite is always
 * allowed, unless it resumes its own output; resumed: the first shard of that, -1: it does not. */
bool part_record_check(const struct part_record *p, struct sink *sink, bool finished,
                       int64_t resumed, struct err *err) MUST_CHECK;
/* Before the input is known: whether the last entry is of the task, or there is none. */
bool part_record_may_be_of(struct sink *sink, const char *task);
/* Write our entry, for shards from first_shard on, unless it exists; extend adds it to those of the
 * earlier parts. ERR_INVALID when another writer's entry appeared meanwhile. */
bool part_record_write(const struct part_record *p, struct sink *sink, int64_t first_shard,
                       struct err *err) MUST_CHECK;
/* True when all shards of the last entry are there: its job is at work no more, or has ended. Else
 * ERR_CONFLICT. */
bool part_record_ended(struct sink *sink, const struct shard_format *f, struct err *err) MUST_CHECK;
