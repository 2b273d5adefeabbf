/* Small file work shared by drover-local's parts. Paths are absolute. */
#pragma once
#include "common/buf.h"

/* mkdir -p. */
bool files_mkdirs(const char *path, struct err *err) MUST_CHECK;
/* mkdir -p of the folder a file is to lie in. */
bool files_mkparents(const char *path, struct err *err) MUST_CHECK;
/* Write whole and in one step: temporary name beside it, then rename. */
bool files_write(const char *path, struct str text, struct err *err) MUST_CHECK;
/* At most out->max bytes of a file; ERR_NOT_FOUND when it is not there, ERR_TOO_LARGE when it is
 * more. */
bool files_read(const char *path, struct buf *out, struct err *err) MUST_CHECK;
/* The first `max` bytes of a file; nothing when it is not there. */
void files_read_head(const char *path, size_t max, struct buf *out);
/* Copy one file's bytes (regular files; permissions 0644). */
bool files_copy(const char *from, const char *to, struct err *err) MUST_CHECK;
/* rm -rf below and with path; links are removed, not followed. */
void files_remove_tree(const char *path);
/* Print a path; ERR_LIMIT when it does not fit. */
bool files_path(char *out, size_t out_n, struct err *err, const char *fmt, ...)
    PRINTF(4, 5) MUST_CHECK;
