/* X-Robots-Tag. A header for another user agent does not apply to us. */
#include "robots.h"
#include <strings.h>

static bool same_word(struct str a, struct str b)
{
    return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

bool robots_forbids(const struct robots *r, struct str value)
{
    struct str rest = value;
    if (str_find(value, STR(":")) >= 0) {
        struct str agent = str_trim(str_split(&rest, ':'));
        if (r->token.n == 0 || !same_word(agent, r->token)) {
            return false;
        }
    }
    while (rest.n > 0) {
        struct str word = str_trim(str_split(&rest, ','));
        for (int i = 0; i < r->n; i++) {
            if (word.n > 0 && same_word(word, r->directives[i])) {
                return true;
            }
        }
    }
    return false;
}
