/* Health, counters, and the OpenAPI document. */
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "api/server/server.h"
#include "common/clock.h"
#include "common/log.h"
#include "metrics.h"

bool probe_livez(struct api_req *r, struct err *err)
{
    (void)err;
    AUTO_BUF struct buf b = BUF_INIT(1024);
    struct json_out w;
    json_out_init(&w, &b);
    json_out_object(&w, NULL);
    json_out_bool(&w, "ok", true);
    json_out_str(&w, "version", req_config(r)->version != NULL ? req_config(r)->version : "dev");
    json_out_time(&w, "started_at", req_server_started_us(r));
    json_out_time(&w, "now", clock_wall_us());
    json_out_end_object(&w);
    return reply_json(r, 200, buf_str(&b));
}

bool probe_readyz(struct api_req *r, struct err *err)
{
    (void)err;
    const struct api_status *s = req_config(r)->status;
    bool db = s != NULL && atomic_load(&s->db_ok);
    AUTO_BUF struct buf b = BUF_INIT(1024);
    struct json_out w;
    json_out_init(&w, &b);
    json_out_object(&w, NULL);
    json_out_bool(&w, "ready", db);
    json_out_bool(&w, "database", db);
    json_out_bool(&w, "aws", s != NULL && atomic_load(&s->aws_ok));
    json_out_bool(&w, "leading", s != NULL && atomic_load(&s->leading));
    json_out_i64(&w, "lease_epoch", s != NULL ? atomic_load(&s->lease_epoch) : 0);
    json_out_end_object(&w);
    return reply_json(r, db ? 200 : 503, buf_str(&b));
}

bool probe_metrics(struct api_req *r, struct err *err)
{
    (void)err;
    r->status = 200;
    r->content_type = "text/plain; version=0.0.4; charset=utf-8";
    metric_set(METRIC_LOG_DROPPED, log_dropped());
    metrics_render(&r->out);
    return true;
}

bool openapi_get(struct api_req *r, struct err *err)
{
    (void)err;
    buf_add_str(&r->out, req_openapi(r));
    return reply_out(r, 200);
}

bool campaign_schema_get(struct api_req *r, struct err *err)
{
    (void)err;
    buf_add_str(&r->out, req_campaign_schema(r));
    r->status = 200;
    r->content_type = "application/schema+json";
    return true;
}
