/* What people want of a campaign, and the ends of its stages, become states. Looks at counters,
 * never at single parts. Each plan_ says what is to be written; its apply_ changes memory once
 * that is committed. Pure. */
#pragma once
#include "core/sched/ready_queue.h"
#include "leader_state.h"
#include "parking.h"

struct campaign_life_move {
    int64_t stage_id;        /* 0: the campaign itself */
    int from, to;            /* stage_state or campaign_state */
    bool resumes;            /* a held stage goes on: its breaker counts from here on */
    int64_t last_attempt_id; /* resumes: the stage's newest attempt, filled in when it is written */
    char reason[400];
};
struct campaign_life_writes {
    struct campaign_life_move moves[1 + SPEC_STAGES_MAX];
    int n;
    bool waits_for_person; /* at_limit stopped it: until it is edited or resumed */
};

/* Whose lock or refused value keeps a campaign from being looked at. One without a readable spec
 * is parked, and can be stopped and cancelled all the same: only its lock counts. */
struct parking_subject campaign_life_subject(const struct live_campaign *lc);

/* Moves of the stages; of the campaign only when no stage moves. */
void campaign_life_plan(const struct live_campaign *lc, struct campaign_life_writes *ret);
/* Each move once it is written; asks for another look, since one move may allow the next. */
void campaign_life_apply(struct leader_state *s, struct live_campaign *lc,
                         const struct campaign_life_move *m);

/* True: its live attempts are wanted no more (it is cancelled, paused or out of money), and one of
 * them is not yet written so. *ret_waits as in campaign_life_writes. */
bool campaign_life_plan_unwant(const struct leader_state *s, const struct live_campaign *lc,
                               bool *ret_waits);
void campaign_life_apply_unwant(struct leader_state *s, const struct live_campaign *lc);
/* A takeover holds attempts for unwanted when it reads their campaign as paused. Resumed before a
 * stop was written, the campaign needs them: they are wanted again. Call it when nothing is to be
 * written of campaign_life_plan_unwant. */
void campaign_life_want_again(struct leader_state *s, const struct live_campaign *lc);

/* Tasks that will not run: of a campaign that is being cancelled those that wait or are held, of a
 * stage whose file system is gone for good those that wait: these fail. At most `max` of one stage
 * and one state, taken out of its queues. False: none left. */
struct campaign_life_cancel {
    int64_t stage_id;
    enum task_state from; /* TASK_WAITING or TASK_HELD */
    enum task_state to;   /* TASK_CANCELLED or TASK_FAILED */
    enum cause cause;
    char message[SIGNATURE_MAX + 1]; /* why they fail: there is no attempt to tell it */
    struct ready_queue_task *tasks;  /* [max], the caller's */
    size_t n, ready_n; /* WAITING: the first ones were ready, of the others S3 was not asked yet */
};
/* Takes them out of the queues; campaign_life_apply_cancel returns those that were not written. */
bool campaign_life_plan_cancel(const struct leader_state *s, struct live_campaign *lc, size_t max,
                               struct campaign_life_cancel *ret);
/* `moved` of them were in state `from` and will not run. Not written: they stay as they were. Fewer
 * than all: the campaign's parts are read again, and people are told of those without a row. */
void campaign_life_apply_cancel(struct leader_state *s, struct live_campaign *lc,
                                const struct campaign_life_cancel *w, bool written, size_t moved);

/* One look at a campaign: its steps in the order in which they are written. A stop is written
 * before states move, so that a new leader knows whose stop it sees. */
enum campaign_life_step {
    LIFE_UNWANT, /* its live attempts are wanted no more */
    LIFE_CANCEL, /* `cancel`: a batch of its waiting tasks is cancelled */
    LIFE_MOVE,   /* `writes`: its states move */
    LIFE_SEEN,   /* nothing is left to write */
};
struct campaign_life_look {
    struct campaign_life_cancel cancel; /* its tasks[cancel_max] are the caller's */
    size_t cancel_max;
    struct campaign_life_writes writes;
};
/* The first step from `from` on that has something to write, filled into *ret. The caller writes
 * and applies it and asks for what follows it; a step that could not be written ends the look. */
enum campaign_life_step campaign_life_next(struct leader_state *s, struct live_campaign *lc,
                                           enum campaign_life_step from,
                                           struct campaign_life_look *ret);

/* A look reached this step and no transaction of it was refused: with its rows read, nothing can be
 * met any more of what the campaign was parked for. */
bool campaign_life_went_through(const struct live_campaign *lc, enum campaign_life_step reached);

/* Ended, nothing of it alive or kept warm: it may be forgotten. */
bool campaign_life_over(const struct live_campaign *lc);
