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

enum endpoint_word resource_answer_endpoint(bool not_found, bool busy, const struct aws_failure *f)
{
    if (f != NULL) {
        return resource_answer_refused(f) ? ENDPOINT_SAID_NO : ENDPOINT_SAID_NOTHING;
    }
    return not_found ? ENDPOINT_SAID_ABSENT : busy ? ENDPOINT_SAID_BUSY : ENDPOINT_SAID_YES;
}

enum endpoint_word resource_answer_payloads(bool fault, bool unread)
{
    return fault ? ENDPOINT_SAID_NO : unread ? ENDPOINT_SAID_NOTHING : ENDPOINT_SAID_YES;
}

enum resource_word resource_answer_stray(bool not_found, bool busy, const struct aws_failure *f)
{
    return f != NULL || busy ? RESOURCE_SAID_NOTHING
           : not_found       ? RESOURCE_SAID_ABSENT
                             : RESOURCE_SAID_YES;
}

enum resource_word resource_answer_stray_filesystem(enum fsx_answer answer)
{
    return answer == FSX_DONE        ? RESOURCE_SAID_YES
           : answer == FSX_NOT_FOUND ? RESOURCE_SAID_ABSENT
                                     : RESOURCE_SAID_NOTHING;
}

const struct aws_failure *resource_answer_untold(enum fsx_answer answer,
                                                 const struct aws_failure *f)
{
    static const struct aws_failure strange = {.outcome = AWS_UNKNOWN};
    return f != NULL || answer == FSX_DONE || answer == FSX_NOT_FOUND ? f : &strange;
}

/* What is no failure of the call itself, and proves nothing. */
static void hear_otherwise(struct filesystem_heard *h, enum fsx_answer answer)
{
    static const char *const texts[] = {
        [FSX_TOKEN_TAKEN] = "its token was used for another request",
        [FSX_TASK_RUNS] = "a task on the file system has not ended",
        [FSX_TASK_ENDED] = "the task has ended",
    };
    h->failure = (struct aws_failure){.outcome = AWS_UNKNOWN};
    (void)snprintf(h->failure.message, sizeof h->failure.message, "%s", texts[answer]);
    h->fact.said = FILESYSTEM_SAID_NOTHING;
    h->fact.failure = &h->failure;
}

static void hear_word(struct filesystem_heard *h, enum fsx_answer answer,
                      const struct aws_failure *f)
{
    switch (answer) {
    case FSX_DONE:
        h->fact.said = FILESYSTEM_SAID_YES;
        break;
    case FSX_NOT_FOUND:
        h->fact.said = FILESYSTEM_SAID_ABSENT;
        break;
    case FSX_TOKEN_TAKEN:
    case FSX_TASK_RUNS:
    case FSX_TASK_ENDED:
        hear_otherwise(h, answer);
        break;
    case FSX_FAILED:
        h->failure = *f;
        h->fact.failure = &h->failure;
        h->fact.said = resource_answer_refused(f) ? FILESYSTEM_SAID_NO : FILESYSTEM_SAID_NOTHING;
        break;
    }
}

/* A list of all without ours proves that it is not there. */
static void hear_list(struct filesystem_heard *h, const struct filesystem_asked *asked,
                      const union fsx_row *rows, size_t n)
{
    h->fact.said = FILESYSTEM_SAID_ABSENT;
    for (size_t i = 0; i < n; i++) {
        if (resource_answer_is(&rows[i].filesystem, asked->install_id, asked->token)) {
            h->thing = rows[i];
            h->fact.seen = &h->thing.filesystem;
            h->fact.said = FILESYSTEM_SAID_YES;
        }
    }
}

static void hear_link(struct filesystem_heard *h, const union fsx_row *rows, size_t n)
{
    if (n == 0) {
        h->fact.said = FILESYSTEM_SAID_ABSENT;
        return;
    }
    h->thing = rows[0];
    h->fact.link = &h->thing.association;
}

static void hear_tasks(struct filesystem_heard *h, const char *own_id, const union fsx_row *rows,
                       size_t n)
{
    h->tasks = (struct filesystem_tasks_seen){.why = ""};
    for (size_t i = 0; i < n; i++) {
        resource_answer_task(&h->tasks, &rows[i].task, own_id);
    }
    h->fact.tasks = h->tasks.tasks;
    h->fact.tasks.why = h->tasks.why;
    h->fact.tasks.import_why = h->tasks.import_why;
}

void resource_answer_filesystem(struct filesystem_heard *h, const struct filesystem_asked *asked,
                                enum fsx_answer answer, const union fsx_row *rows, size_t n,
                                const struct aws_failure *f)
{
    hear_word(h, answer, f);
    n = answer == FSX_DONE ? n : 0;
    switch (h->fact.act) {
    case FILESYSTEM_ACT_NONE:
        break;
    case FILESYSTEM_ACT_FIND:
        if (answer == FSX_DONE) {
            hear_list(h, asked, rows, n);
        }
        break;
    case FILESYSTEM_ACT_CREATE:
    case FILESYSTEM_ACT_DESCRIBE:
    case FILESYSTEM_ACT_DELETE:
        if (n == 1) {
            h->thing = rows[0];
            h->fact.seen = &h->thing.filesystem;
        }
        break;
    case FILESYSTEM_ACT_FIND_LINK:
    case FILESYSTEM_ACT_LINK:
        if (answer == FSX_DONE) {
            hear_link(h, rows, n);
        }
        break;
    case FILESYSTEM_ACT_TASKS:
        hear_tasks(h, asked->task_id, rows, n);
        break;
    case FILESYSTEM_ACT_EXPORT:
        if (answer == FSX_DONE) {
            ASSERT(n == 1); /* a create answers one */
            h->thing = rows[0];
            h->fact.task = &h->thing.task;
        }
        break;
    }
}
