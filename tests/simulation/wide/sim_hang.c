/* Reads the progress of running attempts once a minute; core/leader/progress.h says what it
 * means. */
#include "core/leader/progress.h"
#include "sim_world.h"

void hang_ask(struct world *w, struct ctl *c)
{
    bool any = false;
    for (size_t i = 0; i < c->state.attempts_n; i++) {
        any |= leader_progress_watched(c->state.attempts[i]);
    }
    if (any && !c->progress_reading && w->now_us >= c->progress_at_us + MINUTE) {
        c->progress_reading = true;
        c->progress_at_us = w->now_us;
        call_send(w, call_new(w, c, CALL_PROGRESS, -1));
    }
}

/* The stop and its reason are written first, so that another leader can continue. */
static void stop_hung(struct world *w, struct ctl *c, struct live_attempt *a)
{
    int job = aws_find(w, name_hash_of(a->row.name.s));
    const struct job *j = job >= 0 ? &w->aws.jobs[job] : NULL;
    SOMETIMES(w, HUNG);
    if (j != NULL && !j->hung && !j->over && j->intent >= 0) {
        wrong(w, "I18", "%s works and is taken for hung", a->row.name.s);
    }
    if (!db_begin(w, c)) {
        return;
    }
    struct db_attempt *row = db_touch(w, T_ATTEMPT, (size_t)row_of_id(a->row.id));
    row->unwanted = true;
    row->stop_cause = CAUSE_TIMEOUT;
    if (!db_commit(w, c)) {
        return;
    }
    leader_apply_hung(a);
    tell(w, row_of_id(a->row.task_id), "a%d hangs", a->row.n);
    carry_fact(w, c, a->row.id, &(struct fact){.kind = FACT_UNWANTED, .at_us = ctl_boot(w, c)});
}

void hang_answer(struct world *w, struct ctl *c, const struct call *k)
{
    enum hang_detector_verdict v;
    c->progress_reading = false;
    for (size_t i = 0; i < c->state.attempts_n && c->leading && k->answer == ANSWER_OK; i++) {
        struct live_attempt *a = c->state.attempts[i];
        struct hang_detector_seen seen;
        int job = aws_find(w, name_hash_of(a->row.name.s));
        if (job < 0 || !leader_progress_watched(a)) {
            continue;
        }
        bool there = job_progress(w, &w->aws.jobs[job], &seen);
        if (leader_progress_saw(&c->state, a, there ? &seen : NULL, ctl_boot(w, c))) {
            carry_fact(w, c, a->row.id, &(struct fact){.kind = FACT_HINT, .at_us = ctl_boot(w, c)});
        }
        if (leader_progress_stops(a, &v)) {
            stop_hung(w, c, a);
        }
    }
}
