/* Names of shards' files: which number one has, ours or an earlier run's. */
#pragma once
#include "download/shard/shard.h"
#include "io/sink.h"

/* The endings of the names of a shard's objects in any output_format, in the order in which they
 * are removed: what marks it as finished comes first. NULL: no more. */
const char *shard_suffix(size_t i);
/* True for digits, 20 at most, and the suffix. */
bool shard_is_name(const char *name, const char *suffix);
/* -1: it is not the name of a shard's file. An earlier run may have written its numbers with
 * another count of digits (oom_shard_count), 20 at most; of folders, only those with ours are
 * meant. */
int64_t shard_number(const struct shard_format *f, const char *name);
/* True for the folder of a shard with any count of digits: its other files are there. */
bool shard_is_folder_of(const struct sink_listing *l, const char *name);
/* Remove an object of a shard, or with '/' at the end of its name a folder. */
bool shard_object_delete(struct sink *sink, const char *name, struct err *err) MUST_CHECK;
