/* The life of a file system of FSx for Lustre, from its intent to the proof that it is gone. Its
 * create carries a token and a tag that are made from the identity of the try, so a call whose
 * answer was lost is resolved by a listing and never makes a second one. Filled from S3, when the
 * import task of its association has ended, it is used until no stage that names it is left, its
 * time is over, or a person or the end of its campaign asks for its end. When such a stage has
 * failed it is kept for a retry until its time is over.
 * What jobs wrote is exported first; it is deleted even when that fails, once its time is over,
 * and soon when its end is wanted and its exports are in vain.
 * Pure: now_us is the wall clock as AWS has it, CLOCK_BOOTTIME is boot_us.
 * Source: Amazon FSx API reference, CreateFileSystem, DeleteFileSystem, DescribeFileSystems,
 * CreateDataRepositoryAssociation, CreateDataRepositoryTask. */
#pragma once
#include "common/aws_outcome.h"
#include "core/capacity/filesystem_report.h"
#include "filesystem_list.h"

enum filesystem_act {
    FILESYSTEM_ACT_NONE,
    FILESYSTEM_ACT_FIND, /* in the list of all, by its tag */
    FILESYSTEM_ACT_CREATE,
    FILESYSTEM_ACT_DESCRIBE,
    FILESYSTEM_ACT_FIND_LINK, /* its association with S3, and how it is */
    FILESYSTEM_ACT_LINK,
    FILESYSTEM_ACT_TASKS, /* its import and its exports, and how they are */
    FILESYSTEM_ACT_EXPORT,
    FILESYSTEM_ACT_DELETE
};
/* The next call about one that has none under way. *wake_us is lowered to when to ask again. */
enum filesystem_act leader_filesystem_next(const struct leader_state *s,
                                           const struct live_filesystem *f, usec_t now_us,
                                           int64_t boot_us, int64_t poll_us, int64_t *wake_us);
enum filesystem_word {
    FILESYSTEM_SAID_YES,    /* made or there already; there; deletion begun */
    FILESYSTEM_SAID_ABSENT, /* not there: of a listing, of Describe and Delete */
    FILESYSTEM_SAID_NO,     /* a clean refusal: *failure */
    FILESYSTEM_SAID_NOTHING /* nobody knows, or nothing was sent: *failure */
};
enum filesystem_import { /* the newest task that fills it from S3 */
                         FILESYSTEM_IMPORT_UNSEEN,
                         FILESYSTEM_IMPORT_RUNS,
                         FILESYSTEM_IMPORT_DONE,
                         FILESYSTEM_IMPORT_FAILED
};
struct filesystem_tasks {   /* of a file system */
    bool runs;              /* one of any kind */
    bool succeeded, failed; /* our last export */
    const char *why;        /* why that failed; "" */
    enum filesystem_import import;
    const char *import_why; /* why that failed; "" */
};
struct filesystem_fact { /* how a call was answered; pointers are borrowed, NULL when they say
                            nothing */
    enum filesystem_act act;
    enum filesystem_word said;
    const struct filesystem_description *seen;  /* YES of FIND, CREATE, DESCRIBE */
    const struct association_description *link; /* YES of FIND_LINK, LINK */
    struct filesystem_tasks tasks;              /* YES of TASKS */
    const struct fsx_task_description *task;    /* YES of EXPORT */
    const struct aws_failure *failure;          /* NO, NOTHING */
    int64_t window_us; /* for so long after a create was signed it may still take effect */
    int64_t asked_us;  /* of ABSENT: when the call was made, by CLOCK_BOOTTIME */
};

enum filesystem_news {
    FILESYSTEM_AS_BEFORE,
    FILESYSTEM_MOVED, /* `row` is to be written */
    FILESYSTEM_OVER   /* `row` and `end` are */
};
struct filesystem_writes {
    enum filesystem_news news;
    struct filesystem_row row;
    struct filesystem_end end; /* OVER */
    bool tell;                 /* MOVED: people are alerted of its reason */
    struct err error;          /* what could not be booked; it is tried again */
};
/* What follows from an answer. */
void leader_plan_filesystem_fact(struct live_filesystem *f, const struct filesystem_fact *fact,
                                 usec_t now_us, int64_t boot_us, struct filesystem_writes *ret);
/* What follows from the time, from what people want, and from the stages that name it. */
void leader_plan_filesystem_end(const struct leader_state *s, const struct live_filesystem *f,
                                usec_t now_us, struct filesystem_writes *ret);
/* It is committed. */
void leader_apply_filesystem(struct leader_state *s, struct live_filesystem *f,
                             const struct filesystem_writes *w);
/* It was not: asked again after a pause. */
void leader_filesystem_not_written(struct live_filesystem *f, int64_t boot_us);
