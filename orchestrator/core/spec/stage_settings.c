/* See stage_settings.h. */
#include "stage_settings.h"
#include "spec.h"
#include <stdlib.h>

#define HIDDEN "(hidden)" /* what is shown of an environment, whose values may be secrets */

struct walk {
    struct arena *a;
    struct stage_settings *to;
};

/* Keys of a stage and of its `training` that change no result. */
static bool left_out(const char *key)
{
    static const char *const keys[] = {"name",
                                       "needs",
                                       "group",
                                       "scales_with",
                                       "output",
                                       "verify",
                                       "verify_target",
                                       "verify_count",
                                       "done_if",
                                       "done_if_kind",
                                       "allow_failed_ppm",
                                       "budget_musd",
                                       "per_task_musd",
                                       "retry",
                                       "role",
                                       "warm",
                                       "guard",
                                       "parts_limit",
                                       "expect_s",
                                       "max_runtime_s",
                                       "min_runtime_s",
                                       "resumable",
                                       "metrics",
                                       "metrics_series",
                                       "quoted",
                                       "tags",
                                       "gate",
                                       "checkpoint",
                                       "checkpoint_path",
                                       "retry_strategy",
                                       "log_level",
                                       "session_tags",
                                       "script",
                                       "fan_out",
                                       "fan_out_from",
                                       "fan_out_count",
                                       "per_part",
                                       "training_plan",
                                       "output_kms_key",
                                       "volume_kms_key",
                                       "max_pending_s",
                                       "debug",
                                       "profile",
                                       "tensorboard",
                                       "tensorboard_path",
                                       "experiment",
                                       "experiment_trial",
                                       "experiment_display",
                                       "experiment_run",
                                       "image_access",
                                       "image_credentials"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (strcmp(key, keys[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void add(struct walk *w, const char *key, const char *value)
{
    if (w->to->n < STAGE_SETTINGS_MAX) {
        w->to->at[w->to->n++] = (struct stage_setting){key, value};
    }
}

static const char *scalar_text(struct walk *w, const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_STRING:
        return json_string_value(v);
    case JSON_INTEGER:
        return arena_printf(w->a, "%lld", (long long)json_integer_value(v));
    case JSON_REAL:
        return arena_printf(w->a, "%.9g", json_real_value(v));
    case JSON_TRUE:
        return "on";
    case JSON_FALSE:
        return "off";
    case JSON_NULL:
    case JSON_OBJECT:
    case JSON_ARRAY:
        break;
    }
    return "none";
}

static void add_list(struct walk *w, const char *key, const json_t *list)
{
    AUTO_BUF struct buf b = BUF_INIT(1 << 20);
    size_t i;
    const json_t *v;
    json_array_foreach(list, i, v)
    {
        buf_addf(&b, "%s%s", i > 0 ? ", " : "", scalar_text(w, v));
    }
    if (b.n > 0) {
        add(w, key, arena_strndup(w->a, b.p, b.n));
    }
}

static void add_pairs(struct walk *w, const char *key, const json_t *pairs)
{
    size_t i;
    const json_t *v;
    json_array_foreach(pairs, i, v)
    {
        const char *name = json_string_value(json_array_get(v, 0));
        const char *value = json_string_value(json_array_get(v, 1));
        if (name != NULL && value != NULL) {
            add(w, arena_printf(w->a, "%s.%s", key, name), value);
        }
    }
}

static void add_distribution(struct walk *w, const json_t *list)
{
    static const char *const names[DISTRIBUTION_COUNT] = {
        "data_parallel", "model_parallel",  "mpi", "pytorchddp", "torch",
        "pytorchxla",    "parameter_server"};
    size_t i;
    const json_t *v;
    json_array_foreach(list, i, v)
    {
        if (i < ARRAY_LEN(names) && !json_is_null(v)) {
            add(w, arena_printf(w->a, "distribution.%s", names[i]), scalar_text(w, v));
        }
    }
}

static void add_channels(struct walk *w, const json_t *list)
{
    size_t i;
    const json_t *channel, *v;
    const char *key;
    json_array_foreach(list, i, channel)
    {
        const char *name = json_string_value(json_object_get(channel, "name"));
        json_object_foreach((json_t *)(uintptr_t)channel, key, v)
        {
            if (name != NULL && strcmp(key, "name") != 0) {
                char *full = arena_printf(w->a, "input.%s.%s", name, key);
                if (json_is_array(v)) {
                    add_list(w, full, v);
                } else {
                    add(w, full, scalar_text(w, v));
                }
            }
        }
    }
}

static void add_keys(struct walk *w, const json_t *o)
{
    const char *key;
    const json_t *v;
    json_object_foreach((json_t *)(uintptr_t)o, key, v)
    {
        if (left_out(key)) {
            continue;
        }
        if (strcmp(key, "training") == 0) {
            add_keys(w, v);
        } else if (strcmp(key, "hyperparameters") == 0 || strcmp(key, "environment") == 0) {
            add_pairs(w, key, v);
        } else if (strcmp(key, "distribution") == 0) {
            add_distribution(w, v);
        } else if (strcmp(key, "channels") == 0) {
            add_channels(w, v);
        } else if (json_is_array(v)) {
            add_list(w, key, v);
        } else {
            add(w, key, scalar_text(w, v));
        }
    }
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct stage_setting *)a)->key, ((const struct stage_setting *)b)->key);
}

void stage_settings_read(const json_t *stage, struct arena *a, struct stage_settings *ret)
{
    struct walk w = {a, ret};
    ret->n = 0;
    add_keys(&w, stage);
    qsort(ret->at, (size_t)ret->n, sizeof ret->at[0], by_key);
}

static const char *shown(const char *key, const char *value)
{
    return value != NULL && strncmp(key, "environment.", 12) == 0 ? HIDDEN : value;
}

int stage_settings_differ(const struct stage_settings *a, const struct stage_settings *b,
                          struct stage_difference ret[static 2 * STAGE_SETTINGS_MAX],
                          int *ret_equal)
{
    int n = 0, i = 0, k = 0;
    *ret_equal = 0;
    while (i < a->n || k < b->n) {
        int order = i == a->n ? 1 : k == b->n ? -1 : strcmp(a->at[i].key, b->at[k].key);
        const char *key = order <= 0 ? a->at[i].key : b->at[k].key;
        const char *va = order <= 0 ? a->at[i++].value : NULL;
        const char *vb = order >= 0 ? b->at[k++].value : NULL;
        if (va != NULL && vb != NULL && strcmp(va, vb) == 0) {
            (*ret_equal)++;
        } else {
            ret[n++] = (struct stage_difference){key, shown(key, va), shown(key, vb)};
        }
    }
    return n;
}
