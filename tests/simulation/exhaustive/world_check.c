/* The exhaustive check: promises of every state, equality of states, the rounds without faults,
 * moves in words. */
#include "world.h"

#include <stdio.h>

bool world_may_land(const struct world *w, int p, int n)
{
    if (!world_free(w->part[p].job[n])) {
        return false;
    }
    bool may = w->part[p].orphan[n] > 0;
    for (int c = 0; c < CTLS; c++) {
        const struct memory *m = &w->ctl[c].part[p];
        bool under_way = m->send == SEND_SIGNED || m->send == SEND_SENT;
        may |= m->n == n + 1 && under_way && m->send_valid > 0;
    }
    return may;
}

/* Compares the row with the job under its name. Returns NULL, or what is wrong. A job that was
 * deleted may have ended in any way; a row that said otherwise was wrong before. */
static const char *check_truth(enum attempt_state row, uint8_t job)
{
    switch (row) {
    case ATTEMPT_INTENDED:
    case ATTEMPT_UNKNOWN:
        return NULL;
    case ATTEMPT_SUBMITTED:
    case ATTEMPT_STARTING:
    case ATTEMPT_RUNNING:
    case ATTEMPT_UPLOADING:
    case ATTEMPT_STOPPING:
        return job == WORLD_NONE      ? "an attempt counts as submitted and no job exists"
               : job == WORLD_FOREIGN ? "a job that is not ours was adopted"
                                      : NULL;
    case ATTEMPT_VERIFYING:
    case ATTEMPT_SUCCEEDED:
        return job == WORLD_COMPLETED || job == WORLD_DELETED
                   ? NULL
                   : "success of a job that did not complete";
    case ATTEMPT_FAILED:
        return job == WORLD_FAILED || job == WORLD_COMPLETED || job == WORLD_DELETED
                   ? NULL
                   : "failure of a job that did not fail";
    case ATTEMPT_STOPPED:
        return job == WORLD_STOPPED || job == WORLD_DELETED
                   ? NULL
                   : "an attempt counts as stopped and its job does not";
    case ATTEMPT_CONFLICT:
        return job == WORLD_FOREIGN ? NULL : "a conflict over a name that is free or ours";
    case ATTEMPT_VOID:
        return world_free(job) || job == WORLD_FOREIGN ? NULL : "a void attempt has a job";
    case ATTEMPT_STATE_COUNT:
        return "a row in no state";
    }
    return "a row in no state";
}

static const char *check_part(const struct world *w, int p, int *live, int *held)
{
    const struct part *part = &w->part[p];
    int live_here = 0;
    int n = world_newest(part);
    for (int i = 0; i < TRIES; i++) {
        bool lives = world_alive(part->job[i]);
        bool possible = lives || world_may_land(w, p, i);
        live_here += lives;
        if (i >= n) {
            if (possible) {
                return "a Create without a committed intent";
            }
            continue;
        }
        enum attempt_state row = (enum attempt_state)part->row[i];
        if (possible && !attempt_holds_slot(row)) {
            return "a slot was given back while the job lives or may still come to be";
        }
        if (possible && i + 1 < n) {
            return "a newer attempt was intended while an older one may exist";
        }
        *held += attempt_holds_slot(row);
        const char *wrong = check_truth(row, part->job[i]);
        if (wrong != NULL) {
            return wrong;
        }
    }
    *live += live_here;
    return live_here > 1 ? "two live jobs of one part" : NULL;
}

const char *world_check(const struct world *w, const struct world_config *cfg)
{
    int live = 0;
    int held = 0;
    for (int p = 0; p < cfg->parts; p++) {
        const char *wrong = check_part(w, p, &live, &held);
        if (wrong != NULL) {
            return wrong;
        }
    }
    if (live > cfg->limit) {
        return "more live jobs than slots";
    }
    if (held != w->held) {
        return "slots counted are not the slots of the rows";
    }
    return held > cfg->limit ? "more slots held than there are" : NULL;
}

bool world_ended(const struct world *w, const struct world_config *cfg)
{
    for (int p = 0; p < cfg->parts; p++) {
        bool lives = false;
        for (int i = 0; i < TRIES; i++) {
            lives |= world_alive(w->part[p].job[i]);
        }
        if (lives || !world_part_over(&w->part[p])) {
            return false;
        }
    }
    return w->held == 0;
}

/* Makes the move when it is possible. *wrong keeps the first broken promise. */
static bool calm(struct world *w, enum move_kind kind, int c, int p, int v,
                 const struct world_config *cfg, const char **wrong)
{
    struct world next = *w;
    struct move m = {(uint8_t)kind, (uint8_t)c, (uint8_t)p, (uint8_t)v};
    if (*wrong != NULL || !world_apply(&next, m, cfg, wrong)) {
        return false;
    }
    *w = next;
    return true;
}

