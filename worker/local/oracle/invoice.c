/* The invoice and the wire log under /_local/: see invoice.h. */
#include "invoice.h"
#include "common/clock.h"
#include "history.h"
#include "local/app.h"
#include "local/hosting/fleet.h"
#include "local/jobs/files.h"
#include "local/jobs/process.h"
#include "local/sagemaker/job_clock.h"
#include "local/sagemaker/warm.h"
#include "local/services/services.h"
#include "local/services/sqs_local.h"
#include <poll.h>
#include <stdio.h>

#define HOURS_PER_MONTH 730

bool invoice_is(const struct request *r)
{
    return str_starts(r->path, INVOICE_PREFIX);
}

bool invoice_price(const char *text, int64_t *ret_musd)
{
    int64_t v = 0;
    int digits = 0;
    int behind = -1; /* digits after the point; -1: no point yet */
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '.' && behind < 0) {
            behind = 0;
            continue;
        }
        if (*p < '0' || *p > '9' || v > INT64_C(100000000000)) {
            return false;
        }
        digits++;
        if (behind < 6) {
            v = v * 10 + (*p - '0');
            behind += behind >= 0;
        } else if (behind == 6) {
            v += *p >= '5';
            behind++;
        }
    }
    for (behind = MAX(behind, 0); behind < 6; behind++) {
        v *= 10;
    }
    if (digits == 0) {
        return false;
    }
    *ret_musd = v;
    return true;
}

int64_t invoice_cost(int64_t price_musd, int64_t instances, int64_t seconds)
{
    ASSERT(price_musd >= 0 && instances >= 0 && seconds >= 0);
    __extension__ unsigned __int128 thousandths =
        (unsigned __int128)price_musd * (uint64_t)instances * (uint64_t)seconds;
    return (int64_t)((thousandths + 1800) / 3600);
}

static json_t *instant(usec_t t)
{
    return t == 0 ? json_null() : json_real((double)t / (double)USEC_PER_SEC);
}

static void pool_show(json_t *o, const struct pool *p)
{
    if (p->status != POOL_NONE) {
        (void)json_object_set_new(o, "pool",
                                  json_pack("{s:s, s:o, s:o, s:s, s:s, s:s}", "status",
                                            pool_status_name(p->status), "since", instant(p->since),
                                            "end", instant(p->end), "taken_from", p->taken_from,
                                            "reused_by", p->reused_by, "cluster", p->cluster));
    }
}

static void jobs_reply(struct request *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->app->jobs.n; i++) {
        const struct local_job *j = r->app->jobs.items[i];
        json_t *o = json_pack(
            "{s:s, s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:b}", "name", j->name, "status",
            job_status_name(j->status), "secondary_status", job_phase_name(j->phase),
            "instance_type", j->instance_type, "instance_count", (json_int_t)j->instances,
            "created", instant(j->created), "started", instant(j->started), "ended",
            instant(j->ended), "released", instant(j->released), "ghost", j->ghost ? 1 : 0);
        pool_show(o, &j->pool);
        (void)json_array_append_new(list, o);
    }
    reply_json(r, json_pack("{s:o}", "jobs", list));
}

struct invoice {
    const struct app *app;
    json_t *lines;
    int64_t seconds;
    int64_t musd;
};

/* How long the instances were there, by the job's history. */
static int64_t ran_us(const struct local_job *j)
{
    int64_t us = 0;
    bool was_up = false;
    for (size_t i = 0; i < j->transitions_n; i++) {
        const struct transition *t = &j->transitions[i];
        bool up = t->phase == PHASE_DOWNLOADING || t->phase == PHASE_TRAINING ||
                  t->phase == PHASE_UPLOADING || t->phase == PHASE_STOPPING;
        up = up && (t->phase != PHASE_STOPPING || was_up);
        us += up ? t->end - t->start : 0;
        was_up = up;
    }
    return us;
}

/* Add a line for a time measured here, independent of what Describe reports. An instance type may
 * have a price of its own for endpoints: "hosting:<type>". */
