/* The same forecast with a changed input: what-if, and advice on what more quota would gain. Every
 * draw depends only on task and try, so both sides see the same durations and their difference
 * comes from the change. */
#include "forecast_work.h"

#define ADVICE_RUNS 60
#define GAIN_LEAST  0.02 /* of the time left */

struct changed { /* copies of what a change touches */
    struct forecast_input in;
    struct quota_ledger *slots;
    struct forecast_campaign *campaigns;
    struct forecast_stage *stages;
    struct spec_stage *stage;
    struct spec *spec;
};

static void changed_free(struct changed *c)
{
    free(c->slots);
    free(c->campaigns);
    free(c->stages);
    free(c->stage);
    free(c->spec);
}

static void *copy(const void *p, int n, size_t size)
{
    void *to = xcalloc((size_t)n + 1, size);
    if (n > 0) {
        memcpy(to, p, (size_t)n * size);
    }
    return to;
}

/* Copies everything except parts and jobs; the target's stages get a copy of the spec. */
static void changed_init(struct changed *c, const struct forecast_input *in)
{
    *c = (struct changed){
        .in = *in,
        .slots = copy(in->slots, in->slots_n, sizeof *in->slots),
        .campaigns = copy(in->campaigns, in->campaigns_n, sizeof *in->campaigns),
        .stages = copy(in->stages, in->stages_n, sizeof *in->stages),
        .stage = xcalloc((size_t)in->stages_n + 1, sizeof *c->stage),
        .spec = xcalloc(1, sizeof *c->spec),
    };
    c->in.slots = c->slots;
    c->in.campaigns = c->campaigns;
    c->in.stages = c->stages;
    for (int i = 0; i < in->stages_n; i++) {
        if (c->stages[i].campaign_i == in->target_i) {
            *c->spec = *c->stages[i].spec;
            c->stage[i] = *c->stages[i].stage;
            c->stages[i].spec = c->spec;
            c->stages[i].stage = &c->stage[i];
        }
    }
}

static bool uses_type(const struct forecast_input *in, const char *type)
{
    for (int i = 0; i < in->stages_n; i++) {
        const struct spec_stage *s = in->stages[i].stage;
        for (int k = 0; in->stages[i].campaign_i == in->target_i && k < s->instance_type_n; k++) {
            if (strcmp(s->instance_type[k], type) == 0) {
                return true;
            }
        }
    }
    return false;
}

static bool set_type(struct changed *c, const char *type, struct err *err)
{
    bool known = false;
    for (int i = 0; i < c->in.slots_n; i++) {
        known = known || strcmp(c->slots[i].instance_type, type) == 0;
    }
    if (!known) {
        return err_set(err, ERR_INVALID, "neither quota nor price is known for %s", type);
    }
    for (int i = 0; i < c->in.stages_n; i++) {
        if (c->stages[i].campaign_i == c->in.target_i) {
            memset(c->stage[i].instance_type, 0, sizeof c->stage[i].instance_type);
            c->stage[i].instance_type[0] = type;
            c->stage[i].instance_type_n = 1;
        }
    }
    return true;
}

static void lift(int64_t *limit, int64_t n)
{
    *limit = *limit < 0 ? -1 : MAX(*limit, n);
}

/* Room for n parts at once, wherever a limit is lower. */
static void lift_parts(struct changed *c, int64_t n)
{
    lift(&c->campaigns[c->in.target_i].parts_limit, n);
    for (int i = 0; i < c->in.stages_n; i++) {
        if (c->stages[i].campaign_i == c->in.target_i) {
            lift(&c->stages[i].parts_limit, n);
        }
    }
}

static musd_t left_of(musd_t cap, musd_t committed)
{
    return cap == WHAT_IF_NO_LIMIT ? INT64_MAX : MAX(cap - committed, 0);
}

/* Parts at once and the budget, of the campaign or of one stage. */
static bool set_limits(struct changed *c, const struct what_if *what, struct err *err)
{
    struct forecast_campaign *lc = &c->campaigns[c->in.target_i];
    int64_t *parts = &lc->parts_limit;
    musd_t *left = &lc->left_musd, committed = lc->spent_musd + lc->reserved_musd;
    for (int i = 0; what->stage[0] != '\0' && i < c->in.stages_n; i++) {
        struct forecast_stage *s = &c->stages[i];
        if (s->campaign_i == c->in.target_i && strcmp(s->stage->name, what->stage) == 0) {
            parts = &s->parts_limit;
            left = &s->left_musd;
            committed = s->committed_musd;
        }
    }
    if (what->stage[0] != '\0' && parts == &lc->parts_limit) {
        return err_set(err, ERR_INVALID, "it has no stage %s that is to run", what->stage);
    }
    if (what->parts != -1) {
        *parts = what->parts == WHAT_IF_NO_LIMIT ? -1 : what->parts;
    }
    if (what->budget_musd != -1) {
        *left = left_of(what->budget_musd, committed);
    }
    return true;
}

static void set_slots(struct changed *c, int slots_i, int64_t n)
{
    struct quota_ledger *s = &c->slots[slots_i];
    s->quota = n;
    s->refused_limit = -1;
    s->operator_limit = -1;
    for (int i = 0; i < c->spec->instances_n; i++) {
        if (strcmp(c->spec->instances[i].instance_type, s->instance_type) == 0) {
            c->spec->instances[i].n = MAX(c->spec->instances[i].n, n);
        }
    }
}

