/* How many pages of one listing of objects are asked for at once, into how many ranges its keys are
 * cut, and which keys of a page belong to a range: each key to one. S3 limits the requests a second
 * of each prefix: a listing that was too fast loses a place, and has it again after pages that
 * came. Pure. */
#pragma once
#include "common/aws_outcome.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct listing_pace {
    int width;  /* places: pages at once */
    int good_n; /* pages that came since a place was lost or regained */
};
void listing_pace_begin(struct listing_pace *p);
/* One more page may be asked for while `asked` are under way. */
bool listing_pace_room(const struct listing_pace *p, int asked);
void listing_pace_came(struct listing_pace *p);
/* A page was not given. */
void listing_pace_refused(struct listing_pace *p, enum aws_outcome outcome);
/* A page of a range came that has more: the number of parts into which the rest of it is cut; 1: it
 * stays one. ranges: of the whole listing; asked: pages under way; pages: of this range since it
 * was cut. */
int listing_pace_parts(const struct listing_pace *p, int ranges, int asked, int pages);
/* The key is of the range that ends with `until`, a key that is of it too. "": it has no end. */
bool listing_pace_within(const char *until, const char *key);
/* More objects were seen than were asked for, whether they match or not. */
bool listing_pace_full(int64_t seen, int64_t max);
enum listing_page_then {
    LISTING_PAGE_MORE, /* the next page of the range is asked for */
    LISTING_PAGE_LAST, /* the range has been listed */
    LISTING_PAGE_ENDLESS
};
/* A page of a range had `keys` keys, `ours` of them of the range; more: S3 has more behind it.
 * *empty_n: pages of the range in a row that had none, counted here. */
enum listing_page_then listing_pace_page(size_t keys, size_t ours, bool more, int *empty_n);
