/* `endpoint` of a stored stage: see spec_stored.h. */
#include "spec_stored.h"

static void put_seconds(json_t *o, const char *key, int64_t s)
{
    if (s > 0) {
        (void)json_object_set_new(o, key, json_integer(s));
    }
}

/* Specs stored by a release before have none. */
static int64_t get_seconds(struct stored *r, const json_t *o, const char *key)
{
    return json_object_get(o, key) == NULL
               ? 0
               : spec_get_i64(r, o, key, SPEC_HOSTING_WAIT_MIN, SPEC_HOSTING_WAIT_MAX);
}

json_t *spec_endpoint_out(const struct spec_endpoint *e)
{
    json_t *o = json_object();
    spec_put_text(o, "model_stage", e->model_stage);
    spec_put_text(o, "model_data", e->model_data);
    spec_put_text(o, "model_type", e->model_type);
    (void)json_object_set_new(o, "framework", json_boolean(e->framework));
    spec_put_text(o, "entry_point", e->entry_point);
    (void)json_object_set_new(o, "ttl_s", json_integer(e->ttl_s));
    (void)json_object_set_new(o, "idle_s", json_integer(e->idle_s));
    (void)json_object_set_new(o, "volume_gb", json_integer(e->volume_gb));
    put_seconds(o, "download_timeout_s", e->download_timeout_s);
    put_seconds(o, "startup_timeout_s", e->startup_timeout_s);
    spec_put_text(o, "payloads_from", e->payloads_from);
    (void)json_object_set_new(o, "payloads", spec_texts_out(e->payloads, e->payloads_n));
    spec_put_text(o, "content_type", e->content_type);
    (void)json_object_set_new(o, "p95_ms", json_integer(e->p95_ms));
    (void)json_object_set_new(o, "tags", spec_pairs_out(e->tags, e->tags_n));
    return o;
}

void spec_endpoint_in(struct stored *r, const json_t *stage, struct spec_stage *s)
{
    const json_t *o = json_object_get(stage, "endpoint");
    if (o == NULL) {
        return;
    }
    if (!json_is_object(o)) {
        spec_stored_fail(r, "endpoint");
        return;
    }
    struct spec_endpoint *e = arena_alloc(r->a, sizeof *e);
    *e = (struct spec_endpoint){.framework = false};
    s->kind = SPEC_KIND_ENDPOINT;
    s->endpoint = e;
    s->volume_kms_key = spec_get_text(r, stage, "volume_kms_key");
    e->model_stage = spec_get_text(r, o, "model_stage");
    e->model_data = spec_get_text(r, o, "model_data");
    e->model_type = spec_get_text(r, o, "model_type"); /* since models may be no .tar.gz */
    e->framework = spec_get_bool(r, o, "framework");
    e->entry_point = spec_get_text(r, o, "entry_point");
    e->ttl_s = spec_get_i64(r, o, "ttl_s", 1, SPEC_TTL_S_MAX);
    e->idle_s = spec_get_i64(r, o, "idle_s", 0, SPEC_TTL_S_MAX);
    e->volume_gb = (int)spec_get_i64(r, o, "volume_gb", 0, SPEC_HOSTING_GB_MAX);
    e->download_timeout_s = get_seconds(r, o, "download_timeout_s");
    e->startup_timeout_s = get_seconds(r, o, "startup_timeout_s");
    e->payloads_from = spec_get_text(r, o, "payloads_from");
    e->payloads_n = spec_get_texts(r, o, "payloads", e->payloads, ARRAY_LEN(e->payloads));
    e->content_type = spec_need_text(r, o, "content_type");
    e->p95_ms = (int)spec_get_i64(r, o, "p95_ms", 0, INT32_MAX);
    e->tags_n = spec_get_pairs(r, o, "tags", e->tags, ARRAY_LEN(e->tags));
    if ((e->model_stage == NULL) == (e->model_data == NULL)) {
        spec_stored_fail(r, "model_data");
    }
}
