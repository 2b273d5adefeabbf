/* Outputs that were there before. Only some worlds have such: stages ask by done_if for what
 * somebody else left of half of their parts, and S3 answers it, is broken, or refuses to say. What
 * must hold (I9): no job of such a part is ever made, whatever S3 answered in between, and no part
 * is skipped whose output is not there. */
#include "core/failure/cause.h"
#include "deep.h"
#include <stdio.h>

#define PLACE "s3://bbb/before/{campaign}/{stage}/{part}/"

void outputs_draw(void)
{
    struct rng *r = &deep->rng_outputs;
    if (!deep->outputs) {
        return;
    }
    deep->output_strength = 0.5 * rng_unit(r);
    deep->strength[FAULT_S3_BROKEN] = MAX(deep->strength[FAULT_S3_BROKEN], 0.4 * rng_unit(r));
}

bool outputs_done_if(struct buf *b, bool manifest)
{
    if (!deep->outputs || !rng_chance(&deep->rng_outputs, 0.7)) {
        return false;
    }
    buf_add_cstr(b, manifest ? "    done_if: {manifest: \"" PLACE "\"}\n"
                             : "    done_if: {exists: \"" PLACE "done\"}\n");
    return true;
}

bool outputs_asked(const char *key)
{
    return strncmp(key, "before/", strlen("before/")) == 0;
}

bool outputs_refuse(const char *key)
{
    return deep->outputs && !deep->calm && outputs_asked(key) &&
           rng_chance(&deep->rng_outputs, deep->output_strength);
}

bool outputs_there(int64_t campaign_id, const char *stage, int64_t part)
{
    uint64_t h = deep->seed * 31 + (uint64_t)campaign_id;
    for (const char *c = stage; *c != '\0'; c++) {
        h = (h ^ (uint8_t)*c) * 1099511628211u;
    }
    h = (h ^ (uint64_t)part) * 1099511628211u;
    return deep->outputs && (h >> 32) % 2 == 0;
}

static const struct told_stage *told_of(const struct campaign *c, const char *stage)
{
    for (int i = 0; i < c->told_n; i++) {
        if (strcmp(c->told[i].name, stage) == 0) {
            return &c->told[i];
        }
    }
    return NULL;
}

void outputs_judge_job(const struct campaign *c, const struct job *j)
{
    const struct told_stage *t = told_of(c, j->stage);
    if (t != NULL && t->asks_before && outputs_there(c->id, j->stage, j->part)) {
        wrong("I9", "%s is started for a part whose output was there", j->name);
    }
}

/* I17: an output that was whole when its job ended is called short by nobody, and its part is not
 * paid again before somebody has looked at it, unless people retry it. */
void outputs_judge_again(const struct job *j, const struct job *o)
{
    bool whole = o->over && strcmp(o->status, "Completed") == 0 && o->written && !o->late &&
                 !o->short_output;
    if (!whole || o->campaign_id != j->campaign_id) {
        return;
    }
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, o->name);
    param_i64(&p, CAUSE_SHORT_OUTPUT);
    param_i64(&p, ATTEMPT_FAILED);
    if (sql_asked_i64("outputs_again",
                      "SELECT count(*) FROM attempt a WHERE a.name = $1 AND (a.cause = $2 OR "
                      "a.state = $3 AND NOT EXISTS (SELECT FROM operation o WHERE o.campaign_id = "
                      "a.campaign_id AND o.kind = 'retry'))",
                      &p) > 0) {
        wrong("I17", "%s is started, and %s had written the part's output", j->name, o->name);
    }
}

void outputs_end(void)
{
    if (!deep->outputs) {
        return;
    }
    AUTO_RESULT PGresult *r = sql_asked(
        "outputs_skipped",
        "SELECT t.campaign_id, s.name, t.seq::bigint FROM task_run t JOIN stage s ON s.id = "
        "t.stage_id WHERE t.state = 5 AND NOT EXISTS (SELECT FROM operation o WHERE o.campaign_id "
        "= t.campaign_id AND o.kind = 'skip') ORDER BY t.id",
        NULL);
    for (int i = 0; i < row_count(r); i++) {
        const struct campaign *c = campaign_find(row_i64(r, i, 0));
        const struct told_stage *t = c != NULL ? told_of(c, row_text(r, i, 1)) : NULL;
        if (t != NULL && !(t->asks_before && outputs_there(c->id, t->name, row_i64(r, i, 2)))) {
            wrong("I9", "part %lld of c-%lld/%s is skipped, and its output is not there",
                  (long long)row_i64(r, i, 2), (long long)c->id, t->name);
        }
    }
}
