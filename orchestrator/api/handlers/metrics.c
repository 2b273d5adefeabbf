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
    int64_t id = req_id(r, 0), n = req_number(r, "page_size"), after = 0;
    bool given, more;
    struct apidb_stage_row stage;
    const char *name = req_query(r, "stage");
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    if (!page_token_read(r, &after, 1, &given, err) || !req_db(r, err) ||
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
    int64_t campaign, task;
    return part_find(r, &campaign, &task, err) &&
           apidb_metric_attempt(r->db, task, req_number(r, "attempt"), ret, err);
}

bool metrics_get(struct api_req *r, struct err *err)
{
    struct apidb_metric_attempt a;
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    if (!attempt_find(r, &a, err) || !apidb_metric_charts(r->db, a.id, req_query(r, "name"),
                                                          req_number(r, "points"), &rows, err)) {
        return false;
    }
    struct json_out w;
    json_out_init(&w, &r->out);
    json_out_object(&w, NULL);
    json_out_i64(&w, "attempt", a.n);
    json_out_bool(&w, "complete", !a.collects);
    json_out_bool(&w, "defined", a.defined);
    json_out_str(&w, "note", a.note[0] != '\0' ? a.note : NULL);
    json_out_raw(&w, "series", buf_str(&rows));
    json_out_end_object(&w);
    return reply_out(r, 200);
}

bool metric_points_get(struct api_req *r, struct err *err)
{
    int64_t n = req_number(r, "page_size"), after = -1;
    bool given, more;
    struct apidb_metric_attempt a;
    const char *name = req_query(r, "name");
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    if (!page_token_read(r, &after, 1, &given, err) || !attempt_find(r, &a, err) ||
        !apidb_metric_points(r->db, a.id, name, n, &after, &more, &rows, err)) {
        return false;
    }
    buf_addf(&r->out, "{\"attempt\":%lld,\"points\":%s", (long long)a.n, buf_cstr(&rows));
    page_end(r, more, after);
    return reply_out(r, 200);
}
