/* Walks the headers of a tar archive and returns where each regular file's data is, without reading
 * the data. Accepts ustar, pax (path and size, local), GNU long names, base-256 sizes and pre-POSIX
 * headers. Archives are untrusted: every header's checksum is checked, every length is checked
 * against the archive's size, and each step moves forward by at least one block.
 *
 * Unlike common/tar.h it does not need the archive in memory, and it skips links, folders and
 * devices instead of rejecting them, because nothing is unpacked. */
#pragma once
#include "source.h"

#define TARWALK_NAME_MAX 1024
#define TARWALK_PAX_MAX  65536 /* of one extended header */

struct tarwalk_member {
    struct str name; /* valid until the next call of this or of source_need */
    int64_t offset;  /* of the data */
    int64_t size;
};
struct tarwalk {
    struct source *src; /* borrowed */
    int64_t at;         /* of the next header; after a fault: of the fault */
    int64_t others;     /* members skipped: not regular files */
    char name_[TARWALK_NAME_MAX + 1];
};
void tarwalk_init(struct tarwalk *w, struct source *src);
/* True with a member; false at the end (err->code NONE) or on a fault: ERR_MALFORMED and ERR_LIMIT
 * for a bad archive, with the position in w->at, else the error of source_need. */
bool tarwalk_next(struct tarwalk *w, struct tarwalk_member *ret, struct err *err) MUST_CHECK;
