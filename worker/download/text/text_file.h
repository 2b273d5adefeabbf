/* A text file in blocks: plain, or gzip with its checksums verified. */
#pragma once
#include "common/str.h"

#define TEXT_FILE_BLOCK_BYTES ((size_t)64 << 10)

struct text_file;
/* Open path; name: the file's name in messages. ERR_NOT_FOUND or ERR_IO. The caller frees *ret. */
bool text_file_open(const char *path, const char *name, bool gzip, struct text_file **ret,
                    struct err *err) MUST_CHECK;
void text_file_free(struct text_file *f);
/* The next bytes, borrowed until the next call; n is 0 at the end. ERR_INVALID when the gzip is
 * damaged, truncated or none. */
bool text_file_next(struct text_file *f, struct str *ret, struct err *err) MUST_CHECK;
