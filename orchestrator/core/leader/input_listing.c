/* See input_listing.h. */
#include "input_listing.h"
#include "common/retry.h"
#include <stdio.h>
#include <string.h>

#define TRIES        6   /* of a page for which a request waits */
#define PROBLEM_SIZE 230 /* of what went wrong, without the next step */

bool input_page_again(const struct input_page_facts *f, struct rng *rng, int64_t *ret_pause_us)
{
    const struct retry_policy again = {.base_us = 400 * USEC_PER_MSEC,
                                       .cap_us = (f->patient ? 5 : 3) * USEC_PER_SEC,
                                       .floor_us = 100 * USEC_PER_MSEC};
    bool moved = f->status >= 300 && f->status < 400; /* the bucket is in another region */
    if (f->outcome == AWS_REFUSED || moved || (!f->patient && f->tries >= TRIES)) {
        return false;
    }
    *ret_pause_us = retry_delay_us(&again, f->tries - 1, rng);
    return true;
}

bool input_listing_final(const struct err *why)
{
    return (why->http_status >= 300 && why->http_status < 500 && why->code != ERR_THROTTLED) ||
           why->code == ERR_AWS || why->code == ERR_FORBIDDEN || why->code == ERR_NOT_FOUND ||
           why->code == ERR_INVALID || why->code == ERR_LIMIT;
}

const char *input_listing_next_step(const struct err *why)
{
    if (why == NULL) {
        return "check bucket, prefix and pattern; inputs must be there when the campaign is "
               "submitted";
    }
    return why->code == ERR_LIMIT
               ? "narrow the pattern, and submit several campaigns"
               : "give droverd's role s3:ListBucket on the bucket, or correct the name";
}

void input_listing_text(char *to, size_t n, const char *text)
{
    size_t k = strlen(text);
    if (k >= n) {
        for (k = n - 1; k > 0 && ((unsigned char)text[k] & 0xc0) == 0x80; k--) {
        }
    }
    memcpy(to, text, k);
    to[k] = '\0';
}

int64_t input_listing_parts(int64_t objects, int per_part)
{
    return (objects + per_part - 1) / per_part;
}

static enum input_listing_then refused(const struct input_listing_facts *f, char *problem, size_t n)
{
    char text[PROBLEM_SIZE];
    input_listing_text(text, sizeof text, f->why->message);
    if (!input_listing_final(f->why)) {
        (void)snprintf(problem, n, "%s", text);
        return INPUT_LISTING_AGAIN;
    }
    (void)snprintf(problem, n, "%s; next: %s", text, input_listing_next_step(f->why));
    return INPUT_LISTING_FAILS;
}

enum input_listing_then input_listing_next(const struct input_listing_facts *f, char *problem,
                                           size_t n)
{
    problem[0] = '\0';
    if (!f->wanted) {
        return INPUT_LISTING_STOPS;
    }
    switch (f->answer) {
    case INPUT_LISTING_IDLE:
        return f->room ? INPUT_LISTING_ASKS : INPUT_LISTING_STAYS;
    case INPUT_LISTING_WAITS:
        return INPUT_LISTING_STAYS;
    case INPUT_LISTING_REFUSED:
        return refused(f, problem, n);
    case INPUT_LISTING_CAME:
        break;
    }
    if (f->objects > 0) {
        return INPUT_LISTING_WRITES;
    }
    char uri[PROBLEM_SIZE];
    input_listing_text(uri, sizeof uri, f->uri);
    (void)snprintf(problem, n, "no object matches %s; next: %s", uri,
                   input_listing_next_step(NULL));
    return INPUT_LISTING_FAILS;
}
