/* Clocks that are apart and step. Only some worlds have such: AWS's clock and those of the droverds
 * are up to ten minutes from the world's, and each steps now and then; and PostgreSQL's, which is
 * the real one and stands still beside the world's, is a year ahead or many years behind, and in
 * half of these worlds steps, too, by minutes or weeks. AWS does
 * all at the world's time and bills by it: only what it says of a time is by its clock. A request
 * that is dated five minutes off is refused, the client learns from the Date of the answer and
 * signs it once more, as common/aws.c does. */
#include "common/clock.h"
#include "deep.h"

#define AHEAD_MAX_S     600
#define DATE_OFF_MAX_US (5 * MINUTE)
#define LEARNED_FROM_US (4 * MINUTE)     /* AWS_SKEW_TOLERATED_US */
#define DAYS_MAX_S      (40 * 24 * 3600) /* of PostgreSQL's, now and then */
#define YEAR_US         (365 * 24 * HOUR)

static struct rng *draws(void)
{
    return &deep->rng_clocks;
}

static int64_t some_ahead(void)
{
    return between(draws(), -AHEAD_MAX_S, AHEAD_MAX_S) * SEC;
}

static void aws_steps(void)
{
    ASSERT(deep->aws_steps_n < CLOCK_STEPS_MAX);
    deep->aws_steps[deep->aws_steps_n++] =
        (struct clock_step){.from = wall_now(), .ahead_us = some_ahead()};
    trace("AWS's clock is %lld s ahead",
          (long long)(deep->aws_steps[deep->aws_steps_n - 1].ahead_us / SEC));
}

static void step(void *ctx, int64_t arg)
{
    struct rng *r = draws();
    if (deep->calm) {
        return;
    }
    if (deep->aws_steps_n < CLOCK_STEPS_MAX && rng_chance(r, 0.5)) {
        aws_steps();
    } else {
        struct proc *p = &deep->procs[rng_below(r, (uint64_t)deep->procs_n)];
        p->wall_ahead_us = some_ahead();
        trace("the wall clock of droverd %d is %lld s ahead", p->id,
              (long long)(p->wall_ahead_us / SEC));
    }
    event_at(deep->now_us + between(r, 3, 60) * MINUTE, step, ctx, arg);
}

void clocks_start(void)
{
    if (!deep->clocks) {
        return;
    }
    deep->epoch_ahead_us = rng_chance(draws(), 0.5) ? -2 * YEAR_US : 30 * YEAR_US;
    aws_steps();
    for (int i = 0; i < deep->procs_n; i++) {
        deep->procs[i].wall_ahead_us = some_ahead();
    }
    event_at(between(draws(), 3, 60) * MINUTE, step, NULL, 0);
}

/* PostgreSQL's. Inlined where it is called, it costs nothing; each setting plans anew. */
static void set_database(int64_t ahead_s)
{
    sql_do("CREATE OR REPLACE FUNCTION deep_clock.clock_timestamp() RETURNS timestamptz LANGUAGE "
           "sql VOLATILE AS $f$SELECT pg_catalog.clock_timestamp() + interval '%lld s'$f$",
           (long long)ahead_s);
}

static void step_database(void *ctx, int64_t arg)
{
    struct rng *r = &deep->rng_db_steps;
    if (deep->calm) {
        return;
    }
    int64_t most_s = rng_chance(r, 0.8) ? AHEAD_MAX_S : DAYS_MAX_S;
    int64_t ahead_s = between(r, -most_s, most_s);
    set_database(ahead_s);
    trace("the clock of PostgreSQL is %lld s ahead", (long long)ahead_s);
    event_at(deep->now_us + between(r, 1, 30) * MINUTE, step_database, ctx, arg);
}

/* The database is there. */
void clocks_database_start(void)
{
    static bool stepped = true; /* maybe by another process */
    if (stepped) {
        set_database(0);
    }
    stepped = deep->clocks && deep->db_steps;
    if (stepped) {
        event_at(between(&deep->rng_db_steps, 1, 30) * MINUTE, step_database, NULL, 0);
    }
}

usec_t aws_time(usec_t t)
{
    int i = deep->aws_steps_n;
    while (i > 0 && deep->aws_steps[i - 1].from > t) {
        i--;
    }
    return t == 0 || deep->aws_steps_n == 0 ? t : t + deep->aws_steps[MAX(0, i - 1)].ahead_us;
}

bool clocks_date_refused(usec_t dated)
{
    int64_t off_us = aws_time(wall_now()) - dated;
    return deep->clocks && (off_us > DATE_OFF_MAX_US || off_us < -DATE_OFF_MAX_US);
}

void clocks_learn(int64_t *skew_us, usec_t date, bool refused)
{
    int64_t offset_us = date / SEC * SEC - clock_wall_us();
    int64_t off_us = offset_us - *skew_us;
    if (deep->clocks && (refused || off_us > LEARNED_FROM_US || off_us < -LEARNED_FROM_US)) {
        *skew_us = offset_us;
    }
}
