/* A campaign of several stages, each with its own part of the campaign file, on top of
 * leader_world.h; and its moves as text. */
#pragma once
#include "core/leader/campaign_life.h"
#include "tests/unit/core/leader/leader_world.h"

#define LIFE_STAGES 4

struct life_world {
    struct leader_world w;
    struct spec_stage spec[LIFE_STAGES];
    struct live_campaign *lc;
    struct live_stage *st; /* lc->stages */
};

/* Campaign 9 with `stages_n` stages s0, s1 ..., each of which needs the one before; all their ten
 * parts wait. */
UNUSED static void life_world_init(struct life_world *l, int stages_n)
{
    memset(l->spec, 0, sizeof l->spec);
    leader_world_init(&l->w);
    l->w.ls->unchecked = ready_queue_new();
    l->w.ls->held = ready_queue_new();
    l->lc = leader_world_campaign(&l->w, 9, 3);
    ready_queue_free(l->lc->stages[0].ready);
    l->lc->stages = xrealloc(l->lc->stages, LIFE_STAGES * sizeof *l->lc->stages);
    l->st = l->lc->stages;
    memset(l->st, 0, LIFE_STAGES * sizeof *l->st);
    l->lc->stages_n = stages_n;
    for (int i = 0; i < stages_n; i++) {
        struct live_stage *ls = &l->st[i];
        static const char *const names[] = {"s0", "s1", "s2", "s3"};
        ls->row = (struct stage_row){.id = 90 + i,
                                     .campaign_id = 9,
                                     .state = i == 0 ? STAGE_RUNNING : STAGE_BLOCKED,
                                     .tasks = 10,
                                     .taken = 10,
                                     .closed = true,
                                     .cap_musd = -1,
                                     .per_task_musd = -1,
                                     .parts_limit = -1};
        (void)snprintf(ls->row.name, sizeof ls->row.name, "%s", names[i]);
        ls->row.counts[TASK_WAITING] = 10;
        ls->spec = &l->spec[i];
        l->spec[i].needs_n = i > 0 ? 1 : 0;
        l->spec[i].needs[0] = i > 0 ? names[i - 1] : NULL;
        ls->ready = ready_queue_new();
        ls->unchecked = ready_queue_new();
        ls->held = ready_queue_new();
        breaker_init(&ls->breaker);
    }
}

UNUSED static void life_world_done(struct life_world *l)
{
    leader_world_done(&l->w);
}

/* All parts of a stage have ended; `failed` of them failed. */
UNUSED static void life_stage_ended(struct live_stage *ls, int64_t failed)
{
    memset(ls->row.counts, 0, sizeof ls->row.counts);
    ls->row.counts[TASK_FAILED] = failed;
    ls->row.counts[TASK_DONE] = ls->row.taken - failed;
}

/* "s0 running>succeeded, c held>running", in the order planned. */
UNUSED static const char *life_moves(const struct live_campaign *lc,
                                     const struct campaign_life_writes *w, char *ret, size_t size)
{
    size_t at = 0;
    ret[0] = '\0';
    for (int i = 0; i < w->n; i++) {
        const struct campaign_life_move *m = &w->moves[i];
        bool of_stage = m->stage_id != 0;
        at += (size_t)snprintf(ret + at, size - at, "%s%s %s>%s", i > 0 ? ", " : "",
                               of_stage ? lc->stages[m->stage_id - lc->stages[0].row.id].row.name
                                        : "c",
                               of_stage ? stage_state_name((enum stage_state)m->from)
                                        : campaign_state_name((enum campaign_state)m->from),
                               of_stage ? stage_state_name((enum stage_state)m->to)
                                        : campaign_state_name((enum campaign_state)m->to));
    }
    return ret;
}

/* Plans and applies until nothing moves; the number of rounds. */
UNUSED static int life_settle(struct life_world *l)
{
    struct campaign_life_writes w;
    for (int round = 0; round < 50; round++) {
        campaign_life_plan(l->lc, &w);
        if (w.n == 0) {
            return round;
        }
        l->lc->waits_for_person = w.waits_for_person;
        for (int i = 0; i < w.n; i++) {
            campaign_life_apply(&l->w.s, l->lc, &w.moves[i]);
        }
    }
    return 50;
}

/* What a look would move now. */
UNUSED static const char *plan(struct life_world *l)
{
    static char text[800];
    struct campaign_life_writes w;
    campaign_life_plan(l->lc, &w);
    return life_moves(l->lc, &w, text, sizeof text);
}
