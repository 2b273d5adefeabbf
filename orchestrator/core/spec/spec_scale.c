/* Reads `scales_with` of a matrix: what may differ, besides the number of instances, between the
 * runs of one scaling table. */
#include "spec_read.h"

/* A key of a stage, hyperparameters.NAME or environment.NAME. */
static bool may_scale(struct spec_reader *r, const struct spec_node *p, const char *key)
{
    const char *dot = strchr(key, '.');
    char hint[256];
    if (strcmp(key, "instance_count") == 0) {
        spec_fault(r, p, "conflict", "leave it out", "a scaling table is one of instance counts");
        return false;
    }
    if (dot != NULL && dot[1] != '\0' &&
        (strncmp(key, "hyperparameters.", 16) == 0 || strncmp(key, "environment.", 12) == 0)) {
        return true;
    }
    if (dot == NULL && spec_is_stage_key(key)) {
        return true;
    }
    spec_guess_stage_key(key, hint, sizeof hint);
    spec_fault(r, p, "unknown_key",
               dot != NULL ? "hyperparameters.NAME or environment.NAME"
                           : arena_printf(r->a, "%.150s, or hyperparameters.NAME", hint),
               "'%.64s' is no key of a stage", key);
    return false;
}

int spec_scales_with(struct spec_reader *r, const struct spec_node *p,
                     const char *ret[static SPEC_SCALES_MAX])
{
    int n = 0;
    if (!spec_is_list(r, p, SPEC_SCALES_MAX, "[hyperparameters.learning_rate]")) {
        return 0;
    }
    for (size_t i = 0; i < p->node->n; i++) {
        char key[24];
        const struct spec_node at = spec_item(p, i, key);
        const char *text = NULL;
        bool good = spec_text(r, &at, BRACES_VARS, 255, &text) && may_scale(r, &at, text);
        for (int k = 0; good && k < n; k++) {
            if (strcmp(ret[k], text) == 0) {
                spec_fault(r, &at, "duplicate", "leave it out", "'%.64s' is listed twice", text);
                good = false;
            }
        }
        if (good) {
            ret[n++] = text;
        }
    }
    return n;
}

void spec_scale_row(const struct spec_reader *r, const struct spec_row *row, const char *group,
                    struct spec_stage *s)
{
    s->group = group != NULL ? arena_strndup(r->a, group, strlen(group)) : NULL;
    s->scales_with_n = row->scales_with_n;
    memcpy(s->scales_with, row->scales_with, sizeof s->scales_with);
}
