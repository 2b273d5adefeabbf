/* Progress of running attempts, listed once a minute: one that hangs is stopped and tried again.
 * Now is what the object store's Date header says: our own wall clock may jump. */
#include "sim_world.h"

void hang_ask(struct world *w, struct ctl *c)
{
    bool any = false;
    for (size_t i = 0; i < c->live_n; i++) {
        any |= c->live[i].p.state == ATTEMPT_RUNNING;
    }
    if (any && !c->progress_reading && w->now_us >= c->progress_at_us + MINUTE) {
        c->progress_reading = true;
        c->progress_at_us = w->now_us;
        call_send(w, call_new(w, c, CALL_PROGRESS, -1));
    }
}

static bool is_hung(struct world *w, struct live *a)
{
    static const struct hang_detector_rules rules = {15 * MINUTE, 30 * MINUTE, 30 * MINUTE};
    usec_t date_us = SIM_EPOCH_US + w->now_us;
    struct hang_detector_seen seen;
    int job = aws_find(w, a->row.name_hash);
    if (a->p.state != ATTEMPT_RUNNING || !a->p.wanted || job < 0 || a->run_from_us == 0) {
        return false;
    }
    bool there = job_progress(w, &w->aws.jobs[job], &seen);
    hang_detector_saw(&a->hang, there ? &seen : NULL, date_us);
    if (hang_detector_check(&a->hang, &rules, a->run_from_us, date_us) == HANG_DETECTOR_NONE) {
        return false;
    }
    SOMETIMES(w, HUNG);
    const struct job *j = &w->aws.jobs[job];
    if (!j->hung && !j->over && j->intent >= 0) {
        wrong(w, "I18", "%s works and is taken for hung", a->row.name.s);
    }
    return true;
}

/* Its row says that we stop it and why, before anything else: another leader may have to go on. */
static bool write_hung(struct world *w, struct ctl *c, int attempt)
{
    if (!db_begin(w, c)) {
        return false;
    }
    struct db_attempt *row = db_touch(w, T_ATTEMPT, (size_t)attempt);
    row->unwanted = row->hung = true;
    return db_commit(w, c);
}

void hang_answer(struct world *w, struct ctl *c, const struct call *k)
{
    /* Seen from here a job that ended in an outage of SageMaker seems to hang: look at it first. */
    bool blind = c->failing_since_us != 0 ||
                 ctl_boot(w, c) - c->well_since_us < 2 * w->cfg.observe_us + MINUTE;
    c->progress_reading = false;
    if (blind || k->answer != ANSWER_OK) {
        return;
    }
    for (size_t i = c->live_n; i-- > 0 && c->leading;) {
        if (i >= c->live_n || !is_hung(w, &c->live[i])) {
            continue;
        }
        int attempt = c->live[i].id;
        if (!write_hung(w, c, attempt)) {
            return;
        }
        struct live *a = live_get(c, attempt);
        a->row.hung = a->stopped_by_us = true;
        tell(w, a->row.task, "a%d hangs", a->row.n);
        live_fact(w, c, attempt, &(struct fact){.kind = FACT_UNWANTED, .at_us = ctl_boot(w, c)});
    }
}
