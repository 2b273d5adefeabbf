/* See metric_place.h. */
#include "metric_place.h"
#include "common/base.h"
#include <stdio.h>
#include <string.h>

void metric_place_stream(struct metric_place *p, const char *stream)
{
    *p = (struct metric_place){.lines = 0};
    (void)snprintf(p->stream, sizeof p->stream, "%s", stream);
}

int64_t metric_place_first(const struct metric_place *p, int64_t n)
{
    ASSERT(p->lines >= p->token_lines);
    return MIN(n, p->lines - p->token_lines);
}

bool metric_place_took(struct metric_place *p, int64_t n, int64_t upto, const char *next_token)
{
    ASSERT(upto >= metric_place_first(p, n) && upto <= n);
    p->lines = MAX(p->lines, p->token_lines + upto);
    if (upto < n) {
        return false; /* the rest of the page is asked for again */
    }
    bool same = next_token[0] == '\0' || strcmp(next_token, p->token) == 0;
    if (!same && strlen(next_token) < sizeof p->token) {
        (void)snprintf(p->token, sizeof p->token, "%s", next_token);
        p->token_lines += n;
    }
    return same;
}

bool metric_place_expired(struct metric_place *p)
{
    bool had = p->token[0] != '\0';
    p->token[0] = '\0';
    p->token_lines = 0;
    return had;
}
