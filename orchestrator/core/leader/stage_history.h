/* What the attempts of a stage teach: how long parts run, which rung of the ladder has capacity,
 * whether the work can be done at all (breaker), how long a start takes. Fed by committed records
 * only: a new leader rebuilds the same statistics from the rows. Times are wall clock. */
#pragma once
#include "leader_state.h"

/* Equal for failures of one kind. words: of cause_signature. */
uint64_t stage_history_signature(enum cause cause, const char *words);
/* Why a tripped stage is held, for people, into ret[size]. */
void stage_history_trip_text(const struct live_campaign *lc, const struct live_stage *ls, char *ret,
                             size_t size);

/* At takeover: init with row and spec set, then the rows of its history, oldest first. */
void stage_history_init(struct live_stage *ls);
void stage_history_saw_breaker_row(struct live_stage *ls, const struct breaker_row *row);
void stage_history_saw_duration(struct live_stage *ls, int64_t size, int64_t run_us);
/* rows[n]: the promises of its campaign; the stage takes its own. */
void stage_history_take_promises(struct live_stage *ls, const struct promise_row *rows, size_t n);

/* An attempt was intended. */
void stage_history_started(struct live_attempt *a, usec_t now_us);
/* It moved to a->row.state, committed. */
void stage_history_moved(struct leader_state *s, struct live_attempt *a, usec_t now_us);
/* It is proof that the stage's work can be done. */
void stage_history_passed(struct leader_state *s, struct live_attempt *a);
/* AWS had no capacity for it. */
void stage_history_refused_capacity(struct live_attempt *a, usec_t now_us);
/* It ended as `to`; ran: its job had run and failed, so it counts whatever its words say; words:
 * signature of its failure. True: the breaker trips now. One of whose part no request can be made
 * says nothing of the stage. */
bool stage_history_ended(struct live_attempt *a, enum attempt_state to, enum cause cause, bool ran,
                         const char *words, usec_t now_us);
/* Ten minutes of running, as this leader has seen them, prove a user's own image. */
void stage_history_tick(struct leader_state *s, int64_t boot_us);
/* A person let the stage go on: attempts up to this id no longer count against it. */
void stage_history_resumed(struct live_stage *ls, int64_t last_attempt_id);

struct stage_history_write { /* what the rows are to keep */
    bool passed;             /* the breaker's row says that one attempt has passed */
    bool promise_moves;
    struct promise_row promise; /* task_id 0: dropped */
};
/* True: something differs from the rows. Apply after the commit. */
bool stage_history_plan(const struct live_stage *ls, struct stage_history_write *ret);
void stage_history_apply(struct live_stage *ls, const struct stage_history_write *w);
/* True when a campaign that can be written differs from its rows. */
bool stage_history_dirty(const struct leader_state *s);
