/* What makes an index that was stopped or killed go on: how many shards, from the first, are
 * completely in the output, what was counted in them, and the three streams as they were then. One
 * object beside the output, replaced as a whole: the JSON on its first line, then the bytes of
 * streams that lie nowhere else yet. It is of one input and one set of settings: for another, the
 * next run begins anew, as it does when the streams are gone or the process that saved them lives.
 *
 * Removed before the output appears under its names, so it never stands beside a finished one. */
#pragma once
#include "io/sink.h"
#include "scan.h"
#include "shards.h"

#define CHECKPOINT_KEY       "_checkpoint"
#define CHECKPOINT_FILES     3
#define CHECKPOINT_BYTES_MAX ((size_t)48 << 20)

struct checkpoint_sums { /* over the shards that are done; value */
    struct scan_counts counts;
    int64_t read_bytes;
    int64_t streamed;
    char first_bad[256]; /* of the first bad archive; "": none */
};
struct checkpoint {
    char fingerprint[65]; /* of input and settings */
    int64_t shards_done;
    struct checkpoint_sums sums;
};
/* Of everything the lines depend on. */
void checkpoint_fingerprint(const struct scan_config *c, const char *prefix,
                            const struct shards *shards, char out[static 65]);
/* files[CHECKPOINT_FILES] by names[]; NULL: not begun. */
bool checkpoint_save(struct sink *s, const struct checkpoint *c, struct sink_stream *const *files,
                     struct err *err) MUST_CHECK;
/* What an earlier run with the same fingerprint left; *ret_found false: nothing that can be gone on
 * with, and whatever there was is removed, as are its temporary files. Streams are the caller's. */
bool checkpoint_load(struct sink *s, const char *fingerprint, const char *const *names,
                     struct checkpoint *ret, struct sink_stream **ret_files, bool *ret_found,
                     struct err *err) MUST_CHECK;
bool checkpoint_remove(struct sink *s, struct err *err) MUST_CHECK;
