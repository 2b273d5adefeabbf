/* `filesystem` of a stored stage: see spec_stored.h. */
#include "spec_stored.h"

json_t *spec_filesystem_out(const struct spec_filesystem *f)
{
    json_t *o = json_object();
    spec_put_text(o, "deployment", f->deployment);
    (void)json_object_set_new(o, "capacity_gib", json_integer(f->capacity_gib));
    (void)json_object_set_new(o, "throughput", json_integer(f->throughput));
    spec_put_text(o, "import", f->import_from);
    (void)json_object_set_new(o, "export", json_boolean(f->exports));
    (void)json_object_set_new(o, "keep", json_boolean(f->keep));
    (void)json_object_set_new(o, "ttl_s", json_integer(f->ttl_s));
    (void)json_object_set_new(o, "tags", spec_pairs_out(f->tags, f->tags_n));
    return o;
}

void spec_filesystem_in(struct stored *r, const json_t *stage, struct spec_stage *s)
{
    const json_t *o = json_object_get(stage, "filesystem");
    if (o == NULL) {
        return;
    }
    if (!json_is_object(o)) {
        spec_stored_fail(r, "filesystem");
        return;
    }
    struct spec_filesystem *f = arena_alloc(r->a, sizeof *f);
    *f = (struct spec_filesystem){.exports = false};
    s->kind = SPEC_KIND_LUSTRE;
    s->filesystem = f;
    s->volume_kms_key = spec_get_text(r, stage, "volume_kms_key");
    f->deployment = spec_need_text(r, o, "deployment");
    f->capacity_gib = spec_get_i64(r, o, "capacity_gib", 1, SPEC_STORAGE_GIB_MAX);
    f->throughput = (int)spec_get_i64(r, o, "throughput", 0, INT32_MAX);
    f->import_from = spec_get_text(r, o, "import");
    f->exports = spec_get_bool(r, o, "export");
    f->keep = spec_get_bool(r, o, "keep");
    f->ttl_s = spec_get_i64(r, o, "ttl_s", 1, SPEC_TTL_S_MAX);
    f->tags_n = spec_get_pairs(r, o, "tags", f->tags, ARRAY_LEN(f->tags));
}
