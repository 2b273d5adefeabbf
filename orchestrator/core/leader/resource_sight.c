/* See resource_sight.h. */
#include "resource_sight.h"
#include <stdio.h>
#include <string.h>

#define LOST_MAX   5   /* looks in a row */
#define BEFORE_MAX 180 /* so much of a reason leaves room for two remarks */

static const char unseen[] = "AWS does not say how it is: ";

enum { SAYS_UNSEEN, SAYS_REFUSED, MARKS };

/* What a mark says, to the end, and the reason before it. */
static void split(char reason[static 512], const char *at, char said[static 320])
{
    if (at != NULL) {
        ptrdiff_t n = at - reason;
        (void)snprintf(said, 320, "%s", at);
        reason[n >= 2 ? n - 2 : n] = '\0'; /* "; " */
    }
}

/* Both, in one order, as much as there is room for: what is said twice is the same again. */
static void join(char reason[static 512], char said[static MARKS][320])
{
    int both = said[SAYS_UNSEEN][0] != '\0' && said[SAYS_REFUSED][0] != '\0' ? 2 : 1;
    size_t n = MIN(strlen(reason), BEFORE_MAX);
    int room = (int)(512 - 1 - 2 * 2 - n) / both;
    for (int i = 0; i < MARKS; i++) {
        if (said[i][0] != '\0') {
            (void)snprintf(reason + n, 512 - n, "%s%.*s", n > 0 ? "; " : "", room, said[i]);
            n = strlen(reason);
        }
    }
}

void resource_sight_remark(char reason[static 512], const char *mark, const struct aws_failure *f)
{
    char said[MARKS][320] = {"", ""};
    const char *at[MARKS] = {strstr(reason, unseen), strstr(reason, DELETE_REFUSED)};
    int last =
        at[SAYS_REFUSED] != NULL && at[SAYS_REFUSED] > at[SAYS_UNSEEN] ? SAYS_REFUSED : SAYS_UNSEEN;
    split(reason, at[last], said[last]);
    split(reason, at[!last], said[!last]);
    char *to = said[strcmp(mark, unseen) == 0 ? SAYS_UNSEEN : SAYS_REFUSED];
    to[0] = '\0';
    if (f != NULL) {
        bool silent = f->code[0] == '\0' && f->message[0] == '\0';
        (void)snprintf(to, 320, "%s%.63s%s%.200s", mark, f->code, f->code[0] != '\0' ? ": " : "",
                       silent ? "no answer" : f->message);
    }
    join(reason, said);
}

bool resource_sight_note(struct resource_sight *s, const struct aws_failure *f,
                         char reason[static 512])
{
    bool said = strstr(reason, unseen) != NULL;
    if (f == NULL) {
        *s = (struct resource_sight){0};
        resource_sight_remark(reason, unseen, NULL);
        return false;
    }
    if (f->outcome == AWS_UNSENT) {
        return false;
    }
    s->lost++;
    if (s->lost < LOST_MAX || said) {
        return false;
    }
    resource_sight_remark(reason, unseen, f);
    return s->lost == LOST_MAX;
}

bool resource_sight_lost(const struct resource_sight *s)
{
    return s->lost - s->tried >= LOST_MAX;
}

void resource_sight_tried(struct resource_sight *s)
{
    s->tried = s->lost;
}

void resource_sight_not_written(struct resource_sight *s)
{
    *s = (struct resource_sight){.lost = MIN(s->lost, LOST_MAX - 1)};
}