static void invoice_add(struct invoice *v, const char *name, const char *kind, const char *type,
                        int64_t instances, int64_t span_us)
{
    int64_t price = 0;
    AUTO_FREE char *key = xasprintf("%s:%s", kind, type);
    const json_t *text = json_object_get(v->app->set.prices, key);
    text = text != NULL ? text : json_object_get(v->app->set.prices, type);
    bool priced = text != NULL && invoice_price(json_string_value(text), &price);
    int64_t span = span_us / USEC_PER_SEC;
    span += span_us % USEC_PER_SEC > 0;
    span = span < 1 ? 1 : span;
    int64_t cost = invoice_cost(price, instances, span);
    json_t *o = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "name", name, "kind", kind,
                          "instance_type", type, "instances", (json_int_t)instances, "seconds",
                          (json_int_t)(span * instances), "micro_usd", (json_int_t)cost);
    if (!priced) {
        (void)json_object_set_new(o, "micro_usd", json_null());
    }
    v->seconds += span * instances;
    v->musd += cost;
    (void)json_array_append_new(v->lines, o);
}

/* A file system: GiB by whole hours, at "storage:<deployment type>/<throughput>", else
 * "storage:<deployment type>" USD a GB and month of 730 hours. Its seconds are no
 * instance-seconds, so the total has none of them. */
static void storage_add(struct invoice *v, const json_t *c)
{
    int64_t span = record_i64(c, "to") - record_i64(c, "from");
    int64_t hours = MAX(INT64_C(1), (span + 3600 * USEC_PER_SEC - 1) / (3600 * USEC_PER_SEC));
    int64_t gib = record_i64(c, "instances");
    int64_t price = 0;
    int64_t cost = 0;
    AUTO_FREE char *key = xasprintf("storage:%s", record_text(c, "instance_type"));
    AUTO_FREE char *plain = xasprintf("%.*s", (int)strcspn(key, "/"), key);
    const json_t *usd = json_object_get(v->app->set.prices, key);
    usd = usd != NULL ? usd : json_object_get(v->app->set.prices, plain);
    const char *text = json_string_value(usd);
    bool priced = text != NULL && invoice_price(text, &price) &&
                  muldiv_i64(price * gib, hours, HOURS_PER_MONTH, &cost);
    json_t *o = json_pack("{s:s, s:s, s:s, s:I, s:I, s:o}", "name", record_text(c, "name"), "kind",
                          "storage", "instance_type", record_text(c, "instance_type"), "instances",
                          (json_int_t)gib, "seconds", (json_int_t)(hours * 3600), "micro_usd",
                          priced ? json_integer(cost) : json_null());
    v->musd += cost;
    (void)json_array_append_new(v->lines, o);
}

/* Lines of endpoints, closed when a fleet ended. */
static void charges_add(struct invoice *v)
{
    const char *key;
    const json_t *c;
    json_object_foreach(v->app->records.all[RECORD_CHARGE], key, c)
    {
        if (strcmp(record_text(c, "kind"), "storage") == 0) {
            storage_add(v, c);
            continue;
        }
        invoice_add(v, record_text(c, "name"), record_text(c, "kind"),
                    record_text(c, "instance_type"), record_i64(c, "instances"),
                    record_i64(c, "to") - record_i64(c, "from"));
    }
}

static void invoice_reply(struct request *r)
{
    struct invoice v = {.app = r->app, .lines = json_array()};
    for (size_t i = 0; i < r->app->jobs.n; i++) {
        const struct local_job *j = r->app->jobs.items[i];
        if (j->ghost || j->ended == 0 || j->started == 0) {
            continue;
        }
        if (j->spot) { /* cheaper, and nothing is billed between runs */
            invoice_add(&v, j->name, "training", j->instance_type, j->instances,
                        (ran_us(j) * j->billed_percent + 99) / 100);
        } else {
            invoice_add(&v, j->name, "training", j->instance_type, j->instances,
                        j->ended - j->started);
        }
        if (j->pool.end > j->ended) {
            invoice_add(&v, j->name, "warm", j->instance_type, j->instances,
                        j->pool.end - j->ended);
        }
    }
    charges_add(&v);
    reply_json(r, json_pack("{s:{s:I, s:I}, s:o}", "total", "seconds", (json_int_t)v.seconds,
                            "micro_usd", (json_int_t)v.musd, "lines", v.lines));
}