bool forecast_run_what_if(const struct forecast_input *in, const struct what_if *what,
                          struct forecast *ret, struct err *err)
{
    CLEANUP(changed_free)
    struct changed c;
    changed_init(&c, in);
    if (what->instance_type[0] != '\0' && !set_type(&c, what->instance_type, err)) {
        return false;
    }
    for (int i = 0; what->slots >= 0 && i < in->slots_n; i++) {
        if (uses_type(&c.in, c.slots[i].instance_type)) {
            set_slots(&c, i, what->slots);
        }
    }
    if (what->slots >= 0) {
        lift_parts(&c, what->slots);
    }
    if (!set_limits(&c, what, err)) {
        return false;
    }
    if (what->priority >= 0) {
        c.campaigns[in->target_i].priority = what->priority;
    }
    if (what->spot_loss >= 0) {
        c.in.spot_loss = what->spot_loss;
    }
    c.in.fifo = what->fifo || (in->fifo && !what->longest_first);
    return forecast_run(&c.in, ret, err);
}

static bool with_more(const struct forecast_input *in, int slots_i, int64_t limit, int64_t more,
                      struct forecast *ret, struct err *err)
{
    CLEANUP(changed_free)
    struct changed c;
    changed_init(&c, in);
    if (slots_i >= 0) {
        set_slots(&c, slots_i, limit + more);
    } else {
        lift_parts(&c, limit + more);
    }
    return forecast_run(&c.in, ret, err);
}

/* The limit that binds now: of the type, or the lowest on parts at once; -1: no limit. */
static int64_t limit_now(const struct forecast_input *in, int slots_i)
{
    if (slots_i >= 0) {
        return quota_ledger_limit(&in->slots[slots_i], in->account);
    }
    int64_t least = in->campaigns[in->target_i].parts_limit;
    for (int i = 0; i < in->stages_n; i++) {
        int64_t l = in->stages[i].parts_limit;
        if (in->stages[i].campaign_i == in->target_i && l >= 0 && (least < 0 || l < least)) {
            least = l;
        }
    }
    return least;
}

/* More parts at once than the quotas hold would only wait for slots. */
static int64_t most_parts(const struct forecast_input *in)
{
    int64_t most = 0;
    for (int i = 0; i < in->slots_n; i++) {
        if (uses_type(in, in->slots[i].instance_type)) {
            most = MAX(most, quota_ledger_limit(&in->slots[i], in->account));
        }
    }
    return most;
}

static int most_gain_first(const void *a, const void *b)
{
    const struct forecast_advice *x = a;
    const struct forecast_advice *y = b;
    if (x->sooner_us != y->sooner_us) {
        return x->sooner_us > y->sooner_us ? -1 : 1;
    }
    return x->more < y->more ? -1 : x->more > y->more;
}

bool forecast_advise(const struct forecast_input *in, const struct forecast *base,
                     struct forecast_advice *ret, int n_max, int *ret_n, struct err *err)
{
    ASSERT(n_max >= 1 && n_max <= 8);
    *ret_n = 0;
    bool slots = base->binding == FORECAST_BINDS_SLOTS && base->binding_slots_i >= 0;
    if (!base->known || (!slots && base->binding != FORECAST_BINDS_CONCURRENCY)) {
        return true;
    }
    int slots_i = slots ? base->binding_slots_i : -1;
    int64_t limit = limit_now(in, slots_i);
    int64_t room = slots ? INT64_MAX : most_parts(in) - limit;
    if (limit < 0 || room <= 0) {
        return true;
    }
    struct forecast_input few = *in;
    few.runs = MIN(base->runs, ADVICE_RUNS);
    struct forecast before;
    if (!forecast_run(&few, &before, err)) {
        return false;
    }
    if (!before.known) {
        return true; /* no time is left */
    }
    static const int64_t per_cent[] = {25, 50, 100};
    struct forecast_advice all[ARRAY_LEN(per_cent)] = {0};
    size_t n = 0;
    int64_t last = 0;
    for (size_t i = 0; i < ARRAY_LEN(per_cent) && last < room; i++) {
        int64_t more = MIN(MAX((limit * per_cent[i] + 99) / 100, last + 1), room);
        last = more;
        struct forecast f;
        if (!with_more(&few, slots_i, limit, more, &f, err)) {
            return false;
        }
        if (!f.known) {
            break;
        }
        bool ends = f.end_us.p50 != USEC_NEVER && before.end_us.p50 != USEC_NEVER;
        int64_t sooner_us = ends ? before.end_us.p50 - f.end_us.p50 : 0;
        if (ends && (double)sooner_us >= GAIN_LEAST * (double)before.end_us.p50 && sooner_us > 0) {
            all[n++] =
                (struct forecast_advice){.slots_i = slots_i,
                                         .more = more,
                                         .sooner_us = sooner_us,
                                         .dearer_musd = f.cost_musd.p50 - before.cost_musd.p50};
        }
    }
    qsort(all, n, sizeof *all, most_gain_first);
    for (; *ret_n < n_max && (size_t)*ret_n < n; ++*ret_n) {
        ret[*ret_n] = all[*ret_n];
    }
    return true;
}
