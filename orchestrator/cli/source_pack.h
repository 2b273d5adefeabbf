/* Packs the folder of a training script as the SageMaker Python SDK does: its files at the root of
 * a tar archive in gzip, links followed. The same files give the same bytes: names are sorted,
 * times, owners and permissions are fixed. */
#pragma once
#include "common/buf.h"
#include "common/err.h"
#include "common/hash.h"

#define SOURCE_FILES_MAX    10000
#define SOURCE_BYTES_MAX    ((size_t)256 * 1024 * 1024) /* of its files */
#define SOURCE_PACKED_MAX   ((size_t)64 * 1024 * 1024)
#define SOURCE_DEPTH_MAX    32
#define SOURCE_IGNORE_FILE  ".droverignore"
#define SOURCE_PATTERNS_MAX 200

struct source_pack {
    char *folder; /* as the campaign file names it */
    char **names; /* names[n]: of the files in the archive, sorted */
    size_t n;
    struct buf gz;
    char sha256[SHA256_HEX_N]; /* of gz */
};
void source_pack_done(struct source_pack *p); /* cleanup function */
/* Left out: .git, .hg, .svn, __pycache__, *.pyc, .ipynb_checkpoints, .DS_Store, and what the
 * patterns in the folder's .droverignore match: one a line, * ? [] as in a shell, of a name at any
 * depth, or of the path below the folder when it has a '/'; a '/' at the end matches folders only.
 * ERR_NOT_FOUND, ERR_IO, ERR_INVALID (no file, a pattern that begins with '!', a name that is not
 * UTF-8, a link in a circle), ERR_TOO_LARGE. */
bool source_pack(const char *folder, struct source_pack *ret, struct err *err) MUST_CHECK;
bool source_pack_has(const struct source_pack *p, const char *name);
