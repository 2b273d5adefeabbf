/* Ranges of bytes, as Range and x-amz-copy-source-range name them. */
#pragma once
#include "common/str.h"

/* "bytes=a-b", "bytes=a-", "bytes=-n" over size bytes. 0: not a supported range; -1: outside; 1:
 * found. */
int s3_range_parse(struct str v, int64_t size, int64_t *ret_from, int64_t *ret_n);
