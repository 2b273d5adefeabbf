/* How many rows a Parquet file has, from the bytes at its end: enough of the footer's Thrift to
 * reach FileMetaData.num_rows. What a worker says it read is held against this. Pure; every length
 * is checked. Source: Apache Parquet format, FileMetaData; Thrift compact protocol. */
#pragma once
#include "common/str.h"

#define PARQUET_TAIL 8 /* bytes: footer length (little endian) and "PAR1" */
/* The footer's length from the file's last 8 bytes. False: not Parquet, or a footer over 16 MB or
 * larger than the file. */
bool parquet_footer_n(struct str tail, int64_t file_size, int64_t *ret) MUST_CHECK;
/* num_rows from the footer's first bytes (the whole footer, or as much as holds the schema). False:
 * damaged, or more is needed. */
bool parquet_rows(struct str footer, int64_t *ret) MUST_CHECK;
