/* See listing_pace.h. */
#include "listing_pace.h"
#include "common/base.h"
#include <string.h>

#define WIDTH          16
#define RANGES_MAX     4096
#define REGAIN         4   /* pages until a lost place is used again */
#define EMPTY_MAX      100 /* pages in a row */
#define PARTS_AT_FIRST 4   /* ranges that one is cut into until there are enough, then two */
#define PAGES_OF_LONG  2   /* a range that had as many has shown that it is long */

void listing_pace_begin(struct listing_pace *p)
{
    *p = (struct listing_pace){.width = WIDTH};
}

bool listing_pace_room(const struct listing_pace *p, int asked)
{
    return asked < p->width;
}

void listing_pace_came(struct listing_pace *p)
{
    if (++p->good_n >= REGAIN) {
        p->good_n = 0;
        p->width = MIN(p->width + 1, WIDTH);
    }
}

void listing_pace_refused(struct listing_pace *p, enum aws_outcome outcome)
{
    if (outcome == AWS_THROTTLED) {
        p->width = MAX(p->width - 1, 1);
        p->good_n = 0;
    }
}

int listing_pace_parts(const struct listing_pace *p, int ranges, int asked, int pages)
{
    bool first = ranges < 2 * WIDTH;
    int parts = MIN(p->width - asked, first ? PARTS_AT_FIRST : 2);
    if (!first && pages < PAGES_OF_LONG) {
        return 1;
    }
    return MAX(MIN(parts, RANGES_MAX - ranges + 1), 1);
}

bool listing_pace_within(const char *until, const char *key)
{
    return until[0] == '\0' || strcmp(key, until) <= 0;
}

bool listing_pace_full(int64_t seen, int64_t max)
{
    return seen > max;
}

enum listing_page_then listing_pace_page(size_t keys, size_t ours, bool more, int *empty_n)
{
    *empty_n = keys == 0 ? *empty_n + 1 : 0;
    if (*empty_n > EMPTY_MAX) {
        return LISTING_PAGE_ENDLESS;
    }
    return more && ours == keys ? LISTING_PAGE_MORE : LISTING_PAGE_LAST;
}
