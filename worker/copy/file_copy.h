/* Copies one file: ranged reads into an upload that becomes visible at its end, when its length and
 * sums are right. A stopped or killed copy continues from what is saved, when the source is still
 * the same. */
#pragma once
#include "copy_options.h"
#include "file_list.h"
#include "io/sink.h"
#include "job/progress_report.h"

struct file_copy_config { /* value; all borrowed */
    const struct copy_options *o;
    struct remote *remote;
    struct sink *state; /* of the output folder, where the state of a file is saved */
    struct progress *progress;
    const _Atomic int *stop;
};
struct file_copied { /* a value: the receipt */
    int64_t size;
    char sha256[65];
    char version[REMOTE_VALIDATOR_MAX]; /* of the source: ETag or date; "": not told */
};
enum file_copy_end { FILE_COPY_DONE, FILE_COPY_STOPPED, FILE_COPY_FAILED };

#define FILE_COPY_STATE "_copy-" /* the state's name begins so */

/* number: the file's place in the list, which names its state. */
enum file_copy_end file_copy_run(const struct file_copy_config *c, const struct copy_file *f,
                                 size_t number, struct file_copied *ret, struct err *err);
