/* What must hold of `needs` and gates (I21): nothing starts before what it needs has ended well, or
 * behind a gate that neither its runs nor a person opened. A gate holds for a reason, its campaign
 * says so, and a person's override opens it. */
#include "deep.h"

#define SAYS_US (25 * MINUTE) /* until the campaign says it, in the calm */

static bool is_complete(const struct job *j)
{
    return !j->foreign && j->over && strcmp(j->status, "Completed") == 0;
}

bool job_is_good(const struct job *j)
{
    return !j->mute && j->cents < 500;
}

/* Jobs of the part that completed, and those of them that are good. */
static int complete(const struct campaign *c, const struct told_stage *t, int64_t part,
                    int *ret_good)
{
    int n = 0;
    *ret_good = 0;
    for (size_t i = 0; i < deep->jobs_n; i++) {
        const struct job *j = &deep->jobs[i];
        if (j->campaign_id == c->id && j->part == part && is_complete(j) &&
            strcmp(j->stage, t->name) == 0) {
            n++;
            *ret_good += job_is_good(j);
        }
    }
    return n;
}

static void check_need(const struct campaign *c, const struct told_stage *t, const char *what)
{
    for (int64_t part = 0; part < t->parts && t->all_good && !c->skips; part++) {
        int good;
        bool before = t->asks_before && outputs_there(c->id, t->name, part);
        if (complete(c, t, part, &good) == 0 && !before) {
            wrong("I21", "%s is started before part %lld of %s, which it needs, is done", what,
                  (long long)part, t->name);
        } else if (t->gated && !t->overridden && good == 0) {
            wrong("I21", "%s is started behind the gate of %s, which part %lld does not open", what,
                  t->name, (long long)part);
        }
    }
}

void judge_needs(const struct campaign *c, const char *stage, const char *what)
{
    for (int i = 0; i < c->told_n; i++) {
        for (int k = 0; k < c->told_n && strcmp(c->told[i].name, stage) == 0; k++) {
            if ((c->told[i].needs & (1u << k)) != 0) {
                check_need(c, &c->told[k], what);
            }
        }
    }
}

void judge_model(const struct hosted *h)
{
    const struct campaign *c = campaign_find(h->campaign_id);
    if (c == NULL) {
        wrong("I2", "%s is of no campaign", h->name);
        return;
    }
    judge_needs(c, h->stage, h->name);
    for (int i = 0; i < c->told_n && h->kind == HOSTING_MODEL; i++) {
        char data[160];
        (void)snprintf(data, sizeof data, "s3://bbb/out/%lld/%s/0/model.tar.gz", (long long)c->id,
                       c->told[i].model_of);
        if (strcmp(c->told[i].name, h->stage) == 0 && c->told[i].model_of[0] != '\0' &&
            strcmp(data, h->data) != 0) {
            wrong("I21", "%s serves %s, its stage has made %s", h->name, h->data, data);
        }
    }
}

/* skipped: some of its runs have no value that counts, since they were done before or people have
 * given them up. */
static void check_open(const struct campaign *c, const struct told_stage *t, bool skipped)
{
    int good;
    if (skipped && t->all_good && !t->overridden) {
        wrong("I21", "the gate of c-%lld/%s is open, and a part of it was skipped",
              (long long)c->id, t->name);
    }
    for (int64_t part = 0; part < t->parts && t->all_good && !t->overridden; part++) {
        if (complete(c, t, part, &good) > 0 && good == 0) {
            wrong("I21", "the gate of c-%lld/%s is open, and part %lld is not good",
                  (long long)c->id, t->name, (long long)part);
        }
    }
}

/* It holds although all its runs are good and count, and their logs were read to the end. */
static void check_reason(const struct campaign *c, const struct told_stage *t)
{
    int good, bad = 0;
    for (int64_t part = 0; part < t->parts; part++) {
        bad += complete(c, t, part, &good) != good;
    }
    if (bad == 0) {
        wrong("I21", "the gate of c-%lld/%s holds although each run of it is good",
              (long long)c->id, t->name);
    }
}

/* For how long it has been so, looked at now and then in the calm: a look sees nothing of what was
 * between it and the last one. */
static bool lasts(bool so, int64_t *since_us)
{
    *since_us = !so || !deep->calm ? 0 : *since_us != 0 ? *since_us : deep->now_us;
    return *since_us != 0 && deep->now_us - *since_us > SAYS_US;
}

