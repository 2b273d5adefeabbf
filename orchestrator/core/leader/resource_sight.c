/* See resource_sight.h. */
#include "resource_sight.h"
#include <stdio.h>
#include <string.h>

#define LOST_MAX   5   /* looks in a row */
#define BEFORE_MAX 300 /* so much of a reason leaves room for a remark */

static const char unseen[] = "AWS does not say how it is: ";

void resource_sight_remark(char reason[static 512], const char *mark, const struct aws_failure *f)
{
    char *before = strstr(reason, mark);
    size_t n = before != NULL ? (size_t)(before - reason) : strlen(reason);
    if (before != NULL && n >= 2) {
        n -= 2; /* "; " */
    }
    reason[n] = '\0';
    if (f != NULL) {
        n = MIN(n, BEFORE_MAX);
        bool silent = f->code[0] == '\0' && f->message[0] == '\0';
        (void)snprintf(reason + n, 512 - n, "%s%s%.63s%s%.200s", n > 0 ? "; " : "", mark, f->code,
                       f->code[0] != '\0' ? ": " : "", silent ? "no answer" : f->message);
    }
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
