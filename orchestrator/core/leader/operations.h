/* How a bulk operation (retry, skip, hold, release) moves parts, their stage and their campaign, by
 * what verbs.h allows. Pure. */
#pragma once
#include "common/json.h"
#include "leader_state.h"
#include "verbs.h"

struct operation_order {                       /* what a person asked for */
    enum verb verb;                            /* RETRY, SKIP, HOLD or RELEASE */
    int volume_gb;                             /* 0: as before */
    int64_t max_runtime_s;                     /* 0: as before */
    char instance_type[INSTANCE_TYPE_MAX + 1]; /* "": as before */
};
/* Reads the changes of a retry into *ret, whose verb stays: volume_gb, instance_type, and
 * max_runtime in seconds or as "4h". ERR_INVALID and ERR_MALFORMED name the key. */
bool operation_changes_read(const json_t *changes, struct operation_order *ret,
                            struct err *err) MUST_CHECK;
/* The rung of this type on a stage's ladder, -1: none. */
int operation_rung(const struct spec_stage *stage, const char *instance_type);
/* Reads an operation's row. False: a newer version's verb or changes, or changes out of bounds;
 * none of it is carried out, because half of what was asked for is something else. */
bool operation_read(const struct operation_row *op, struct operation_order *ret,
                    struct err *err) MUST_CHECK;
/* rows: the open operations, oldest first. What was asked for later wins, so the later one waits
 * until the earlier one is done wherever they meet in one campaign: a hold and a release, which
 * would move the same parts to and fro without an end; a hold and a retry, since a hold is of what
 * was retried before it, and not of what is retried after it; two that take failed parts, which the
 * earlier one has named. True: rows[at] waits for another one. One that is being undone, or that is
 * set aside (parking.h), keeps nobody. boot_us: CLOCK_BOOTTIME. */
bool operation_waits(const struct leader_state *s, const struct operation_row *rows, int at,
                     int64_t boot_us);
/* True while a part that was posted before this operation is still to be read. Only what was read
 * can be moved, so the operation waits: else it would end without these parts. Of verbs of waiting
 * parts; what others move has been read long ago. */
bool operation_parts_unread(const struct live_campaign *lc, const struct operation_row *op);
/* Where the parts of operations are read on, a page at a time; all zero at first. What an operation
 * moves leaves its selection, so it reads on from where its last page began. */
struct operation_cursor {
    int64_t of; /* the operation whose parts were read last */
    int64_t after;
};
/* Returns behind which part the next page of this operation begins. Failed parts are found at once
 * from the first on, however many have moved. */
int64_t operation_page_from(struct operation_cursor *at, int64_t operation_id, enum verb verb);
/* The page came: rows[n], by id. True: there was nothing behind where it began; it is read once
 * more from the first part, since one may have come into this state meanwhile. */
bool operation_page_again(struct operation_cursor *at, const struct task_row *rows, size_t n);
/* A page of tasks may be of several stages; one stage is done at a time. Moves the rows of the
 * first one's stage to the front, in their order, and writes their ids. Returns how many. Those in
 * busy[busy_n] are left out: an answer about them is under way (skip_done.h), so they do not move
 * before it has come. */
size_t operation_pick(struct task_row *rows, size_t n, const int64_t *busy, size_t busy_n,
                      int64_t *ret_ids);

/* One page of a verb that moves parts: tasks of one stage. */
struct operation_writes {
    enum verb verb;
    enum verb_answer answer; /* refused: nothing moves, the operation ends as cancelled */
    int64_t stage_id;
    enum task_state task_from, task_to;
    bool stage_reopens, campaign_reopens;
    bool resumes;            /* what ended before no longer counts for the stage's breaker */
    int64_t last_attempt_id; /* then: of the stage, set by who writes it */
    enum stage_state stage_from;
    enum campaign_state campaign_from;
    struct task_changes changes;
};
enum operation_then {
    OPERATION_MOVES,      /* the page, by *ret */
    OPERATION_IS_DONE,    /* no task is left */
    OPERATION_IS_REFUSED, /* in the state of its campaign and stage; it ends as cancelled */
    OPERATION_UNREADABLE, /* it ends as cancelled, and people are told why */
};
/* What becomes of an operation. readable: operation_read could read it; ls: of the next page of its
 * tasks; NULL when there is none. */
enum operation_then operation_next(bool readable, const struct operation_order *order,
                                   const struct live_campaign *lc, const struct live_stage *ls,
                                   struct operation_writes *ret);
/* Of a page of an undo: the ids of those parts of the first one's stage and state, whose rows move
 * to the front in their order. Returns how many. */
size_t operation_undo_pick(struct retried_row *rows, size_t n, int64_t *ret_ids);
/* After the commit: of rows[n], all of one stage and state and in order of id, those in
 * moved_ids[moved] have failed again as they had; life (campaign_life.h) ends what the retry had
 * reopened. */
void operation_undo_apply(struct leader_state *s, struct live_campaign *lc,
                          const struct retried_row *rows, size_t n, const int64_t *moved_ids,
                          size_t moved);
/* The state that its row has after this step. */
enum operation_state operation_ends_as(enum operation_then then);
void operation_plan(const struct live_campaign *lc, const struct live_stage *ls,
                    const struct operation_order *order, struct operation_writes *ret);
/* After the commit: of rows[n], all of one stage, those in moved_ids[moved] have moved.
 * now_us: wall. */
void operation_apply(struct leader_state *s, struct live_campaign *lc,
                     const struct operation_writes *w, const struct task_row *rows, size_t n,
                     const int64_t *moved_ids, size_t moved, usec_t now_us);
