/* See resource_answer.h. */
#include "resource_answer.h"
#include <stdio.h>
#include <string.h>

bool resource_answer_refused(const struct aws_failure *f)
{
    return f->outcome == AWS_REFUSED || f->outcome == AWS_THROTTLED ||
           f->outcome == AWS_CREDENTIALS;
}

bool resource_answer_is(const struct filesystem_description *d, const char *install_id,
                        const char *token)
{
    return strcmp(d->token, token) == 0 && strcmp(d->owner, install_id) == 0;
}

bool resource_answer_task_failed(const struct fsx_task_description *d)
{
    return strcmp(d->lifecycle, "FAILED") == 0 || strcmp(d->lifecycle, "CANCELED") == 0;
}

void resource_answer_task(struct filesystem_tasks_seen *s, const struct fsx_task_description *d,
                          const char *own_id)
{
    bool good = strcmp(d->lifecycle, "SUCCEEDED") == 0;
    bool over = resource_answer_task_failed(d);
    s->tasks.runs |= !good && !over;
    if (own_id[0] == '\0' || strcmp(d->id, own_id) != 0) {
        return;
    }
    s->tasks.succeeded = good;
    s->tasks.failed = over;
    if (over) {
        (void)snprintf(s->why, sizeof s->why, "%lld of %lld files failed; %.300s",
                       (long long)d->failed, (long long)d->total, d->failure_reason);
    }
}
