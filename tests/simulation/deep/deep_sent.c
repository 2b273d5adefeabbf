/* What was sent, and what AWS has shown. How often a Create may be sent is drawn in some worlds,
 * with a random stream of its own, since few campaigns ever need two a second: no droverd asks for
 * more in a minute than that (I14). And no attempt is in a state that its job never had (I15). */
#include "core/model.h"
#include "deep.h"

#define ASKED_KEPT 256
#define RATE       2.0 /* Creates a second */
#define BURST      10.0
#define LOOK_US    (5 * MINUTE)

static struct creates { /* of one life of a droverd */
    uint32_t life;
    size_t n;
    int64_t us[ASKED_KEPT];
} asked[PROCS_MAX];

void rates_draw(void)
{
    struct rng *r = &deep->rng_rates;
    memset(asked, 0, sizeof asked);
    deep->create_rate = deep->rates ? (double)between(r, 1, 4) / 60 : RATE;
    deep->create_burst = deep->rates ? (double)between(r, 1, 2) : BURST;
}

void rates_asked(const struct proc *p)
{
    struct creates *a = &asked[p->id];
    size_t most = (size_t)(deep->create_rate * 60 + deep->create_burst) + 1;
    ASSERT(most < ASKED_KEPT);
    a->n = a->life == p->life ? a->n : 0;
    a->life = p->life;
    a->us[a->n++ % ASKED_KEPT] = deep->now_us;
    if (a->n > most && deep->now_us - a->us[(a->n - 1 - most) % ASKED_KEPT] < MINUTE) {
        wrong("I14", "droverd %d asks for more than %zu Creates in a minute", p->id, most);
    }
}

/* What AWS has of it does not go with that state; NULL: it does. */
static const char *not_shown(const struct job *j, int64_t state)
{
    bool ours = j != NULL && !j->foreign;
    if (state < ATTEMPT_VERIFYING) {
        return ours ? NULL : "never was";
    }
    if (state >= ATTEMPT_FAILED) { /* without a job, as a rule: its Create was refused */
        return ours && !j->over && !j->lied ? "lives" : NULL;
    }
    return !ours                                                               ? "never was"
           : !j->over                                                          ? "lives"
           : state == ATTEMPT_SUCCEEDED && strcmp(j->status, "Completed") != 0 ? "did not complete"
                                                                               : NULL;
}

void judge_shown(bool ended)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, ended ? ATTEMPT_STOPPED : ATTEMPT_VERIFYING);
    AUTO_RESULT PGresult *r = sql_asked(
        "judge_shown",
        "SELECT name, state::bigint FROM attempt WHERE state BETWEEN 2 AND $1 ORDER BY id", &p);
    for (int i = 0; i < row_count(r) && !deep->wrong; i++) {
        int64_t state = row_i64(r, i, 1);
        const char *why = not_shown(job_find(row_text(r, i, 0)), state);
        if (why != NULL) {
            wrong("I15", "%s is %s, its job %s", row_text(r, i, 0),
                  attempt_state_name((enum attempt_state)state), why);
        }
    }
}

static void look(void *ctx, int64_t arg)
{
    judge_shown(false);
    event_at(deep->now_us + LOOK_US, look, ctx, arg);
}

void shown_start(void)
{
    event_at(LOOK_US, look, NULL, 0);
}
