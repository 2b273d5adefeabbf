/* ustar and pax archives with exact member offsets. The writer makes plain ustar (integer mtime)
 * with pax records only for long names and large sizes, and ends with two zero blocks. The reader
 * rejects absolute names, '..', links, devices, sparse files and sizes beyond the archive. */
#pragma once
#include "buf.h"
#include "units.h"

#define TAR_BLOCK 512
/* Append header, data and padding of one regular file: mode 0444, owner "bigdata", as img2dataset
 * writes them. */
void tar_add(struct buf *out, struct str name, struct str data, int64_t mtime_s);
/* The same with other permissions (the last nine bits) and owned by 0:0 without names. */
void tar_add_mode(struct buf *out, struct str name, struct str data, int64_t mtime_s,
                  unsigned mode);
void tar_end(struct buf *out);
struct tar_member {
    struct str name; /* valid until the next call */
    int64_t size;
    int64_t offset; /* of the data, from the start of the archive */
    int64_t mtime_s;
};
struct tar_reader { /* reads a whole archive in memory, for example a mapped file */
    struct str in;
    size_t at;
    char name_[1025];
};
void tar_reader_init(struct tar_reader *r, struct str in);
/* True with the next member. False at the end (err->code is ERR_NONE) or on a fault. */
bool tar_next(struct tar_reader *r, struct tar_member *ret, struct err *err);
