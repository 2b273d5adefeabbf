/* Health, counters, the OpenAPI description, and the meaning of error codes. */
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/router.h"
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

bool problem_page(struct api_req *r, struct err *err)
{
    for (int i = 1; i < ERR_CODE_COUNT; i++) {
        const char *name = err_code_name((enum err_code)i);
        if (str_eq_cstr(r->params[0], name)) {
            r->status = 200;
            r->content_type = "text/plain; charset=utf-8";
            buf_addf(&r->out, "%s: HTTP status %d, exit status %d of drover%s\n", name,
                     err_code_http((enum err_code)i), err_code_exit((enum err_code)i),
                     err_code_retry((enum err_code)i) == RETRY_BACKOFF
                         ? "; the same request may succeed later"
                         : "");
            return true;
        }
    }
    return err_set(err, ERR_NOT_FOUND, "there is no such error code");
}

/* "/v1/campaigns/{c}:pause" has parameter "c". */
static void openapi_parameters(struct json_out *w, const struct route *t)
{
    json_out_array(w, "parameters");
    for (const char *p = strchr(t->pattern, '{'); p != NULL; p = strchr(p + 1, '{')) {
        json_out_object(w, NULL);
        json_out_strn(w, "name", (struct str){p + 1, strcspn(p + 1, "}")});
        json_out_str(w, "in", "path");
        json_out_bool(w, "required", true);
        json_out_raw(w, "schema", STR("{\"type\":\"string\"}"));
        json_out_end_object(w);
    }
    struct str names = str_of(t->query);
    while (names.n > 0) {
        json_out_object(w, NULL);
        json_out_strn(w, "name", str_split(&names, ' '));
        json_out_str(w, "in", "query");
        json_out_raw(w, "schema", STR("{\"type\":\"string\"}"));
        json_out_end_object(w);
    }
    json_out_end_array(w);
}

static void openapi_operation(struct json_out *w, const struct route *t)
{
    char method[8] = "";
    for (size_t i = 0; t->method[i] != '\0' && i + 1 < sizeof method; i++) {
        method[i] = (char)(t->method[i] | 0x20);
    }
    json_out_object(w, method);
    json_out_str(w, "summary", t->summary);
    openapi_parameters(w, t);
    json_out_object(w, "responses");
    json_out_raw(w, "2XX", STR("{\"description\":\"done\"}"));
    json_out_raw(
        w, "default",
        STR("{\"description\":\"an error\",\"content\":{\"application/problem+json\":{}}}"));
    json_out_end_object(w);
    if (t->role == API_PUBLIC) {
        json_out_raw(w, "security", STR("[]"));
    }
    json_out_end_object(w);
}

/* True when an earlier row has the same pattern with another method. */
static bool openapi_seen(size_t i)
{
    for (size_t j = 0; j < i; j++) {
        if (strcmp(route_table[j].pattern, route_table[i].pattern) == 0) {
            return true;
        }
    }
    return false;
}

bool openapi_get(struct api_req *r, struct err *err)
{
    (void)err;
    AUTO_BUF struct buf b = BUF_INIT(256 * 1024);
    struct json_out w;
    json_out_init(&w, &b);
    json_out_object(&w, NULL);
    json_out_str(&w, "openapi", "3.1.0");
    json_out_object(&w, "info");
    json_out_str(&w, "title", "drover");
    json_out_str(&w, "version", "1");
    json_out_end_object(&w);
    json_out_raw(&w, "security", STR("[{\"token\":[]}]"));
    json_out_raw(
        &w, "components",
        STR("{\"securitySchemes\":{\"token\":{\"type\":\"http\",\"scheme\":\"bearer\"}}}"));
    json_out_object(&w, "paths");
    for (size_t i = 0; i < route_table_n; i++) {
        if (openapi_seen(i)) {
            continue;
        }
        json_out_object(&w, route_table[i].pattern);
        for (size_t j = i; j < route_table_n; j++) {
            if (strcmp(route_table[j].pattern, route_table[i].pattern) == 0) {
                openapi_operation(&w, &route_table[j]);
            }
        }
        json_out_end_object(&w);
    }
    json_out_end_object(&w);
    json_out_end_object(&w);
    return reply_json(r, 200, buf_str(&b));
}
