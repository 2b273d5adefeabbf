/* File helpers of drover-local. Paths are absolute. */
#pragma once
#include "common/buf.h"
#include "common/units.h"

#define FOLDER_DEPTH_MAX 32                    /* folders below each other that are followed */
#define MARK_BYTES_MAX   16384                 /* of a file in which a supervisor reports */
#define CHECK_EVERY_US   USEC_PER_SEC          /* interval of the check for dead supervisors */
#define UNWATCHED_US     (200 * USEC_PER_MSEC) /* the same, when no inotify instance is left */

/* mkdir -p. */
bool files_mkdirs(const char *path, struct err *err) MUST_CHECK;
/* mkdir -p of a file's folder. */
bool files_mkparents(const char *path, struct err *err) MUST_CHECK;
/* Write atomically: a temporary name in the same folder, then rename. */
bool files_write(const char *path, struct str text, struct err *err) MUST_CHECK;
/* Read a file of at most out->max bytes; ERR_NOT_FOUND when it does not exist, ERR_TOO_LARGE when
 * it is larger. */
bool files_read(const char *path, struct buf *out, struct err *err) MUST_CHECK;
/* Read the first `max` bytes of a file; nothing when it does not exist. */
void files_read_head(const char *path, size_t max, struct buf *out);
/* Copy one file's bytes (regular files; permissions 0644). */
bool files_copy(const char *from, const char *to, struct err *err) MUST_CHECK;
/* The same into folders that are made; to a path with '/' at its end, which is that of a marker
 * object, only the folder is made. */
bool files_place(const char *from, const char *to, struct err *err) MUST_CHECK;
/* rm -rf below and with path; links are removed, not followed. */
void files_remove_tree(const char *path);
/* Print a path; ERR_LIMIT when it does not fit. */
bool files_path(char *out, size_t out_n, struct err *err, const char *fmt, ...)
    PRINTF(4, 5) MUST_CHECK;
