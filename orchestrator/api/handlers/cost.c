/* The cost of a campaign, by stage, by cause, by phase and by instance type. */
#include "store/api/cost.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "core/money/cost_advice.h"
#include "remembered_answer.h"
#include "store/api/parts.h"
#include "store/api/reports.h"

struct cost_wanted {
    struct store *db;
    int64_t campaign_id;
};

/* The members of an object, which go on the answer's. */
static void add_inside(const struct buf *object, struct buf *out)
{
    ASSERT(object->n > 2 && !object->overflow);
    buf_add(out, object->p + 1, object->n - 2);
}

static void phases_out(struct json_out *w, const struct cost_phase_sums *s)
{
    json_out_array(w, "by_phase");
    for (enum cost_phase p = 0; p < COST_PHASE_COUNT; p++) {
        json_out_object(w, NULL);
        json_out_str(w, "phase", cost_phase_name(p));
        json_out_double(w, "elapsed_seconds", (double)s->elapsed_ms[p] / 1000);
        json_out_i64(w, "seconds", s->seconds[p]);
        json_out_i64(w, "micro_usd", s->musd[p]);
        json_out_end_object(w);
    }
    json_out_end_array(w);
    struct cost_phase_total idle = cost_phase_total(s, true);
    json_out_object(w, "trained_nothing");
    json_out_double(w, "elapsed_seconds", (double)idle.elapsed_ms / 1000);
    json_out_i64(w, "seconds", idle.seconds);
    json_out_i64(w, "micro_usd", idle.musd);
    json_out_end_object(w);
}

static void advice_out(struct json_out *w, const struct apidb_phases *row,
                       const struct cost_phase_sums *sums)
{
    struct cost_advice advice[COST_ADVICE_MAX];
    const struct cost_advice_facts f = {.sums = *sums,
                                        .warm_pool = row->keeps,
                                        .one_type = row->one_type,
                                        .attempts = row->measured};
    int n = cost_advise(&f, advice);
    json_out_array(w, "advice");
    for (int i = 0; i < n; i++) {
        json_out_object(w, NULL);
        json_out_str(w, "phase", cost_phase_name(advice[i].phase));
        json_out_str(w, "text", advice[i].text);
        json_out_i64(w, "micro_usd", advice[i].musd);
        json_out_double(w, "elapsed_seconds", (double)advice[i].elapsed_ms / 1000);
        json_out_end_object(w);
    }
    json_out_end_array(w);
}

/* Of the campaign and of each stage: time and money by phase, what trained nothing, what would cut
 * it. */
static bool by_phase_make(void *ctx, struct buf *out, struct err *err)
{
    const struct cost_wanted *of = ctx;
    AUTO_FREE struct apidb_phases *rows = NULL;
    AUTO_BUF struct buf stages = BUF_INIT(API_BODY_MAX);
    AUTO_BUF struct buf all = BUF_INIT(API_BODY_MAX);
    size_t n;
    if (!apidb_cost_phases(of->db, of->campaign_id, &rows, &n, err)) {
        return false;
    }
    struct cost_phase_sums sum = {{0}, {0}, {0}};
    struct json_out w, top;
    json_out_init(&w, &stages);
    json_out_array(&w, NULL);
    for (size_t i = 0; i < n; i++) {
        struct cost_phase_sums one;
        cost_phase_read(rows[i].figures, rows[i].job_s, rows[i].job_musd, rows[i].warm_s,
                        rows[i].warm_musd, &one);
        if (rows[i].hosts || rows[i].stores) {
            cost_phase_add_service(&one, rows[i].hosts ? COST_PHASE_HOSTING : COST_PHASE_STORAGE,
                                   rows[i].spent_s - rows[i].job_s - rows[i].warm_s,
                                   rows[i].spent_musd - rows[i].job_musd - rows[i].warm_musd);
        }
        cost_phase_add(&sum, &one);
        json_out_object(&w, NULL);
        json_out_str(&w, "stage", rows[i].stage);
        json_out_i64(&w, "attempts", rows[i].attempts);
        phases_out(&w, &one);
        advice_out(&w, &rows[i], &one);
        json_out_end_object(&w);
    }
    json_out_end_array(&w);
    json_out_init(&top, &all);
    json_out_object(&top, NULL);
    phases_out(&top, &sum);
    json_out_raw(&top, "stages", buf_str(&stages));
    json_out_end_object(&top);
    add_inside(&all, out);
    return true;
}

static bool by_cause_make(void *ctx, struct buf *out, struct err *err)
{
    const struct cost_wanted *of = ctx;
    AUTO_BUF struct buf all = BUF_INIT(API_BODY_MAX);
    if (!apidb_cost_by_cause(of->db, of->campaign_id, &all, err)) {
        return false;
    }
    add_inside(&all, out);
    return true;
}

static bool by_type_make(void *ctx, struct buf *out, struct err *err)
{
    const struct cost_wanted *of = ctx;
    buf_add_cstr(out, "\"by_type\":");
    return apidb_cost_by_type(of->db, of->campaign_id, out, err);
}

/* Append what reads all attempts of the campaign. */
static bool add(struct api_req *r, int64_t id, const char *what, response_cache_make make,
                struct err *err)
{
    struct cost_wanted of = {.db = r->db, .campaign_id = id};
    AUTO_FREE char *members = NULL;
    const char *key = arena_printf(&r->arena, "cost %lld %s", (long long)id, what);
    if (!remembered_answer(r, id, key, make, &of, &members, err)) {
        return false;
    }
    buf_addf(&r->out, ",%s", members);
    return true;
}

/* What ?by= asks for. Without it stages and causes. */
enum by { BY_BOTH, BY_STAGE, BY_CAUSE, BY_PHASE, BY_TYPE };
static enum by by_read(const struct api_req *r)
{
    static const char *const names[] = {"", "stage", "cause", "phase", "type"};
    const char *by = req_query(r, "by");
    size_t i = 0;
    while (strcmp(by != NULL ? by : "", names[i]) != 0) {
        i++;
        ASSERT(i < ARRAY_LEN(names));
    }
    return (enum by)i;
}

bool cost_get(struct api_req *r, struct err *err)
{
    int64_t id = req_id(r, 0);
    enum by by = by_read(r);
    AUTO_BUF struct buf total = BUF_INIT(API_BODY_MAX);
    AUTO_BUF struct buf stages = BUF_INIT(API_BODY_MAX);
    struct apidb_stage_row stage;
    if (!req_db(r, err) || !apidb_cost(r->db, id, &total, &stages, err) ||
        (by == BY_TYPE && !apidb_stage_find(r->db, id, NULL, &stage, err))) { /* archived? */
        return false;
    }
    ASSERT(total.n > 2); /* "{...}" */
    buf_add(&r->out, total.p, total.n - 1);
    if (by == BY_BOTH || by == BY_STAGE) {
        buf_addf(&r->out, ",\"by_stage\":%s", buf_cstr(&stages));
    }
    bool causes = by == BY_BOTH || by == BY_CAUSE;
    if ((causes && !add(r, id, "by cause", by_cause_make, err)) ||
        (by == BY_PHASE && !add(r, id, "by phase", by_phase_make, err)) ||
        (by == BY_TYPE && !add(r, id, "by type", by_type_make, err))) {
        return false;
    }
    buf_add_cstr(&r->out, "}\n");
    return reply_out(r, 200);
}
