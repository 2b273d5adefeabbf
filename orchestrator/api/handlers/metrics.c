/* Metrics of training runs: series of a campaign, charts and points of one attempt. */
#include "store/api/metrics.h"
#include "api/server/paging.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "parts.h"
#include "store/api/parts.h"

static void page_end(struct api_req *r, bool more, int64_t after)
{
    if (more) {
        buf_addf(&r->out, ",\"next_page_token\":\"%s\"}\n", page_token_make(r, &after, 1));
    } else {
        buf_add_cstr(&r->out, ",\"next_page_token\":null}\n");
    }
}

bool metrics_list(struct api_req *r, struct err *err)
{
    int64_t id, n, after = 0;
    bool given, more;
    struct apidb_stage_row stage;
    const char *name = req_query(r, "stage");
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    if (!req_id(r, 0, "c-", &id, err) || !req_query_i64(r, "page_size", 1, 1000, 200, &n, err) ||
        !page_token_read(r, &after, 1, &given, err) || !req_db(r, err) ||
        !apidb_stage_find(r->db, id, name, &stage, err) ||
        !apidb_metric_series(r->db, id, name != NULL ? stage.id : 0, n, &after, &more, &rows,
                             err)) {
        return false;
    }
    buf_addf(&r->out, "{\"series\":%s", buf_cstr(&rows));
    page_end(r, more, after);
    return reply_out(r, 200);
}

/* The attempt that the path and ?attempt= name. */
static bool attempt_find(struct api_req *r, struct apidb_metric_attempt *ret, struct err *err)
{
    int64_t campaign, task, n;
    return req_query_i64(r, "attempt", 0, INT32_MAX, 0, &n, err) &&
           part_find(r, &campaign, &task, err) && apidb_metric_attempt(r->db, task, n, ret, err);
}

bool metrics_get(struct api_req *r, struct err *err)
{
    int64_t most;
    struct apidb_metric_attempt a;
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    if (!req_query_i64(r, "points", 1, APIDB_METRIC_CHART_MAX, 200, &most, err) ||
        !attempt_find(r, &a, err) ||
        !apidb_metric_charts(r->db, a.id, req_query(r, "name"), most, &rows, err)) {
        return false;
    }
    struct json_out w;
    json_out_init(&w, &r->out);
    json_out_object(&w, NULL);
    json_out_i64(&w, "attempt", a.n);
    json_out_bool(&w, "complete", !a.collects);
    json_out_str(&w, "note", a.note[0] != '\0' ? a.note : NULL);
    json_out_raw(&w, "series", buf_str(&rows));
    json_out_end_object(&w);
    reply_etag_of_body(r, "");
    return reply_out(r, 200);
}

bool metric_points_get(struct api_req *r, struct err *err)
{
    int64_t n, after = -1;
    bool given, more;
    struct apidb_metric_attempt a;
    const char *name = req_query(r, "name");
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    if (name == NULL) {
        return err_set(err, ERR_MALFORMED, "query parameter 'name' is missing: name=loss");
    }
    if (!req_query_i64(r, "page_size", 1, 1000, 1000, &n, err) ||
        !page_token_read(r, &after, 1, &given, err) || !attempt_find(r, &a, err) ||
        !apidb_metric_points(r->db, a.id, name, n, &after, &more, &rows, err)) {
        return false;
    }
    buf_addf(&r->out, "{\"attempt\":%lld,\"points\":%s", (long long)a.n, buf_cstr(&rows));
    page_end(r, more, after);
    return reply_out(r, 200);
}
