/* Which stage is next: strict priority, then its turn (sched_reservation.c), then the project, and
 * within it the campaign, that holds the fewest instances for its weight (fair_share.h), then the
 * earlier stage; ties by id. Stages are sorted once per plan. Within one priority and turn the
 * projects form a heap of shares, and so do the campaigns of each. Only the previous first entry
 * can have grown, so one sift-down per launch is enough. */
#include "common/heap.h"
#include "fair_share.h"
#include "sched_work.h"

struct order_campaign {
    int campaign_i;
    int at, to; /* into stages: its stages of this class, those before `at` closed */
};
struct order_project {
    int project_i;
    int from, n; /* into campaigns: a heap */
};
struct sched_order {
    int *stages; /* by priority, turn, project, campaign, stage; closed ones left out */
    int stages_n;
    int class_to; /* those before it are in the heaps or done */
    struct order_campaign *campaigns;
    struct order_project *projects; /* a heap */
    int projects_n;
};

static const struct sched_campaign *campaign_of(const struct sched_work *w, int stage_i)
{
    return &w->campaigns[w->view->stages[stage_i].campaign_i];
}

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int stage_compare(const void *a, const void *b, void *ctx)
{
    const struct sched_work *w = ctx;
    int i = 0;
    int k = 0;
    memcpy(&i, a, sizeof i);
    memcpy(&k, b, sizeof k);
    const struct sched_stage *x = &w->view->stages[i];
    const struct sched_stage *y = &w->view->stages[k];
    int by = compare(y->priority, x->priority);
    by = by != 0 ? by : compare(w->stages[i].turn, w->stages[k].turn);
    by = by != 0 ? by
                 : compare(w->projects[campaign_of(w, i)->project_i].project_id,
                           w->projects[campaign_of(w, k)->project_i].project_id);
    by = by != 0 ? by : compare(x->campaign_id, y->campaign_id);
    return by != 0 ? by : compare(x->stage_id, y->stage_id);
}

/* An unknown last start counts as long ago; one in the future, after the clock was set back, counts
 * as now. */
static int64_t idle_us(const struct sched_work *w, usec_t last_start_us)
{
    return MAX(0, w->view->now_us - last_start_us);
}

static bool campaign_before(const struct sched_work *w, const struct order_campaign *a,
                            const struct order_campaign *b)
{
    const struct sched_campaign *x = &w->campaigns[a->campaign_i];
    const struct sched_campaign *y = &w->campaigns[b->campaign_i];
    return fair_share_before(
        &(struct fair_share){x->campaign_id, x->held, x->weight, idle_us(w, x->last_start_us)},
        &(struct fair_share){y->campaign_id, y->held, y->weight, idle_us(w, y->last_start_us)});
}

static bool project_before(const struct sched_work *w, const struct order_project *a,
                           const struct order_project *b)
{
    const struct sched_project *x = &w->projects[a->project_i];
    const struct sched_project *y = &w->projects[b->project_i];
    return fair_share_before(
        &(struct fair_share){x->project_id, x->held, x->weight, idle_us(w, x->last_start_us)},
        &(struct fair_share){y->project_id, y->held, y->weight, idle_us(w, y->last_start_us)});
}

HEAP_DEFINE(campaign, struct order_campaign, const struct sched_work *, campaign_before, HEAP_PUT);
HEAP_DEFINE(project, struct order_project, const struct sched_work *, project_before, HEAP_PUT);

static bool same_class(const struct sched_work *w, int a, int b)
{
    return w->view->stages[a].priority == w->view->stages[b].priority &&
           w->stages[a].turn == w->stages[b].turn;
}

/* The next class of one priority and turn: its stages into campaigns, those into projects, heaps of
 * both. */
static void next_class(const struct sched_work *w, struct sched_order *o)
{
    int campaigns_n = 0;
    int from = o->class_to;
    int to = from;
    while (to < o->stages_n && same_class(w, o->stages[to], o->stages[from])) {
        int campaign_i = w->view->stages[o->stages[to]].campaign_i;
        int project_i = w->campaigns[campaign_i].project_i;
        if (o->projects_n == 0 || o->projects[o->projects_n - 1].project_i != project_i) {
            o->projects[o->projects_n++] = (struct order_project){project_i, campaigns_n, 0};
        }
        struct order_project *p = &o->projects[o->projects_n - 1];
        if (p->n == 0 || o->campaigns[campaigns_n - 1].campaign_i != campaign_i) {
            o->campaigns[campaigns_n++] = (struct order_campaign){campaign_i, to, to};
            p->n++;
        }
        o->campaigns[campaigns_n - 1].to = ++to;
    }
    o->class_to = to;
    for (int p = 0; p < o->projects_n; p++) {
        for (int i = o->projects[p].n / 2; i > 0; i--) {
            campaign_down(w, o->campaigns + o->projects[p].from, (size_t)o->projects[p].n,
                          (size_t)i - 1);
        }
    }
    for (int i = o->projects_n / 2; i > 0; i--) {
        project_down(w, o->projects, (size_t)o->projects_n, (size_t)i - 1);
    }
}

struct sched_order *sched_order_new(const struct sched_work *w)
{
    size_t n = (size_t)w->view->stages_n + 1;
    struct sched_order *o = xcalloc(1, sizeof *o);
    o->stages = xmalloc(n * sizeof *o->stages);
    o->campaigns = xmalloc(n * sizeof *o->campaigns);
    o->projects = xmalloc(n * sizeof *o->projects);
    for (int i = 0; i < w->view->stages_n; i++) {
        if (!w->stages[i].closed) {
            o->stages[o->stages_n++] = i;
        }
    }
    struct sched_work *ctx = NULL;
    memcpy(&ctx, &w, sizeof ctx); /* qsort_r's context is not const */
    qsort_r(o->stages, (size_t)o->stages_n, sizeof *o->stages, stage_compare, ctx);
    return o;
}

void sched_order_free(struct sched_order *o)
{
    if (o != NULL) {
        free(o->stages);
        free(o->campaigns);
        free(o->projects);
        free(o);
    }
}

int sched_order_next(const struct sched_work *w, struct sched_order *o)
{
    if (o->projects_n > 0) { /* the first entry may have grown or closed */
        struct order_project *p = &o->projects[0];
        struct order_campaign *h = o->campaigns + p->from;
        while (h->at < h->to && w->stages[o->stages[h->at]].closed) {
            h->at++;
        }
        if (h->at == h->to) {
            *h = h[--p->n];
        }
        campaign_down(w, h, (size_t)p->n, 0);
        if (p->n == 0) {
            *p = o->projects[--o->projects_n];
        }
        project_down(w, o->projects, (size_t)o->projects_n, 0);
    }
    while (o->projects_n == 0 && o->class_to < o->stages_n) {
        next_class(w, o);
    }
    return o->projects_n == 0 ? -1 : o->stages[o->campaigns[o->projects[0].from].at];
}
