/* A service of one page at a time: attempts, strays and pools by hand, on top of leader_world.h. */
#pragma once
#include "core/leader/list_round.h"
#include "core/leader/strays.h"
#include "tests/unit/core/leader/leader_world.h"

#define INTERVAL (10 * SEC)

struct list_world {
    struct leader_world w;
    struct list_round r;
    struct job_list_query q;
    int64_t us; /* boot */
};

UNUSED static void setup(struct list_world *t, int live)
{
    leader_world_init(&t->w);
    t->w.ls->row.counts[TASK_WAITING] = 1000;
    t->us = BOOT;
    list_round_init(&t->r, INTERVAL, t->us);
    for (int i = 1; i <= live; i++) {
        struct live_attempt *a = leader_world_attempt(&t->w, i, 1);
        a->p.state = ATTEMPT_RUNNING;
        a->p.described_us = BOOT - SEC;
    }
}

UNUSED static struct live_attempt *nth(struct list_world *t, int i)
{
    return t->w.s.attempts[i - 1];
}

/* The next page that is asked for; the clock goes on to it. */
UNUSED static void ask(struct list_world *t)
{
    for (int i = 0; i < 100; i++) {
        int64_t wait_us = list_round_wait_us(&t->r, &t->w.s, WALL + t->us - BOOT, 0, t->us);
        if (wait_us == 0) {
            list_round_query(&t->r, &t->w.s, "d", 0, t->us, &t->q);
            return;
        }
        t->us += wait_us;
    }
    fail_msg("no page is asked for");
}

/* A page shows attempts from..to, and so many jobs of others. */
UNUSED static void give(struct list_world *t, int from, int to, int others, const char *next)
{
    static struct job_summary jobs[JOB_LIST_PAGE];
    size_t n = 0;
    memset(jobs, 0, sizeof jobs);
    for (int i = from; i <= to; i++) {
        (void)snprintf(jobs[n].name, sizeof jobs[n].name, "%s", nth(t, i)->row.name.s);
        jobs[n++].created = nth(t, i)->created_us > 0 ? nth(t, i)->created_us : WALL - i * SEC;
    }
    for (int i = 0; i < others; i++) {
        (void)snprintf(jobs[n].name, sizeof jobs[n].name, "other-%d", i);
        jobs[n++].created = WALL - 100 * SEC;
    }
    list_round_page(&t->r, &t->w.s, jobs, n, next, t->us);
}

UNUSED static int absent(struct list_world *t)
{
    int n = 0;
    struct live_attempt *a;
    while ((a = list_round_absent(&t->r, &t->w.s, t->us)) != NULL) {
        a->p.look_now = true;
        n++;
    }
    return n;
}

UNUSED static void described(struct list_world *t, struct live_attempt *a)
{
    a->p.look_now = false;
    a->p.described_us = t->us;
}

UNUSED static void refuse(struct list_world *t, enum aws_outcome outcome)
{
    const struct aws_failure f = {.outcome = outcome};
    list_round_refused(&t->r, &f, t->us);
}

/* A stray that runs, as far as is known. */
UNUSED static struct live_stray *stray(struct list_world *t, const char *name, int64_t described_us)
{
    struct stray_row row = {.status = "InProgress", .instance_type = "ml.a.large", .instances = 1};
    (void)snprintf(row.name, sizeof row.name, "%s", name);
    leader_apply_stray(&t->w.s, &row);
    struct live_stray *st = leader_stray_named(&t->w.s, name);
    st->look_now = false;
    st->described_us = described_us;
    return st;
}
