/* The leader's state as the scheduler reads it: plain arrays, made for one decision. */
#pragma once
#include "leader_state.h"

struct leader_view { /* of what does not rest (awake.h) */
    struct sched_view view;
    struct sched_stage *stages;
    struct live_stage **live_stages;       /* [view.stages_n], the stage behind each */
    struct live_campaign **live_campaigns; /* [view.stages_n] */
    struct sched_campaign *campaigns;
    struct sched_project *projects;
    struct quota_ledger *slots;
    struct quota_ledger_account account;
    struct sched_job *jobs;
    struct warm_pool *pools;
    struct live_pool **live_pools; /* [view.pools_n] */
    void *block;                   /* all of these arrays but slots */
};
/* Intents whose Create was not sent yet. */
int64_t sched_view_unsent(const struct leader_state *s);
/* Why no part of the stage may start; WAIT_NONE: its parts may, once the file system that they
 * mount is available. */
enum wait_reason sched_view_why_not(const struct live_campaign *lc, const struct live_stage *ls,
                                    usec_t now_us);
/* now_us: wall clock; tokens: how many attempts may be intended. Fits the duration models, adds
 * slots of types seen first, drops promises of stages where nothing waits, and lets campaigns rest.
 * A stage that may not start is left out once the reason is written. The arrays are *ret's,
 * released by sched_view_done; what they point to is the state's and valid until it changes. */
void sched_view_make(struct leader_state *s, usec_t now_us, int64_t tokens,
                     struct leader_view *ret);
void sched_view_done(struct leader_view *v);
/* A campaign that rests although a plan has to look at it; NULL: as it must be. For tests: it looks
 * at every stage. */
const struct live_campaign *sched_view_overslept(const struct leader_state *s, usec_t now_us);
