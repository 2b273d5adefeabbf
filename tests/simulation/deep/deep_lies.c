/* Refusals that lie: AWS answers a Create with an error, and the job was made all the same. Only
 * some worlds have such. What must hold (I1): the void attempt whose job is seen alive is ours
 * again when nothing has replaced it, else its job is stopped; two jobs of one task live no longer
 * than an undisturbed leader needs for one round of Lists and what follows from it. The money of
 * both is the ledger's (I6). */
#include "deep.h"
#include <stdio.h>

#define ACT_US (30 * SEC) /* from a List's answer to the Stop: a Describe, a row, a call */

void lies_draw(void)
{
    if (deep->lies) {
        deep->lie_strength = 0.05 + 0.45 * rng_unit(&deep->rng_lies);
    }
}

static void say_no(const struct job *j, struct aws_failure *f)
{
    long long limit = (long long)deep->quota[j->type][j->spot];
    switch (rng_below(&deep->rng_lies, 5)) {
    case 0:
        aws_refuse(f, AWS_REFUSED, "ValidationException", "1 validation error detected");
        return;
    case 1:
        aws_refuse(f, AWS_REFUSED, "AccessDeniedException",
                   "is not authorized to perform: sagemaker:CreateTrainingJob");
        return;
    case 2:
        aws_refuse(f, AWS_THROTTLED, "ThrottlingException", "Rate exceeded");
        return;
    default:
        aws_refuse(f, AWS_REFUSED, "ResourceLimitExceeded",
                   "The account-level service limit '%s for %straining job usage' is %lld "
                   "Instances, with current utilization of %lld Instances and a request delta of "
                   "%d Instances.",
                   deep_types[j->type], j->spot ? "spot " : "", limit, limit, j->count);
    }
}

bool lies_create(struct str body, usec_t signed_us, char ret_arn[static 257], struct aws_failure *f)
{
    size_t before = deep->jobs_n;
    bool made = aws_create(body, signed_us, ret_arn, f);
    if (!made || !deep->lies || deep->calm || deep->jobs_n == before ||
        !rng_chance(&deep->rng_lies, deep->lie_strength)) {
        return made;
    }
    struct job *j = &deep->jobs[deep->jobs_n - 1];
    j->lied = true;
    deep->lies_n++;
    say_no(j, f);
    trace("the refusal of %s is a lie", j->name);
    return false;
}

void lies_disturbed(void)
{
    deep->disturbed_us = deep->now_us;
}

/* The end of the last that keeps a leader from its work. */
int64_t quiet_since(void)
{
    int64_t us = MAX(deep->disturbed_us, MAX(deep->outage_until_us, deep->db_down_until_us));
    for (int i = 0; i < deep->procs_n; i++) {
        const struct proc *p = &deep->procs[i];
        us = MAX(us, p->up ? p->frozen_until_us : deep->now_us);
    }
    return us;
}

/* How long two whole Lists take beyond their first pages, at 8 pages in 3 intervals: a job may be
 * made just behind the place that one has come to. */
static int64_t crowd_us(void)
{
    return (int64_t)(deep->jobs_n / JOB_LIST_PAGE) * 2 * deep->observe_us * 3 / 8;
}

/* Two jobs of one task live, and one of them is of a void attempt. */
static void look(void *ctx, int64_t arg)
{
    const struct job *j = ctx;
    int64_t most_us = deep->observe_us + ACT_US + crowd_us() + silence_us();
    const struct campaign *c = campaign_find(j->campaign_id);
    if (j->over || j->stop_asked || c == NULL) {
        return;
    }
    int64_t from_us = MAX(j->twin_us, quiet_since());
    if (deep->now_us - from_us > most_us && !poison_kept(c)) {
        wrong("I1", "%s lives on beside another job of its task, %lld s after a leader could know",
              j->name, (long long)((deep->now_us - from_us) / SEC));
        return;
    }
    event_at(MAX(from_us + most_us, deep->now_us) + SEC, look, ctx, arg);
}

/* Our rows say of a job that was made that it was refused. */
static bool is_void(const struct job *j)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, j->name);
    return sql_asked_i64("lies_void", "SELECT count(*) FROM attempt WHERE name = $1 AND state = 12",
                         &p) > 0;
}

bool lies_allow_twin(struct job *o)
{
    if (!o->lied || !is_void(o)) {
        return false;
    }
    o->twin_us = deep->now_us;
    event_at(deep->now_us + SEC, look, o, 0);
    return true;
}

int64_t lies_unknown(int type, bool spot)
{
    int64_t n = 0;
    bool any = deep->restores_n > 0;
    for (size_t i = 0; i < deep->jobs_n && (any || deep->lies_n > 0); i++) {
        const struct job *j = &deep->jobs[i];
        if (!(any || j->lied) || j->foreign || !j->holds || j->type != type || j->spot != spot) {
            continue;
        }
        AUTO_PARAMS struct params p = PARAMS_INIT;
        param_text(&p, j->name);
        bool held = sql_asked_i64("lies_held",
                                  "SELECT (SELECT count(*) FROM attempt WHERE name = $1 AND holds) "
                                  "+ (SELECT count(*) FROM stray WHERE name = $1 AND holds)",
                                  &p) > 0;
        n += held ? 0 : j->count;
    }
    return n;
}

int64_t lies_use(int type)
{
    int64_t n = 0;
    for (size_t i = 0; i < deep->jobs_n && deep->lies_n > 0; i++) {
        const struct job *j = &deep->jobs[i];
        n += j->lied && j->holds && !j->spot && j->type == type ? j->count : 0;
    }
    return n;
}

/* Nothing has replaced it, and nothing has happened since it was made that might excuse a stop. */
void lies_stopped(const struct job *j)
{
    int64_t made_us = (int64_t)(j->created - wall_now()) + deep->now_us;
    if (!j->lied || !is_void(j)) {
        return;
    }
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, j->name);
    AUTO_RESULT PGresult *r = sql_asked(
        "lies_stopped",
        "SELECT EXISTS (SELECT FROM stray x WHERE x.name = a.name), NOT a.revived AND t.state = 0 "
        "AND t.names = a.n AND s.state = 'running' AND c.state NOT IN ('succeeded', 'failed', "
        "'cancelled') FROM attempt a JOIN task_run t ON t.campaign_id = a.campaign_id AND t.id = "
        "a.task_id JOIN stage_run s ON s.stage_id = a.stage_id JOIN campaign_run c ON "
        "c.campaign_id = a.campaign_id WHERE a.name = $1",
        &p);
    if (row_count(r) > 0 && !row_bool(r, 0, 0)) {
        wrong("I2", "%s is stopped, and no row says that it is a stray", j->name);
    }
    if (row_count(r) > 0 && row_bool(r, 0, 1) && quiet_since() < made_us && !j->let_end) {
        wrong("I1", "%s is stopped, though nothing has replaced it", j->name);
    }
}
