/* The files of a copy: sources, spelled out, each with its target.
 *
 * A source is https://..., s3://bucket/key, or s3://bucket/prefix with '*' and '?' (neither matches
 * a '/'). [000-127] in a URL stands for the numbers, with the width of the first. */
#pragma once
#include "remote.h"
#include "worker_protocol.h"

#define COPY_URL_BYTES_MAX 4096
#define COPY_SUM_HEX_N     65 /* of SHA-256 or MD5, with NUL */

struct copy_file {
    char *from;
    char *folder;                  /* of the target: s3://bucket/prefix or a folder */
    char *name;                    /* in the folder */
    int64_t size;                  /* by the listing; -1: not known */
    char want_sum[COPY_SUM_HEX_N]; /* of the checksums file; "": none */
};
struct file_list {
    struct copy_file *files; /* files[n] */
    size_t n, cap_;
};
/* True when the template can be expanded for each file and ends in a name. */
bool file_list_check_target(const char *template, struct err *err) MUST_CHECK;
/* Fill ret from `from` and `to`; {part} counts from `part`. Two files with one target, a source
 * without files and more than COPY_FILES_MAX are ERR_INVALID. file_list_done frees, also after an
 * error. */
bool file_list_make(struct remote *r, const char *from, const char *to, int64_t part,
                    struct file_list *ret, struct err *err) MUST_CHECK;
void file_list_done(struct file_list *l);
/* Set want_sum of each file from lines "SUM  NAME". A file without a line is ERR_INVALID. */
bool file_list_checksums(struct file_list *l, struct str text, struct err *err) MUST_CHECK;
/* The folder of `to` before its first field, with '/' at its end. The caller frees it. */
char *file_list_fixed_folder(const char *to);