static void check_gate(struct campaign *c, struct told_stage *t)
{
    bool read = !poison_kept(c);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, c->id);
    param_text(&p, t->name);
    AUTO_RESULT PGresult *r = sql_asked(
        "judge_gate",
        "SELECT g.gate_override, EXISTS (SELECT FROM metric_source m JOIN attempt a ON a.id = "
        "m.attempt_id WHERE a.stage_id = g.id AND m.note <> ''), k.wanted = 'run' AND c.state <> "
        "'held' AND NOT EXISTS (SELECT FROM stage_run o WHERE o.campaign_id = g.campaign_id AND "
        "o.state = 'running'), n.state = 'held', EXISTS (SELECT FROM task_run t WHERE t.stage_id = "
        "g.id AND t.state = 5) FROM stage g JOIN stage_run n ON n.stage_id = g.id "
        "JOIN campaign k "
        "ON k.id = g.campaign_id JOIN campaign_run c ON c.campaign_id = g.campaign_id WHERE "
        "g.campaign_id = $1 AND g.name = $2 AND (n.state = 'succeeded' OR n.state = 'held' AND "
        "n.reason LIKE 'gate: %')",
        &p);
    bool held = row_count(r) > 0 && row_bool(r, 0, 3);
    if (row_count(r) > 0 && !held) {
        check_open(c, t, row_bool(r, 0, 4));
    }
    if (held && !row_bool(r, 0, 1) && !row_bool(r, 0, 4)) {
        check_reason(c, t);
    }
    if (lasts(read && held && row_bool(r, 0, 0), &t->over_us)) {
        wrong("I21", "the gate of c-%lld/%s is overridden and holds it", (long long)c->id, t->name);
    }
    if (lasts(read && held && !row_bool(r, 0, 0) && row_bool(r, 0, 2), &t->held_us)) {
        wrong("I21", "c-%lld does not say that the gate of %s holds it", (long long)c->id, t->name);
    }
}

/* What its job still prints decides the gate. */
static void check_logs(void)
{
    AUTO_RESULT PGresult *r = sql_asked(
        "judge_logs",
        "SELECT a.name FROM attempt a JOIN stage g ON g.id = a.stage_id LEFT JOIN metric_source m "
        "ON m.attempt_id = a.id WHERE g.name LIKE 'try%' AND a.state < 8 AND NOT a.collects AND "
        "coalesce(m.note, '') = ''",
        NULL);
    for (int i = 0; i < row_count(r); i++) {
        const struct job *j = job_find(row_text(r, i, 0));
        if (j != NULL && !j->over) {
            wrong("I21", "the log of %s is read no more, and its job goes on", j->name);
        }
    }
}

/* A log that was read to its end has its last value, unless lines are seen late. */
static void check_read_logs(void)
{
    AUTO_RESULT PGresult *r = sql_asked(
        "judge_read_logs",
        "SELECT a.name, s.last_value FROM attempt a JOIN stage g ON g.id = a.stage_id LEFT JOIN "
        "metric_source m ON m.attempt_id = a.id LEFT JOIN metric_series s ON s.attempt_id = a.id "
        "AND s.name = 'loss' WHERE g.name LIKE 'try%' AND a.state > 7 AND NOT a.collects AND "
        "coalesce(m.note, '') = ''",
        NULL);
    for (int i = 0; i < row_count(r) && deep->strength[FAULT_LOG_LATE] <= 0; i++) {
        const struct job *j = job_find(row_text(r, i, 0));
        if (j != NULL && is_complete(j) && !j->mute && !figures_keep(j->campaign_id) &&
            (row_null(r, i, 1) || (int)(row_f64(r, i, 1) * 100 + 0.5) != j->cents)) {
            wrong("I21", "the last loss of %s is %d hundredths, the series has another", j->name,
                  j->cents);
        }
    }
}

void judge_gates(void)
{
    check_logs();
    check_read_logs();
    for (int i = 0; i < deep->campaigns_n; i++) {
        struct campaign *c = &deep->campaigns[i];
        for (int k = 0; k < c->told_n && c->id > 0; k++) {
            if (c->told[k].gated) {
                check_gate(c, &c->told[k]);
            }
        }
    }
}
