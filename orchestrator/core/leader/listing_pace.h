/* How many pages of one listing of objects are asked for at once, and into how many ranges its keys
 * are cut. S3 gives each prefix so many requests a second: a listing that was too fast loses a
 * place, and gets it back after pages that came. Pure. */
#pragma once
#include "common/aws_outcome.h"
#include <stdbool.h>

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
/* A page of a range came that has more: into so many parts the rest of it is cut, 1: it stays one.
 * ranges: of the whole listing; asked: pages under way; pages: of this range since it was cut. */
int listing_pace_parts(const struct listing_pace *p, int ranges, int asked, int pages);
/* So many pages of a range in a row had no key: it does not come to an end. */
bool listing_pace_endless(int empty_pages);
