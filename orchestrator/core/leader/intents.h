/* From the scheduler's plan to intents: what each launch will ask AWS for, under which name; and
 * memory once they are committed. Memory proposes, the transaction disposes: what it refuses goes
 * back to the queue. Pure. */
#pragma once
#include "common/json.h"
#include "sched_view.h"

#define INTENT_REQUEST_BYTES_MAX (1024 * 1024)
#define INTENT_AGAIN_US          (2 * USEC_PER_SEC)   /* what was refused is proposed again then */
#define INTENT_NOT_BUILT_US      (300 * USEC_PER_SEC) /* no request can be made of it yet */

/* One launch of a plan with what its indexes stand for. Borrowed. */
struct launch_facts {
    const struct sched_launch *launch;
    const struct sched_stage *stage;
    struct live_campaign *campaign;
    const struct quota_ledger *slots;
    const struct quota_ledger_account *account;
    int64_t pool_id; /* it starts on this pool's instances; 0: on new ones */
    struct task_input *task;
    const json_t *vars; /* of the task; NULL none */
};
/* Launch i of a plan made from this view. task: its input, which may be filled later. Valid as long
 * as all three. */
struct launch_facts leader_launch_facts(const struct leader_view *v, const struct sched_plan *plan,
                                        int i, struct task_input *task);

/* SHA-256 that a job's name is made from: install, the campaign's nonce, campaign, stage, task, n.
 * A restored database may give a number to another campaign; its nonce keeps their jobs apart. */
void leader_intent_identity(const struct leader_state *s, const char *nonce,
                            const struct intent *in, uint8_t ret[static 32]);
/* All of the intent but its request, which leader_plan_request makes. */
void leader_plan_intent(const struct leader_state *s, const struct launch_facts *f,
                        int64_t attempt_id, const char *job_prefix, usec_t now_us,
                        struct intent *ret);
/* The exact bytes of the request, in ret, and their hash in in->identity_hash. in->request is
 * borrowed from ret. When a value of its stage or its part fits in no request, the intent is made
 * all the same: it has ATTEMPT_NO_REQUEST and, borrowed from ret, in->no_request says why. Nothing
 * is sent of it, and its part fails as by a refusal of AWS. False: not now; the task waits. */
bool leader_plan_request(const struct leader_state *s, const struct launch_facts *f,
                         const char *region, struct intent *in, struct buf *ret,
                         struct err *err) MUST_CHECK;
/* The intent is committed and was taken: slots, money, counts and pools move. Takes the strings of
 * f->task. Returns the attempt; a->pool is new when it will leave one. */
struct live_attempt *leader_apply_intent(struct leader_state *s, const struct launch_facts *f,
                                         const struct intent *in, usec_t now_us);
/* Why nothing was written of a launch. */
enum launch_fault {
    LAUNCH_NO_REQUEST,  /* none can be made of it yet */
    LAUNCH_NOT_WRITTEN, /* its rows are locked, or a value is refused: parking.h */
    LAUNCH_REFUSED,     /* its rows said no */
    LAUNCH_NO_MONEY,    /* rows of money said no, which memory holds to be enough */
    LAUNCH_PART_MONEY   /* its part's own cap said no: leader_part_spent */
};
/* Why this intent was not taken. lowered: a request was made of it. */
enum launch_fault leader_launch_fault(const struct intent *in, bool lowered);
/* The intent was refused for its part's own cap, and so told what the part has cost: an attempt
 * that was paused, or failed before a person's retry, is not known otherwise. Plans know it. */
void leader_part_spent(struct leader_state *s, const struct intent *in);
/* Its task is proposed again after a while: the longer, the longer its stage's intents have been
 * refused, with none taken between; and at least pause_us (it is parked). Refused for money, no
 * part of its stage is proposed before. input: its row, id 0 when it was not read. False: by its
 * row it does not wait, so it is not proposed again. */
bool leader_put_back(struct leader_state *s, struct live_stage *ls,
                     const struct ready_queue_task *task, const struct task_input *input,
                     enum launch_fault fault, int64_t pause_us, usec_t now_us);
/* So it was, and no part of the stage is proposed yet. */
bool leader_no_start(const struct live_stage *ls, usec_t now_us);
/* An intent was taken, or people want something else: what was refused says nothing any more. */
void leader_propose_again(struct live_stage *ls);

/* True when the reason of a plan is to be written for this stage; not while its campaign is
 * locked. */
bool leader_reason_moves(const struct live_campaign *lc, const struct live_stage *ls,
                         enum wait_reason why);
/* When the scheduler is asked again because of its last plan, which was made at now_us (wall): a
 * back-off ends, a rung opens. -1: a tick comes before that anyway. */
int64_t leader_next_plan_in_us(const struct sched_plan *plan, usec_t now_us,
                               int64_t tick_interval_us);

/* Notes whether money keeps campaigns from starting, now or for good; at_limit says what follows.
 * The arrays are parallel: n stages of a plan, which gives the reasons of each. */
void leader_note_money_short(struct leader_state *s, const struct sched_stage *stages,
                             struct live_campaign *const *campaigns,
                             struct live_stage *const *live_stages, const struct sched_plan *plan,
                             int n);
