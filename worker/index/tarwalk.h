/* Walks the headers of a tar archive and tells where each regular file's data lies, reading nothing
 * else. Takes ustar, pax (path and size, local), GNU long names, sizes in base 256 and the headers
 * of before POSIX. Archives come from outside: every header's checksum is checked, every length is
 * held against the archive's size, and each step moves forward by a block at least.
 *
 * Unlike common/tar.h it never wants the archive in memory, and it passes over links, folders and
 * devices instead of refusing them: nothing is unpacked by it. */
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
    int64_t at;         /* of the next header; after a fault: of what was wrong */
    int64_t others;     /* members passed over: not regular files */
    char name_[TARWALK_NAME_MAX + 1];
};
void tarwalk_init(struct tarwalk *w, struct source *src);
/* True with a member; false at the end (err->code NONE) or on a fault: ERR_MALFORMED and ERR_LIMIT
 * when the archive is at fault, with w->at telling where, else what source_need gave. */
bool tarwalk_next(struct tarwalk *w, struct tarwalk_member *ret, struct err *err) MUST_CHECK;
