/* See webhooks.h. */
#include "webhooks.h"
#include "queries.h"
#include "store/pg/query.h"

static bool project_known(struct store *s, const char *name, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, name);
    AUTO_RESULT PGresult *r = NULL;
    return store_exec(s, QUERY(API_PROJECT_KNOWN), &p, &r, err) &&
           (row_bool(r, 0, 0) || err_set(err, ERR_NOT_FOUND, "there is no project '%.64s'", name));
}

bool apidb_webhook_new(struct store *s, const struct apidb_webhook_new *w, int64_t *ret_id,
                       struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, w->name);
    param_text(&p, w->url);
    param_text(&p, w->format);
    param_text_array(&p, w->kinds, w->kinds_n);
    param_text(&p, w->project);
    param_bytes(&p, w->secret.p, w->secret.n);
    param_text(&p, w->by);
    param_i64_or_null(&p, w->quiet_from, -1);
    param_i64_or_null(&p, w->quiet_until, -1);
    AUTO_RESULT PGresult *r = NULL;
    if ((w->project != NULL && !project_known(s, w->project, err)) ||
        !store_exec(s, QUERY(API_WEBHOOK_NEW), &p, &r, err)) {
        return false;
    }
    if (row_count(r) == 0) {
        return err_set(err, ERR_CONFLICT, "there are %d webhooks already; remove one first",
                       WEBHOOKS_MAX);
    }
    *ret_id = row_i64(r, 0, 0);
    return true;
}

bool apidb_webhook_project(struct store *s, int64_t id, char ret[static 128], struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, id);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(API_WEBHOOK_PROJECT), &p, &r, err)) {
        return false;
    }
    if (row_count(r) == 0) {
        return err_set(err, ERR_NOT_FOUND, "there is no webhook w-%lld", (long long)id);
    }
    row_text_into(r, 0, 0, ret, 128);
    return true;
}

bool apidb_webhooks(struct store *s, int64_t id, const char *projects, struct buf *ret_json,
                    struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, id);
    param_text(&p, projects);
    return store_text(s, QUERY(API_WEBHOOKS), &p, "row", ret_json, err);
}

bool apidb_webhook_tag(struct store *s, int64_t id, struct buf *ret_text, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, id);
    return store_text(s, QUERY(API_WEBHOOK_TAG), &p, "row", ret_text, err);
}

bool apidb_webhook_lock(struct store *s, int64_t id, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, id);
    return store_run(s, QUERY(API_WEBHOOK_LOCK), &p, NULL, err);
}

bool apidb_webhook_change(struct store *s, int64_t id, const struct apidb_webhook_change *c,
                          struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, id);
    param_text(&p, c->name);
    param_text(&p, c->url);
    param_text(&p, c->format);
    param_text_array(&p, c->kinds_n > 0 ? c->kinds : NULL, c->kinds_n);
    param_bool(&p, c->set_quiet);
    param_i64_or_null(&p, c->quiet_from, -1);
    param_i64_or_null(&p, c->quiet_until, -1);
    return store_run(s, QUERY(API_WEBHOOK_CHANGE), &p, NULL, err);
}

bool apidb_webhook_delete(struct store *s, int64_t id, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, id);
    return store_run(s, QUERY(API_WEBHOOK_DELETE), &p, NULL, err);
}

bool apidb_webhook_test(struct store *s, int64_t id, int64_t *ret_delivery, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, id);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(API_WEBHOOK_TEST), &p, &r, err)) {
        return false;
    }
    if (row_count(r) == 0) {
        return err_set(err, ERR_CONFLICT, "ten tests of it wait already");
    }
    *ret_delivery = row_i64(r, 0, 0);
    return true;
}

bool apidb_deliveries(struct store *s, int64_t id, int64_t delivery, int64_t n,
                      struct buf *ret_json, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, id);
    param_i64(&p, delivery);
    param_i64(&p, n);
    return store_text(s, QUERY(API_DELIVERIES), &p, "row", ret_json, err);
}

bool apidb_delivery_resend(struct store *s, int64_t id, int64_t delivery, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, id);
    param_i64(&p, delivery);
    AUTO_RESULT PGresult *r = NULL;
    return store_exec(s, QUERY(API_DELIVERY_RESEND), &p, &r, err) &&
           (row_count(r) > 0 ||
            err_set(err, ERR_CONFLICT, "d-%lld waits for a try, or is not of this webhook",
                    (long long)delivery));
}