static void calm_jobs(struct world *w, int p, const struct world_config *cfg, const char **wrong)
{
    for (int i = 0; i < TRIES; i++) {
        if (w->part[p].job[i] == WORLD_STOPPING) {
            (void)calm(w, MOVE_JOB, i, p, WORLD_STOPPED, cfg, wrong);
        } else if (!w->part[p].cancelled) {
            (void)calm(w, MOVE_JOB, i, p, WORLD_RUNNING, cfg, wrong);
            (void)calm(w, MOVE_JOB, i, p, WORLD_COMPLETED, cfg, wrong);
        }
    }
}

static void calm_part(struct world *w, int c, int p, const struct world_config *cfg,
                      const char **wrong)
{
    static const int answers[] = {ANSWER_OK, ANSWER_IN_USE, ANSWER_DENIED, ANSWER_THROTTLED};
    (void)calm(w, MOVE_TAKE_CANCEL, c, p, 0, cfg, wrong);
    (void)calm(w, MOVE_INTEND, c, p, 0, cfg, wrong);
    (void)calm(w, MOVE_ACT, c, p, 0, cfg, wrong);
    (void)calm(w, MOVE_SEND, c, p, 0, cfg, wrong);
    for (size_t i = 0; i < ARRAY_LEN(answers);
         i++) { /* the first that is possible is the true one */
        if (calm(w, MOVE_ARRIVE, c, p, answers[i], cfg, wrong)) {
            break;
        }
    }
    (void)calm(w, MOVE_REPLY, c, p, 0, cfg, wrong);
    if (!calm(w, MOVE_LOOKED, c, p, 4, cfg, wrong)) {
        (void)calm(w, MOVE_LOOKED, c, p, 0, cfg, wrong);
    }
}

const char *world_calm_round(struct world *w, const struct world_config *cfg)
{
    const char *wrong = NULL;
    for (int c = 0; c < CTLS; c++) { /* a leader renews its lease, a zombie loses its leadership */
        (void)calm(w, MOVE_RENEW, c, 0, 0, cfg, &wrong);
    }
    for (int c = 0; c < CTLS; c++) {
        if (w->holder == CTLS || w->ctl[w->holder].role != ROLE_LEADER) {
            (void)calm(w, MOVE_TAKE_OVER, c, 0, 0, cfg, &wrong);
        }
    }
    for (int p = 0; p < cfg->parts; p++) {
        calm_jobs(w, p, cfg, &wrong);
        if (w->holder < CTLS) {
            calm_part(w, w->holder, p, cfg, &wrong);
        }
    }
    (void)calm(w, MOVE_TICK, 0, 0, 0, cfg, &wrong);
    return wrong != NULL ? wrong : world_check(w, cfg);
}

static void swap_parts(struct world *w)
{
    struct part part = w->part[0];
    w->part[0] = w->part[1];
    w->part[1] = part;
    for (int c = 0; c < CTLS; c++) {
        struct memory m = w->ctl[c].part[0];
        w->ctl[c].part[0] = w->ctl[c].part[1];
        w->ctl[c].part[1] = m;
    }
}

static void swap_ctls(struct world *w)
{
    struct model_controller ctl = w->ctl[0];
    w->ctl[0] = w->ctl[1];
    w->ctl[1] = ctl;
    w->holder = (uint8_t)(w->holder < CTLS ? 1 - w->holder : w->holder);
}

void world_canon(struct world *w, const struct world_config *cfg, int *ret_swapped)
{
    for (int p = 0; p < PARTS; p++) {
        for (int i = 0; i < TRIES; i++) { /* a taken name: a late Create changes nothing */
            w->part[p].orphan[i] =
                (uint8_t)(world_free(w->part[p].job[i]) ? w->part[p].orphan[i] : 0);
        }
        for (int c = 0; c < CTLS; c++) {
            struct memory *m = &w->ctl[c].part[p];
            m->window =
                (int8_t)(m->n > 0 && m->look == LOOK_NONE && m->window < 0 ? PAST : m->window);
        }
    }
    struct world best = *w;
    *ret_swapped = 0;
    for (int s = 1; s < (cfg->parts == 2 ? 4 : 2); s++) {
        struct world other = *w;
        if (s & 1) {
            swap_ctls(&other);
        }
        if (s & 2) {
            swap_parts(&other);
        }
        if (memcmp(&other, &best, sizeof best) < 0) {
            best = other;
            *ret_swapped = s;
        }
    }
    *w = best;
}

