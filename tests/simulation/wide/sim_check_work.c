/* The judge of tasks and stages: retries by cause, what may fail a part, what a stage that fails
 * completely may cost, plans that leave work undone. */
#include "sim_world.h"

#define ATTEMPTS_MOST 20

/* A tenth of a leader's calls may be retries, plus ten each time SageMaker answers again, plus
 * one a minute. */
void judge_retry_traffic(struct world *w, const struct ctl *c)
{
    int64_t most = c->tally.firsts / 10 + 10 * (1 + c->tally.refills) +
                   (w->now_us - c->tally.since_us) / MINUTE + 2;
    if (c->tally.retries > most) {
        wrong(w, "I14", "controller %d made %lld retries and %lld first calls", c->id,
              (long long)c->tally.retries, (long long)c->tally.firsts);
    }
}

/* How often a part may be retried after an end of this cause; -1: without limit. */
static int times_of(const struct spec_stage *s, enum cause cause)
{
    static const int times[CAUSE_COUNT] = {
#define X(c, name, counts, times, from_s, to_s, remedy) [CAUSE_##c] = times,
#include "core/failure/cause.def"
#undef X
    };
    return s->retry[cause].set ? s->retry[cause].times : times[cause];
}

/* A part fails only by the end of one of its jobs, or by a permanently refused request. */
static bool may_fail(struct world *w, const struct db_attempt *a, const struct intent_seen *in)
{
    bool ended = in != NULL && in->job >= 0 && w->aws.jobs[in->job].over;
    /* a spec may give capacity up after so many tries */
    bool capacity = a->cause == CAUSE_CAPACITY &&
                    times_of(&w->stage[TASK_STAGE(w, a->task)], CAUSE_CAPACITY) >= 0 &&
                    TASK(w, a->task)->judged[CAUSE_CAPACITY] >=
                        times_of(&w->stage[TASK_STAGE(w, a->task)], CAUSE_CAPACITY);
    return ended || capacity || w->refused[a->task] || (in != NULL && in->conflict);
}

/* An attempt does not count only when nothing ran, whatever its job says. */
static bool free_failure(const struct world *w, const struct attempt_record *r,
                         const struct intent_seen *in)
{
    const struct job *j = in != NULL && in->job >= 0 ? &w->aws.jobs[in->job] : NULL;
    return r->to == ATTEMPT_FAILED && r->cause != CAUSE_NONE && !r->task_counts && j != NULL &&
           j->over && j->v.status == JOB_FAILED && j->v.started != 0;
}

void judge_task_moved(struct world *w, int task, const struct attempt_record *r)
{
    const struct db_attempt *a = ATTEMPT(w, row_of_id(r->attempt_id));
    struct db_task *t = TASK(w, task);
    const struct spec_stage *s = &w->stage[t->stage];
    judge_part_moved(w, task, r);
    if (r->task_to == TASK_FAILED && !may_fail(w, a, judge_intent(w, a->name_hash))) {
        wrong(w, "I13", "part %d fails with %s, and no job of it has ended", task,
              cause_name(r->cause));
    }
    if (free_failure(w, r, judge_intent(w, a->name_hash))) {
        wrong(w, "I13", "part %d: its job ran and failed with %s, and does not count", task,
              cause_name(r->cause));
    }
    if (t->attempts > ATTEMPTS_MOST) {
        wrong(w, "I13", "part %d counts %d attempts", task, t->attempts);
    }
    if (r->task_to != TASK_WAITING || r->cause == CAUSE_NONE) {
        return;
    }
    int most = times_of(s, r->cause);
    t->judged[r->cause] = (uint8_t)MIN(t->judged[r->cause] + 1, 255);
    if (most >= 0 && t->judged[r->cause] > most) {
        wrong(w, "I13", "part %d is tried again %d times after %s, %d are allowed", task,
              t->judged[r->cause], cause_name(r->cause), most);
    }
}

/* A breaker holds a stage for ends since its last resume, and not later than its rules say. */
void judge_held(struct world *w, int stage)
{
    const struct db_stage *s = STAGE(w, stage);
    int64_t most = MAX(w->rules.canary, w->rules.k);
    int64_t started = 0, paid = 0;
    bool passed = false;
    for (size_t i = 0; i < w->db.t[T_ATTEMPT].n; i++) {
        const struct db_attempt *a = ATTEMPT(w, i);
        if (TASK_STAGE(w, a->task) != stage) {
            continue;
        }
        const struct intent_seen *in = judge_intent(w, a->name_hash);
        const struct job *j = in != NULL && in->job >= 0 ? &w->aws.jobs[in->job] : NULL;
        bool long_run = judge_proves(w, stage, j);
        bool since = (int)i >= s->breaker_since;
        /* One that started before and passes after it proves, too, that the work can be done. */
        bool now = since || j == NULL || !j->over || j->v.ended >= s->reset_us;
        started += since;
        paid += since && j != NULL && j->over && a->counted;
        passed |= now && (a->state == ATTEMPT_SUCCEEDED || long_run);
    }
    if (started == 0) {
        wrong(w, "I18", "stage %d is held although nothing of it was tried since it was resumed",
              stage);
    }
    bool sure = w->cfg.strength[FAULT_FAILOVER] <= 0 && !passed;
    if (sure && w->rules.canary > 0 && paid > most) {
        wrong(w, "I13",
              "stage %d paid for %lld attempts that failed before it was held, %lld are "
              "the most",
              stage, (long long)paid, (long long)most);
    }
}
