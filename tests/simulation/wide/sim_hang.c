/* Progress of running attempts, listed once a minute: one that hangs is stopped and tried again.
 * Now is what the object store's Date header says: our own wall clock may jump. */
#include "sim_world.h"

void hang_ask(struct world *w, struct ctl *c)
{
    bool any = false;
    for (size_t i = 0; i < c->state.attempts_n; i++) {
        any |= c->state.attempts[i]->p.state == ATTEMPT_RUNNING;
    }
    if (any && !c->progress_reading && w->now_us >= c->progress_at_us + MINUTE) {
        c->progress_reading = true;
        c->progress_at_us = w->now_us;
        call_send(w, call_new(w, c, CALL_PROGRESS, -1));
    }
}

static struct hang_detector_rules rules_of(const struct live_attempt *a)
{
    const struct spec_guard *g = &a->stage->spec->guard;
    return (struct hang_detector_rules){.silent_us = g->hang_silent_s * SEC,
                                        .standstill_us = g->hang_standstill_s * SEC,
                                        .start_us = g->hang_start_s * SEC};
}

/* A job that ended while SageMaker could not be asked has no progress either: it is hung only when
 * SageMaker says that it runs, asked after it began to look so. */
static bool runs_still(struct world *w, struct ctl *c, struct live_attempt *a)
{
    if (a->suspect_us == 0) {
        a->suspect_us = ctl_boot(w, c);
        carry_fact(w, c, a->row.id, &(struct fact){.kind = FACT_HINT, .at_us = a->suspect_us});
        return false;
    }
    return a->p.described_us > a->suspect_us;
}

static bool is_hung(struct world *w, struct ctl *c, struct live_attempt *a)
{
    const struct hang_detector_rules rules = rules_of(a);
    struct hang_detector_seen seen;
    int job = aws_find(w, name_hash_of(a->row.name.s));
    if (a->row.state != ATTEMPT_RUNNING || !a->p.wanted || a->recording || job < 0 ||
        a->p.modified == 0) {
        return false;
    }
    const struct job *j = &w->aws.jobs[job];
    bool there = job_progress(w, j, &seen);
    usec_t date_us = SIM_EPOCH_US + w->now_us;
    hang_detector_saw(&a->hang, there ? &seen : NULL, date_us);
    if (hang_detector_check(&a->hang, &rules, a->p.modified, date_us) == HANG_DETECTOR_NONE) {
        a->suspect_us = 0;
        return false;
    }
    if (!runs_still(w, c, a)) {
        return false;
    }
    SOMETIMES(w, HUNG);
    if (!j->hung && !j->over && j->intent >= 0) {
        wrong(w, "I18", "%s works and is taken for hung", a->row.name.s);
    }
    return true;
}

/* Its row says that we stop it and why, before anything else: another leader may have to go on. */
static bool write_hung(struct world *w, struct ctl *c, int64_t attempt_id)
{
    if (!db_begin(w, c)) {
        return false;
    }
    struct db_attempt *row = db_touch(w, T_ATTEMPT, (size_t)row_of_id(attempt_id));
    row->unwanted = true;
    row->stop_cause = CAUSE_TIMEOUT;
    return db_commit(w, c);
}

void hang_answer(struct world *w, struct ctl *c, const struct call *k)
{
    c->progress_reading = false;
    if (k->answer != ANSWER_OK) {
        return;
    }
    for (size_t i = c->state.attempts_n; i-- > 0 && c->leading;) {
        struct live_attempt *a = i < c->state.attempts_n ? c->state.attempts[i] : NULL;
        if (a == NULL || !is_hung(w, c, a)) {
            continue;
        }
        if (!write_hung(w, c, a->row.id)) {
            return;
        }
        a->row.unwanted = true;
        a->row.stop_cause = CAUSE_TIMEOUT;
        tell(w, row_of_id(a->row.task_id), "a%d hangs", a->row.n);
        carry_fact(w, c, a->row.id, &(struct fact){.kind = FACT_UNWANTED, .at_us = ctl_boot(w, c)});
    }
}
