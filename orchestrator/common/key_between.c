/* See key_between.h: one byte of ASCII is put behind the first bytes of low, where low has one or
 * ends, since the middle of two longer characters may be none. */
#include "common/key_between.h"
#include <string.h>

#define BELOW_ASCII 0x1F /* all that can be printed lies between */
#define ABOVE_ASCII 0x7F

/* The byte in the middle; 0 when there is none. */
static unsigned middle(unsigned low, unsigned high)
{
    low = MAX(low, (unsigned)BELOW_ASCII);
    high = MIN(high, (unsigned)ABOVE_ASCII);
    return high > low + 1 ? low + (high - low) / 2 : 0;
}

/* What follows the digits or letters to which c belongs. */
static unsigned end_of_class(unsigned c)
{
    static const char ranges[][2] = {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}};
    for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
        if (c >= (unsigned char)ranges[i][0] && c < (unsigned char)ranges[i][1]) {
            return (unsigned char)ranges[i][1] + 1U;
        }
    }
    return ABOVE_ASCII;
}

bool key_between(const char *low, const char *high, size_t fixed_n, char *ret, size_t size)
{
    size_t low_n = strlen(low), at = fixed_n;
    unsigned found = 0;
    if (high[0] != '\0') {
        while (at < low_n && low[at] == high[at]) {
            at++;
        }
        found = middle((unsigned char)low[at], (unsigned char)high[at]);
        at += found == 0;
    }
    for (; found == 0 && at <= low_n; at += found == 0) {
        unsigned c = (unsigned char)low[at];
        found = middle(c, end_of_class(c));
        found = found != 0 ? found : middle(c, ABOVE_ASCII);
    }
    if (found == 0 || at + 2 > size) {
        return false;
    }
    memcpy(ret, low, at);
    ret[at] = (char)found;
    ret[at + 1] = '\0';
    return true;
}
