/* ustar and pax with exact member offsets. Writer: plain ustar (integer mtime), pax path/size
 * records only when needed; ends with two zero blocks. Reader: bytes in, members out; rejects
 * absolute and '..' names, links, devices, sparse files, size overflow. */
#pragma once
#include "buf.h"
#include "units.h"

#define TAR_BLOCK 512
/* Append header, data and padding of one regular file, mode 0444, owner "bigdata" as img2dataset's
 * writer does. */
void tar_add(struct buf *out, struct str name, struct str data, int64_t mtime_s);
void tar_end(struct buf *out);
struct tar_member {
    struct str name; /* valid until the next call */
    int64_t size;
    int64_t offset; /* of the data, from the start of the archive */
    int64_t mtime_s;
};
struct tar_reader { /* over a whole archive in memory (mapped file) */
    struct str in;
    size_t at;
    char name_[1025];
};
void tar_reader_init(struct tar_reader *r, struct str in);
/* true with a member; false at the end (err->code NONE) or on a fault. */
bool tar_next(struct tar_reader *r, struct tar_member *ret, struct err *err);
