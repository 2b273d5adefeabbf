/* The operator's file of prices: {"ml.m5.large": "0.115"}, USD per hour as decimal text. When it is
 * read again and which of its entries count. A mistake in it keeps nobody from leading: what has no
 * price waits. Pure. */
#pragma once
#include "common/json.h"
#include "common/units.h"

struct prices_file { /* what tells that a file was written again; all zero: no file */
    int64_t inode, size, s, ns;
};
/* was: when it was read last. */
bool prices_file_moved(const struct prices_file *was, const struct prices_file *now);
/* It was read but not taken: it is read again at the next look. */
void prices_file_again(struct prices_file *was);
/* One entry. False: it cannot be read, and err says why; the others still count. */
bool prices_entry(const char *instance_type, const json_t *v, musd_t *ret,
                  struct err *err) MUST_CHECK;
