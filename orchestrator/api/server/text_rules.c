/* See text_rules.h. */
#include "text_rules.h"
#include "common/regex.h"
#include <stdio.h>

bool text_matches(const char *pattern, struct str v)
{
    char whole[512];
    struct regex *re = NULL;
    struct str all;
    int n = snprintf(whole, sizeof whole, "\\A(%s)\\z", pattern);
    ASSERT(n > 0 && (size_t)n < sizeof whole && regex_new(whole, &re, NULL));
    bool found = regex_first_group(re, v, &all) == REGEX_FOUND;
    regex_free(re);
    return found;
}

int64_t text_length(struct str v)
{
    int64_t n = 0;
    for (size_t i = 0; i < v.n; i++) {
        n += ((uint8_t)v.p[i] & 0xc0) != 0x80;
    }
    return n;
}
