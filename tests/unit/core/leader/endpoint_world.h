/* One endpoint, from its intent or from its row, and scripts of the calls that are expected next,
 * how each is answered and the state that follows; on top of leader_world.h. */
#pragma once
#include "core/leader/endpoint_life.h"
#include "tests/unit/core/leader/leader_world.h"

#define TTL    7200
#define WINDOW (900 * SEC)
#define POLL   SEC

enum {
    C = ENDPOINT_ACT_CREATE,
    L = ENDPOINT_ACT_DESCRIBE,
    D = ENDPOINT_ACT_DELETE,
    P = ENDPOINT_ACT_PAYLOADS,
    I = ENDPOINT_ACT_INVOKE
};
enum {
    YES = ENDPOINT_SAID_YES,
    ABSENT = ENDPOINT_SAID_ABSENT,
    BUSY = ENDPOINT_SAID_BUSY,
    NO = ENDPOINT_SAID_NO,
    NOTHING = ENDPOINT_SAID_NOTHING,
    UNSENT
};
enum { M = HOSTING_MODEL, G = HOSTING_CONFIG, E = HOSTING_ENDPOINT };
/* A step: the call that is expected, how it is answered, and the state after it. */
#define TO(act, kind, said, status, then)                                                          \
    {                                                                                              \
        act, kind, said, status, then                                                              \
    }
#define SAW(act, kind, said, status) TO(act, kind, said, status, ENDPOINT_INTENDED)
#define ON(act, kind, said)          TO(act, kind, said, NULL, ENDPOINT_INTENDED)

#define CREATES  ON(C, M, YES), ON(C, G, YES), TO(C, E, YES, NULL, ENDPOINT_CREATING)
#define SERVES   TO(L, E, YES, "InService", ENDPOINT_IN_SERVICE), ON(P, E, YES)
#define VANISHES ON(L, G, YES), ON(D, G, YES), ON(L, G, ABSENT), ON(L, M, YES), ON(D, M, YES)
#define GOES                                                                                       \
    SAW(L, E, YES, "InService"), ON(D, E, YES), SAW(L, E, YES, "Deleting"), ON(L, E, ABSENT),      \
        VANISHES

struct step {
    int act, kind, said;
    const char *status;       /* of a Describe; code of a refusal */
    enum endpoint_state then; /* INTENDED: any */
};
struct life {
    struct leader_world w;
    struct live_endpoint *e;
    usec_t now_us;
    int64_t boot_us, lay_us; /* an answer lies so long before it is heard */
    int64_t aws_ahead_us;    /* so far AWS' clock is ahead of now_us */
    struct endpoint_writes last;
};

UNUSED static struct endpoint_row intent(void)
{
    struct endpoint_row row = {.id = 5,
                               .project_id = 3,
                               .campaign_id = 7,
                               .stage_id = 70,
                               .n = 1,
                               .state = ENDPOINT_INTENDED,
                               .instances = 2,
                               .ttl_s = TTL,
                               .price_musd_per_hour = 3600000, /* 1,000 micro-USD a second */
                               .reserved_musd = 2 * (TTL + 1020) * 1000,
                               .intended_us = WALL};
    (void)snprintf(row.name.s, sizeof row.name.s, "d-7-deploy-0-a1-0a1b2c3d");
    return row;
}

UNUSED static void life_init(struct life *l)
{
    memset(l, 0, sizeof *l);
    leader_world_init(&l->w);
    const struct endpoint_row row = intent();
    l->e = leader_apply_endpoint_intent(&l->w.s, &row);
    l->now_us = WALL;
    l->boot_us = BOOT;
}

UNUSED static void anew(struct life *l)
{
    leader_world_done(&l->w);
    life_init(l);
}

/* The row as it is now is all that a new leader has. */
UNUSED static void take_over(struct life *l)
{
    const struct endpoint_row row = l->e->row;
    leader_state_done(&l->w.s);
    leader_world_init(&l->w);
    l->w.s.projects[0].reserved_musd = row.reserved_musd; /* as in the table */
    (void)leader_take_endpoints(&l->w.s, &row, 1, l->boot_us);
    l->e = leader_endpoint(&l->w.s, row.id);
}

UNUSED static void pass(struct life *l, int64_t us)
{
    l->now_us += us;
    l->boot_us += us;
}

/* The next call, waited for: at most an hour. */
UNUSED static struct endpoint_call next(struct life *l)
{
    int64_t wake_us = l->boot_us + 3600 * SEC;
    struct endpoint_call call =
        leader_endpoint_next(&l->w.s, l->e, l->now_us, l->boot_us, POLL, &wake_us);
    for (int i = 0; i < 9 && call.act == ENDPOINT_ACT_NONE && wake_us > l->boot_us; i++) {
        pass(l, wake_us - l->boot_us);
        wake_us = l->boot_us + 3600 * SEC;
        call = leader_endpoint_next(&l->w.s, l->e, l->now_us, l->boot_us, POLL, &wake_us);
    }
    return call;
}

UNUSED static void answer(struct life *l, const struct step *st)
{
    struct endpoint_description seen = {.created = WALL, .modified = l->now_us + l->aws_ahead_us};
    struct aws_failure failure = {.outcome = st->said == UNSENT ? AWS_UNSENT
                                             : st->said == NO   ? AWS_REFUSED
                                                                : AWS_UNKNOWN,
                                  .status = 400};
    (void)snprintf(seen.status, sizeof seen.status, "%s", st->status != NULL ? st->status : "");
    (void)snprintf(failure.code, sizeof failure.code, "%s", st->status != NULL ? st->status : "");
    struct endpoint_fact f = {.call = {(enum endpoint_act)st->act, (enum hosting_kind)st->kind},
                              .said = st->said == UNSENT ? ENDPOINT_SAID_NOTHING
                                                         : (enum endpoint_word)st->said,
                              .seen = &seen,
                              .failure = &failure,
                              .status = 200,
                              .took_us = 1000,
                              .text = "not read",
                              .window_us = WINDOW,
                              .asked_us = l->boot_us};
    pass(l, l->lay_us);
    leader_plan_endpoint_fact(l->e, &f, l->now_us, l->boot_us, &l->last);
    if (l->last.news != ENDPOINT_AS_BEFORE) {
        leader_apply_endpoint(&l->w.s, l->e, &l->last);
    }
}

UNUSED static void play(struct life *l, const struct step *steps, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct endpoint_call call = next(l);
        if ((int)call.act != steps[i].act ||
            (call.act != ENDPOINT_ACT_INVOKE && (int)call.kind != steps[i].kind)) {
            fail_msg("step %zu: call %d of %d, not %d of %d", i, (int)call.act, (int)call.kind,
                     steps[i].act, steps[i].kind);
        }
        answer(l, &steps[i]);
        if (steps[i].then != ENDPOINT_INTENDED) {
            assert_int_equal(l->e->row.state, steps[i].then);
        }
    }
}
#define PLAY(l, ...)                                                                               \
    do {                                                                                           \
        const struct step steps_[] = {__VA_ARGS__};                                                \
        play((l), steps_, ARRAY_LEN(steps_));                                                      \
    } while (0)

UNUSED static bool ends(struct life *l)
{
    leader_plan_endpoint_end(&l->w.s, l->e, l->now_us, &l->last);
    if (l->last.news == ENDPOINT_MOVED) {
        leader_apply_endpoint(&l->w.s, l->e, &l->last);
    }
    return l->last.news == ENDPOINT_MOVED;
}

UNUSED static void begins_to_go(struct life *l)
{
    l->e->row.delete_asked = true;
    assert_true(ends(l));
}
