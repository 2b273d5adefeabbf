/* One file system, from its intent or from its row, and scripts of the calls that are expected
 * next, how each is answered and the state that follows; on top of leader_world.h. */
#pragma once
#include "core/leader/filesystem_life.h"
#include "core/leader/resource_answer.h"
#include "tests/unit/core/leader/leader_world.h"

#define TTL    7200
#define WINDOW (900 * SEC)
#define POLL   SEC
#define PRICE  146000 /* 1200 GiB: 240,000 micro-USD an hour */

enum {
    F = FILESYSTEM_ACT_FIND,
    C = FILESYSTEM_ACT_CREATE,
    L = FILESYSTEM_ACT_DESCRIBE,
    FL = FILESYSTEM_ACT_FIND_LINK,
    CL = FILESYSTEM_ACT_LINK,
    T = FILESYSTEM_ACT_TASKS,
    X = FILESYSTEM_ACT_EXPORT,
    D = FILESYSTEM_ACT_DELETE
};
enum {
    YES = FILESYSTEM_SAID_YES,
    ABSENT = FILESYSTEM_SAID_ABSENT,
    NO = FILESYSTEM_SAID_NO,
    NOTHING = FILESYSTEM_SAID_NOTHING,
    UNSENT
};
/* A step: the call that is expected, how it is answered, and the state after it. */
#define TO(act, said, word, then)                                                                  \
    {                                                                                              \
        act, said, word, FILESYSTEM_##then                                                         \
    }
#define ON(act, said, word)                                                                        \
    {                                                                                              \
        act, said, word, FILESYSTEM_INTENDED                                                       \
    }
#define MADE TO(C, YES, "CREATING", CREATING), ON(L, YES, "CREATING")
#define FILLED                                                                                     \
    ON(L, YES, "AVAILABLE"), ON(FL, ABSENT, ""), ON(CL, YES, "CREATING"), ON(FL, YES, "CREATING"), \
        ON(FL, YES, "AVAILABLE"), ON(T, YES, "import EXECUTING"),                                  \
        TO(T, YES, "import SUCCEEDED", AVAILABLE)
#define EXPORTED                                                                                   \
    ON(T, YES, ""), ON(X, YES, "PENDING"), ON(T, YES, "EXECUTING"),                                \
        TO(T, YES, "SUCCEEDED", DELETING)
#define GOES ON(L, YES, "AVAILABLE"), ON(D, YES, ""), ON(L, YES, "DELETING")

struct step {
    int act, said;
    const char *word;           /* lifecycle, "": no task; code of a refusal */
    enum filesystem_state then; /* INTENDED: any */
};
struct life {
    struct leader_world w;
    struct spec_filesystem spec;
    struct live_filesystem *f;
    usec_t now_us;
    int64_t boot_us;
    usec_t created_us; /* as AWS tells it */
    struct filesystem_writes last;
};

UNUSED static struct filesystem_row intent(void)
{
    struct filesystem_row row = {.id = 5,
                                 .project_id = 3,
                                 .campaign_id = 7,
                                 .stage_id = 70,
                                 .n = 1,
                                 .state = FILESYSTEM_INTENDED,
                                 .size_gib = 1200,
                                 .ttl_s = TTL,
                                 .exports = true,
                                 .price_musd_per_gb_month = PRICE,
                                 .reserved_musd = 4 * 240000,
                                 .intended_us = WALL};
    (void)snprintf(row.token.s, sizeof row.token.s, "d-7-volume-0-a1-0a1b2c3d");
    (void)snprintf(row.import_from, sizeof row.import_from, "s3://acme/img/");
    return row;
}

UNUSED static void world(struct life *l)
{
    leader_world_init(&l->w);
    l->spec = (struct spec_filesystem){.deployment = "SCRATCH_2"};
    l->w.spec.kind = SPEC_KIND_LUSTRE;
    l->w.spec.name = "volume";
    l->w.spec.filesystem = &l->spec;
}

UNUSED static void life_init(struct life *l)
{
    memset(l, 0, sizeof *l);
    world(l);
    const struct filesystem_row row = intent();
    l->f = leader_apply_filesystem_intent(&l->w.s, &row);
    l->now_us = l->created_us = WALL;
    l->boot_us = BOOT;
}

/* The row as it is now is all that a new leader has. */
UNUSED static void take_over(struct life *l)
{
    const struct filesystem_row row = l->f->row;
    leader_state_done(&l->w.s);
    world(l);
    l->w.s.projects[0].reserved_musd = row.reserved_musd; /* as in the table */
    (void)leader_take_filesystems(&l->w.s, &row, 1, l->boot_us);
    l->f = leader_filesystem(&l->w.s, row.id);
}

