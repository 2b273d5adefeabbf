/* See image_pins.h. */
#include "image_pins.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "core/catalog/image_ref.h"

#define IMAGE_US (10 * USEC_PER_SEC)

static bool missing(struct api_req *r, const struct spec_stage *st, struct err *err)
{
    r->faults = arena_alloc(&r->arena, sizeof *r->faults);
    faults_add(r->faults, (struct position){0, 0},
               arena_printf(&r->arena, "stages.%s.image", st->name), "no_image",
               "push it, or correct repository and tag", "ECR has no image %.200s", st->image);
    return err_set(err, ERR_INVALID, "ECR has no image %.200s", st->image);
}

/* *ret_digest NULL: ECR refused to tell. */
static bool ask(struct api_req *r, const struct spec_stage *st, const struct image_ref *ref,
                const char **ret_digest, struct err *err)
{
    struct bridge_question q = {.kind = BRIDGE_IMAGE};
    CLEANUP(bridge_reply_done)
    struct bridge_reply reply = {0};
    struct err why = ERR_INIT;
    (void)snprintf(q.job, sizeof q.job, "%s", ref->account);
    (void)snprintf(q.uri, sizeof q.uri, "%s", ref->repository);
    (void)snprintf(q.token, sizeof q.token, "%s", ref->tag);
    *ret_digest = NULL;
    if (req_bridge(r, &q, IMAGE_US, &reply, &why)) {
        *ret_digest = arena_strndup(&r->arena, reply.json.p, reply.json.n);
        return true;
    }
    if (why.code == ERR_NOT_FOUND) {
        return missing(r, st, err);
    }
    if (why.code != ERR_AWS) {
        *err = why;
        return false;
    }
    if (log_allow("image_not_pinned")) {
        log_event(LOG_WARN, "image_not_pinned", LF_S("image", st->image), LF_ERR(&why));
    }
    return true;
}

bool images_pin(struct api_req *r, struct spec *s, struct arena *a, struct err *err)
{
    const char *region = req_config(r)->defaults.region;
    const char *was[SPEC_STAGES_MAX];
    for (int i = 0; i < s->stages_n; i++) {
        struct spec_stage *st = s->stages[i];
        struct image_ref ref;
        const char *digest = NULL;
        int same = 0;
        if (spec_image_by_vpc(st)) {
            was[i] = "(a registry in the VPC)"; /* no image is called so */
            continue;
        }
        was[i] = st->image != NULL ? st->image : "";
        while (strcmp(was[same], was[i]) != 0) {
            same++;
        }
        if (same < i) {
            st->image = s->stages[same]->image;
            continue;
        }
        if (!image_ref_parse(was[i], &ref) || ref.pinned || region == NULL ||
            strcmp(ref.region, region) != 0) {
            continue;
        }
        if (!ask(r, st, &ref, &digest, err)) {
            return false;
        }
        if (digest != NULL) {
            st->image = arena_printf(a, "%.*s@%s", (int)image_ref_name_n(was[i]), was[i], digest);
        }
    }
    return true;
}
