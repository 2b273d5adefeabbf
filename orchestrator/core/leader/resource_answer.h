/* What AWS' answers about endpoints and file systems mean. Pure. */
#pragma once
#include "common/aws_outcome.h"
#include "core/failure/cause.h"
#include "core/protocol/protocol.h"
#include "endpoint_life.h"
#include "filesystem_life.h"
#include "resource_strays.h"

/* A clean refusal: the call did nothing. Otherwise nobody knows what it did. */
bool resource_answer_refused(const struct aws_failure *f);
/* A refusal that time or a person mends: nothing was made by it. *ret: what it is otherwise. */
bool resource_answer_waits(const struct aws_failure *f, enum cause *ret);
/* It is the file system of the try `token` of this installation. */
bool resource_answer_is(const struct filesystem_description *d, const char *install_id,
                        const char *token);

#define FILESYSTEM_TASK_WHY_SIZE 400
struct filesystem_tasks_seen { /* all zero at first */
    struct filesystem_tasks tasks;
    char why[FILESYSTEM_TASK_WHY_SIZE]; /* of our export, when it failed; "" */
    char import_why[FILESYSTEM_TASK_WHY_SIZE];
    usec_t import_created; /* of the newest import */
};
/* It is over and has not done what it was to do. */
bool resource_answer_task_failed(const struct fsx_task_description *d);
/* One more task of a file system of ours, in any order. Only the one that our create answered with
 * counts, "" while that is not known: people export, too, before the last job wrote or only some
 * paths. A task of any kind that runs is waited for, since one comes after the other. */
void resource_answer_task(struct filesystem_tasks_seen *s, const struct fsx_task_description *d,
                          const char *own_id);
/* Whether all that S3 had is in it, so long after its association was seen AVAILABLE: FSx runs the
 * import after that. One that no list shows after a minute is not waited for. */
bool resource_answer_filled(const struct filesystem_tasks *t, int64_t linked_us);

/* The answers of Create, Describe and Delete of what an endpoint consists of; f: NULL unless the
 * call failed. */
enum endpoint_word resource_answer_endpoint(bool not_found, bool busy, const struct aws_failure *f);
/* Of what its smoke test sends. fault: it will not do; unread: nobody knows. */
enum endpoint_word resource_answer_payloads(bool fault, bool unread);
/* The same answers about a stray. */
enum resource_word resource_answer_stray(bool not_found, bool busy, const struct aws_failure *f);
enum resource_word resource_answer_stray_filesystem(enum fsx_answer answer);
/* Why nobody knows what was asked of FSx; NULL: it was told. f: of FSX_FAILED, else NULL. */
const struct aws_failure *resource_answer_untold(enum fsx_answer answer,
                                                 const struct aws_failure *f);

struct filesystem_asked { /* whose file system was asked about */
    const char *install_id, *token;
    const char *task_id; /* of our last export; "" */
};
struct filesystem_heard {        /* an answer of FSx, kept; not to be moved: fact points into it */
    struct filesystem_fact fact; /* act, window_us and asked_us are the caller's */
    union fsx_row thing;
    struct aws_failure failure;
    struct filesystem_tasks_seen tasks;
};
/* What FSx answered to h->fact.act. rows: of FSX_DONE; f: of FSX_FAILED, else NULL. */
void resource_answer_filesystem(struct filesystem_heard *h, const struct filesystem_asked *asked,
                                enum fsx_answer answer, const union fsx_row *rows, size_t n,
                                const struct aws_failure *f);