UNUSED static void pass(struct life *l, int64_t us)
{
    l->now_us += us;
    l->boot_us += us;
}

/* The next call, waited for: at most an hour. */
UNUSED static enum filesystem_act next(struct life *l)
{
    int64_t wake_us = l->boot_us + 3600 * SEC;
    enum filesystem_act act =
        leader_filesystem_next(&l->w.s, l->f, l->now_us, l->boot_us, POLL, &wake_us);
    for (int i = 0; i < 9 && act == FILESYSTEM_ACT_NONE && wake_us > l->boot_us; i++) {
        pass(l, wake_us - l->boot_us);
        wake_us = l->boot_us + 3600 * SEC;
        act = leader_filesystem_next(&l->w.s, l->f, l->now_us, l->boot_us, POLL, &wake_us);
    }
    return act;
}

UNUSED static void answer(struct life *l, const struct step *st)
{
    struct filesystem_description seen = {
        .id = "fs-0a", .mount_name = "mnt", .created = l->created_us, .failure_reason = "no room"};
    struct association_description link = {.id = "dra-0b", .failure_reason = "AccessDenied"};
    struct aws_failure failure = {.outcome = st->said == UNSENT ? AWS_UNSENT
                                             : st->said == NO   ? AWS_REFUSED
                                                                : AWS_UNKNOWN,
                                  .status = 400};
    (void)snprintf(seen.lifecycle, sizeof seen.lifecycle, "%s", st->word);
    (void)snprintf(link.lifecycle, sizeof link.lifecycle, "%s", st->word);
    (void)snprintf(failure.code, sizeof failure.code, "%s", st->word);
    /* Of tasks a listing shows one: ours, or somebody else's. */
    struct fsx_task_description task = {.total = 2, .failed = 1, .failure_reason = "no room"};
    struct filesystem_tasks_seen tasks = {.why = ""};
    bool others = strncmp(st->word, "others ", 7) == 0 || strncmp(st->word, "import ", 7) == 0;
    (void)snprintf(task.type, sizeof task.type, "%s",
                   st->word[0] == 'i' ? "IMPORT_METADATA_FROM_REPOSITORY" : "EXPORT_TO_REPOSITORY");
    (void)snprintf(task.lifecycle, sizeof task.lifecycle, "%s", st->word + (others ? 7 : 0));
    (void)snprintf(task.id, sizeof task.id, "task-%d", others ? 99 : l->f->tasks_failed);
    if (st->act == T && st->said == YES && st->word[0] != '\0') {
        resource_answer_task(&tasks, &task, l->f->task_id);
    }
    tasks.tasks.why = tasks.why;
    tasks.tasks.import_why = tasks.import_why;
    struct filesystem_fact f = {.act = (enum filesystem_act)st->act,
                                .said = st->said == UNSENT ? FILESYSTEM_SAID_NOTHING
                                                           : (enum filesystem_word)st->said,
                                .seen = &seen,
                                .link = &link,
                                .tasks = tasks.tasks,
                                .task = &task,
                                .failure = &failure,
                                .window_us = WINDOW,
                                .asked_us = l->boot_us};
    leader_plan_filesystem_fact(l->f, &f, l->now_us, l->boot_us, &l->last);
    if (l->last.news != FILESYSTEM_AS_BEFORE) {
        leader_apply_filesystem(&l->w.s, l->f, &l->last);
    }
}

UNUSED static void play(struct life *l, const struct step *steps, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        enum filesystem_act act = next(l);
        if ((int)act != steps[i].act) {
            fail_msg("step %zu: call %d, not %d", i, (int)act, steps[i].act);
        }
        answer(l, &steps[i]);
        if (steps[i].then != FILESYSTEM_INTENDED) {
            assert_int_equal(l->f->row.state, steps[i].then);
        }
    }
}
#define PLAY(l, ...)                                                                               \
    do {                                                                                           \
        const struct step steps_[] = {__VA_ARGS__};                                                \
        play((l), steps_, ARRAY_LEN(steps_));                                                      \
    } while (0)

UNUSED static bool ends(struct life *l)
{
    leader_plan_filesystem_end(&l->w.s, l->f, l->now_us, &l->last);
    if (l->last.news == FILESYSTEM_MOVED) {
        leader_apply_filesystem(&l->w.s, l->f, &l->last);
    }
    return l->last.news == FILESYSTEM_MOVED;
}