struct move_shape {
    const char *words; /* %c: the controller, %p: the part; then the variant's words */
    bool by_ctl, by_part, by_try;
    int variants;
    const char *variant[WORLD_DELETED + 1];
};
static const struct move_shape shapes[MOVE_KINDS] = {
    [MOVE_TICK] = {"time passes", .variants = 1},
    [MOVE_CANCEL] = {"a person cancels part %p", .by_part = true, .variants = 1},
    [MOVE_FOREIGN] = {"a stranger takes the name of part %p's newest attempt", .by_part = true,
                      .variants = 1},
    [MOVE_JOB] = {"SageMaker: the job of part %p, attempt %t, ", .by_part = true, .by_try = true,
                  .variants = WORLD_DELETED + 1,
                  .variant = {[WORLD_RUNNING] = "runs",
                              [WORLD_COMPLETED] = "completes",
                              [WORLD_FAILED] = "fails",
                              [WORLD_STOPPING] = "is stopped by somebody",
                              [WORLD_STOPPED] = "has stopped",
                              [WORLD_DELETED] = "is deleted by somebody"}},
    [MOVE_LAND] = {"SageMaker: a late Create of part %p, attempt %t, takes effect", .by_part = true,
                   .by_try = true, .variants = 1},
    [MOVE_CRASH] = {"%c crashes and starts again as a standby", .by_ctl = true, .variants = 1},
    [MOVE_TAKE_OVER] = {"%c takes over", .by_ctl = true, .variants = 1},
    [MOVE_RENEW] = {"%c renews its lease, or learns that it lost it", .by_ctl = true,
                    .variants = 1},
    [MOVE_TAKE_CANCEL] = {"%c reads that part %p is cancelled", true, true, false, 1, {NULL}},
    [MOVE_INTEND] = {"%c intends a new attempt of part %p",
                     true,
                     true,
                     false,
                     2,
                     {"", ", and does not learn whether the COMMIT went through"}},
    [MOVE_ACT] = {"%c, part %p: ",
                  true,
                  true,
                  false,
                  3,
                  {"", " (its answer is lost, or short)", " (lost before its effect)"}},
    [MOVE_SEND] = {"%c, part %p: the signed Create ",
                   true,
                   true,
                   false,
                   2,
                   {"goes onto the wire", "is dropped unsent"}},
    [MOVE_ARRIVE] = {"SageMaker, %c's Create of part %p: ",
                     true,
                     true,
                     false,
                     ANSWER_N,
                     {"creates the job", "name in use", "quota exceeded",
                      "throttled, or the signature is too old", "access denied"}},
    [MOVE_TIME_OUT] = {"%c, part %p: the Create times out", true, true, false, 1, {NULL}},
    [MOVE_REPLY] =
        {"%c, part %p: the Create's reply ", true, true, false, 2, {"arrives", "is lost"}},
    [MOVE_LOOKED] = {"%c, part %p: Describe ",
                     true,
                     true,
                     false,
                     5,
                     {"answers", "answers with an older truth", "fails",
                      "found nothing, the answer is under way",
                      "finds nothing long after the job's last possible end"}},
    [MOVE_LIST] = {"%c sees the job of part %p in a List", true, true, false, 1, {NULL}},
};

bool world_move(int k, const struct world_config *cfg, struct move *ret)
{
    for (int kind = 0; kind < MOVE_KINDS; kind++) {
        const struct move_shape *s = &shapes[kind];
        int cs = s->by_ctl ? CTLS : s->by_try ? TRIES : 1;
        int ps = s->by_part ? cfg->parts : 1;
        int n = cs * ps * s->variants;
        if (k < n) {
            *ret = (struct move){(uint8_t)kind, (uint8_t)(k % cs), (uint8_t)(k / cs % ps),
                                 (uint8_t)(k / cs / ps)};
            return true;
        }
        k -= n;
    }
    return false;
}

void world_tell(const struct world *before, struct move m, const char *ctl_name,
                const char *part_name, char *out, size_t n)
{
    const struct move_shape *s = &shapes[m.kind];
    size_t k = 0;
    for (const char *c = s->words; *c != '\0' && k + 1 < n; c++) {
        char attempt[2] = {(char)('1' + m.c), '\0'};
        const char *put = c[0] != '%'   ? NULL
                          : c[1] == 'c' ? ctl_name
                          : c[1] == 'p' ? part_name
                                        : attempt;
        if (put == NULL) {
            out[k++] = *c;
            continue;
        }
        k += (size_t)snprintf(out + k, n - k, "%s", put);
        c++;
    }
    out[MIN(k, n - 1)] = '\0';
    const char *what = "";
    if (m.kind == MOVE_ACT) {
        const struct memory *mem = &before->ctl[m.c].part[m.p];
        what = mem->state == ATTEMPT_VERIFYING ? "checks the output" : "next call";
    }
    k = strlen(out);
    (void)snprintf(out + k, n - k, "%s%s", what, s->variant[m.v] != NULL ? s->variant[m.v] : "");
}