static void faults_post(struct request *r)
{
    AUTO_JSON json_t *body = NULL;
    struct err err = ERR_INIT;
    static const char *const keys[] = {"faults", "append", NULL};
    bool append = false;
    if (!json_parse(buf_str(&r->body), REQUEST_BODY_BYTES_MAX, &body, &err) ||
        !json_only_keys(body, keys, &err) || !json_get_bool(body, "append", false, &append, &err) ||
        !faults_set(&r->app->faults, json_object_get(body, "faults"), append, &err)) {
        reply_error(r, 400, "Invalid", "%s", err.message);
        return;
    }
    reply_json(r, faults_to_json(&r->app->faults));
}

static void folder_empty(const struct app *app, const char *name)
{
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    if (files_path(path, sizeof path, &err, "%s/%s", app->root, name)) {
        files_remove_tree(path);
        (void)!files_mkdirs(path, &err);
    }
}

static void buckets_empty(const struct app *app)
{
    folder_empty(app, "s3");
    folder_empty(app, "s3/.tmp");
    folder_empty(app, "state/meta");
    folder_empty(app, "state/uploads");
}

static void reset_post(struct request *r)
{
    struct app *app = r->app;
    AUTO_JSON json_t *body = NULL;
    struct err err = ERR_INIT;
    bool buckets = false;
    if (r->body.n > 0 && (!json_parse(buf_str(&r->body), REQUEST_BODY_BYTES_MAX, &body, &err) ||
                          !json_get_bool(body, "buckets", false, &buckets, &err))) {
        reply_error(r, 400, "Invalid", "%s", err.message);
        return;
    }
    for (size_t i = 0; i < app->jobs.live_n; i++) {
        process_kill(app, app->jobs.live[i]);
    }
    fleets_kill(app);
    /* Wait for the supervisors, because their folders are removed next. */
    for (int tries = 0; tries < 500; tries++) {
        size_t alive = fleets_alive(app);
        for (size_t i = 0; i < app->jobs.live_n; i++) {
            alive += process_alive(app, app->jobs.live[i]);
        }
        if (alive == 0) {
            break;
        }
        (void)poll(NULL, 0, 10);
    }
    job_clock_reset(app);
    jobs_done(&app->jobs);
    jobs_init(&app->jobs);
    json_decref(app->quota_requests);
    app->quota_requests = NULL;
    records_done(&app->records);
    records_init(&app->records);
    queues_reset(app->queues);
    (void)!faults_set(&app->faults, app->set.faults, false, &err);
    folder_empty(app, "jobs");
    folder_empty(app, "fleets");
    folder_empty(app, "fsx");
    folder_empty(app, "state/marks");
    folder_empty(app, "state/clusters");
    if (buckets) {
        buckets_empty(app);
    }
    if (!journal_reset(&app->state, &err) || !wire_reset(&app->wire, &err)) {
        reply_error(r, 500, "Internal", "%s", err.message);
        return;
    }
    reply_json(r, json_object());
}

static void wire_reply(struct request *r)
{
    struct err err = ERR_INIT;
    if (!wire_dump(&r->app->wire, &r->reply.body, &err)) {
        reply_error(r, 500, "Internal", "%s", err.message);
        return;
    }
    r->reply.status = 200;
}

void invoice_handle(struct request *r)
{
    static const struct {
        const char *method;
        const char *path;
        void (*handle)(struct request *r);
    } routes[] = {
        {"GET", INVOICE_PREFIX "wire-log", wire_reply},
        {"GET", INVOICE_PREFIX "jobs", jobs_reply},
        {"GET", INVOICE_PREFIX "invoice", invoice_reply},
        {"POST", INVOICE_PREFIX "faults", faults_post},
        {"POST", INVOICE_PREFIX "history", history_post},
        {"POST", INVOICE_PREFIX "reset", reset_post},
        {"POST", INVOICE_PREFIX "approve-quotas", quotas_approve},
    };
    r->service = "local";
    pthread_mutex_lock(&r->app->mu);
    warm_expire(r->app, clock_wall_us());
    for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
        if (strcmp(r->method, routes[i].method) == 0 && str_eq_cstr(r->path, routes[i].path)) {
            routes[i].handle(r);
        }
    }
    if (strcmp(r->method, "GET") == 0 && str_eq_cstr(r->path, INVOICE_PREFIX "faults")) {
        reply_json(r, faults_to_json(&r->app->faults));
    }
    if (r->reply.status == 0) {
        reply_error(r, 404, "NotFound", "no such page");
    }
    pthread_mutex_unlock(&r->app->mu);
    r->reply.content_type = "application/json";
}
