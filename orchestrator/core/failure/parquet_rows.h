/* The number of rows of a Parquet file, from FileMetaData.num_rows in its footer. It is compared
 * with the rows a worker says it read. Pure; every length is checked. Source: Apache Parquet
 * format, FileMetaData; Thrift compact protocol. */
#pragma once
#include "common/str.h"

#define PARQUET_TAIL 8 /* bytes: footer length (little endian) and "PAR1" */
/* The footer's length from the file's last 8 bytes. False: not Parquet, or a footer over 16 MB or
 * larger than the file. */
bool parquet_footer_n(struct str tail, int64_t file_size, int64_t *ret) MUST_CHECK;
/* num_rows from the footer's first bytes (the whole footer, or as much as holds the schema). False:
 * damaged, or more bytes are needed. */
bool parquet_rows(struct str footer, int64_t *ret) MUST_CHECK;
