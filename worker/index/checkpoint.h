/* The checkpoint lets a stopped or killed index run continue: how many shards, from the first, are
 * completely in the output, the counts over them, and the state of the three output streams. It is
 * one object in the output folder, replaced as a whole: the JSON on its first line, then the bytes
 * of streams that are stored nowhere else yet. It is valid for one input and one set of settings.
 * For others, or when the streams are gone or the process that saved them is still alive, the next
 * run starts from the beginning.
 *
 * It is removed before the output appears under its names, so it never exists together with a
 * finished output. */
#pragma once
#include "io/sink.h"
#include "scan.h"
#include "shards.h"

#define CHECKPOINT_KEY       "_checkpoint"
#define CHECKPOINT_FILES     3
#define CHECKPOINT_BYTES_MAX ((size_t)256 << 20)

struct checkpoint_sums { /* a value: sums over the finished shards */
    struct scan_counts counts;
    int64_t read_bytes;
    int64_t streamed;
    char first_bad[256]; /* of the first bad archive; "": no bad one */
};
struct checkpoint {
    char fingerprint[65]; /* of input and settings */
    int64_t shards_done;
    struct checkpoint_sums sums;
};
/* A digest of everything the lines depend on. */
void checkpoint_fingerprint(const struct scan_config *c, const char *prefix,
                            const struct shards *shards, char out[static 65]);
/* Save the checkpoint. files[CHECKPOINT_FILES] are in the order of names[]; NULL: not started. */
bool checkpoint_save(struct sink *s, const struct checkpoint *c, struct sink_stream *const *files,
                     struct err *err) MUST_CHECK;
/* Load the checkpoint of an earlier run with the same fingerprint. *ret_found is false when there
 * is none that can be continued; then it and its temporary files are removed. The caller owns the
 * streams. */
bool checkpoint_load(struct sink *s, const char *fingerprint, const char *const *names,
                     struct checkpoint *ret, struct sink_stream **ret_files, bool *ret_found,
                     struct err *err) MUST_CHECK;
bool checkpoint_remove(struct sink *s, struct err *err) MUST_CHECK;
