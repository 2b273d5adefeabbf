/* See resource_answer.h. */
#include "resource_answer.h"
#include "core/failure/cause.h"
#include <stdio.h>
#include <string.h>

#define IMPORT_LISTED_US (60 * USEC_PER_SEC) /* for so long a list may not show it yet */

bool resource_answer_refused(const struct aws_failure *f)
{
    return f->outcome == AWS_REFUSED || f->outcome == AWS_THROTTLED ||
           f->outcome == AWS_CREDENTIALS;
}

bool resource_answer_waits(const struct aws_failure *f, enum cause *ret)
{
    *ret = CAUSE_NETWORK;
    if (f->outcome == AWS_THROTTLED || f->outcome == AWS_CREDENTIALS) {
        return true;
    }
    *ret = cause_of_refusal(f->status, f->code, str_of(f->message));
    return *ret == CAUSE_QUOTA || *ret == CAUSE_THROTTLED || *ret == CAUSE_NETWORK ||
           *ret == CAUSE_CAPACITY || *ret == CAUSE_INTERNAL;
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

static void say_failed(const struct fsx_task_description *d,
                       char ret[static FILESYSTEM_TASK_WHY_SIZE])
{
    (void)snprintf(ret, FILESYSTEM_TASK_WHY_SIZE, "%lld of %lld files failed; %.300s",
                   (long long)d->failed, (long long)d->total, d->failure_reason);
}

/* Only the newest tells: people import again what failed. */
static void note_import(struct filesystem_tasks_seen *s, const struct fsx_task_description *d,
                        bool good, bool over)
{
    if (s->tasks.import != FILESYSTEM_IMPORT_UNSEEN && d->created < s->import_created) {
        return;
    }
    s->import_created = d->created;
    s->tasks.import = good   ? FILESYSTEM_IMPORT_DONE
                      : over ? FILESYSTEM_IMPORT_FAILED
                             : FILESYSTEM_IMPORT_RUNS;
    s->import_why[0] = '\0';
    if (over) {
        say_failed(d, s->import_why);
    }
}

void resource_answer_task(struct filesystem_tasks_seen *s, const struct fsx_task_description *d,
                          const char *own_id)
{
    bool good = strcmp(d->lifecycle, "SUCCEEDED") == 0;
    bool over = resource_answer_task_failed(d);
    s->tasks.runs |= !good && !over;
    if (strcmp(d->type, "IMPORT_METADATA_FROM_REPOSITORY") == 0) {
        note_import(s, d, good, over);
    }
    if (own_id[0] == '\0' || strcmp(d->id, own_id) != 0) {
        return;
    }
    s->tasks.succeeded = good;
    s->tasks.failed = over;
    if (over) {
        say_failed(d, s->why);
    }
}

bool resource_answer_filled(const struct filesystem_tasks *t, int64_t linked_us)
{
    return !t->runs && (t->import == FILESYSTEM_IMPORT_DONE ||
                        (t->import == FILESYSTEM_IMPORT_UNSEEN && linked_us >= IMPORT_LISTED_US));
}
