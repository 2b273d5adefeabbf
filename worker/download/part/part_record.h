/* _part.json: what an output is made of, written before its first shard: the source (its size, the
 * checksum of its ends, its rows), the settings that shape what is written, and the task. Whoever
 * goes on with an output, extends it or finds it finished compares first, so that shards of another
 * part or of other settings are never taken for this one's. */
#pragma once
#include "download/shard/shard.h"
#include "input.h"
#include "io/sink.h"
#include "options.h"

#define PART_RECORD_KEY       "_part.json"
#define PART_RECORD_BYTES_MAX (4u << 20)

struct part_record; /* of this run */

/* Read the source's size and ends. The caller frees. */
bool part_record_new(const struct download_options *o, const struct input *in, const char *task,
                     int64_t rows, struct part_record **ret, struct err *err) MUST_CHECK;
void part_record_free(struct part_record *p);
/* Before anything is changed: may this run go on in that output (finished or not)? ERR_INVALID with
 * both values and what to do when it is of something else, or of nobody knows what. Overwrite may
 * always, unless it goes on with its own (resumed). */
bool part_record_check(const struct part_record *p, struct sink *sink, bool finished, bool resumed,
                       struct err *err) MUST_CHECK;
/* Write our entry, for shards from first_shard on, if it is not there; extend adds it to those of
 * the earlier parts. ERR_INVALID when another writer's is there by now. */
bool part_record_write(const struct part_record *p, struct sink *sink, int64_t first_shard,
                       struct err *err) MUST_CHECK;
