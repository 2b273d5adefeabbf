/* The stored form of what only training stages say: see spec_json.c. Texts that are not said are
 * absent. */
#include "spec_stored.h"

static json_t *flags_out(const bool *flags, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        if (flags[i]) {
            (void)json_array_append_new(list, json_integer(i));
        }
    }
    return list;
}

static json_t *channel_out(const struct spec_channel *c)
{
    json_t *o = json_object();
    spec_put_text(o, "name", c->name);
    spec_put_text(o, "from", c->from);
    spec_put_text(o, "type", c->type);
    spec_put_text(o, "spread", c->spread);
    spec_put_text(o, "mode", c->mode);
    spec_put_text(o, "content_type", c->content_type);
    spec_put_text(o, "compression", c->compression);
    spec_put_text(o, "record_wrapper", c->record_wrapper);
    (void)json_object_set_new(o, "attributes", spec_texts_out(c->attributes, c->attributes_n));
    (void)json_object_set_new(o, "shuffle_seed", json_integer(c->shuffle_seed));
    spec_put_text(o, "file_system", c->file_system);
    spec_put_text(o, "lustre_stage", c->lustre_stage);
    spec_put_text(o, "file_system_type", c->file_system_type);
    spec_put_text(o, "directory", c->directory);
    spec_put_text(o, "access", c->access);
    return o;
}

static json_t *metrics_out(const struct spec_training *t)
{
    json_t *list = json_array();
    for (int i = 0; i < t->metrics_n; i++) {
        (void)json_array_append_new(list,
                                    json_pack("[s, s]", t->metrics[i].name, t->metrics[i].regex));
    }
    return list;
}

static void lists_out(json_t *o, const struct spec_stage *s, const struct spec_training *t)
{
    json_t *channels = json_array();
    json_t *distribution = json_array();
    for (int i = 0; i < t->channels_n; i++) {
        (void)json_array_append_new(channels, channel_out(&t->channels[i]));
    }
    for (int i = 0; i < DISTRIBUTION_COUNT; i++) {
        (void)json_array_append_new(distribution, t->distribution[i] == NULL
                                                      ? json_null()
                                                      : json_string(t->distribution[i]));
    }
    (void)json_object_set_new(o, "channels", channels);
    (void)json_object_set_new(o, "distribution", distribution);
    (void)json_object_set_new(o, "metrics", metrics_out(t));
    (void)json_object_set_new(o, "quoted", flags_out(t->quoted, s->hyperparameters_n));
    (void)json_object_set_new(o, "entrypoint", spec_texts_out(t->entrypoint, t->entrypoint_n));
    (void)json_object_set_new(o, "tags", spec_pairs_out(t->tags, t->tags_n));
}

/* Switches and texts by name: one table for both ways. */
#define TRAINING_BOOLS(X)                                                                          \
    X(script)                                                                                      \
    X(framework)                                                                                   \
    X(metrics_series)                                                                              \
    X(ddp_rewrite)                                                                                 \
    X(compiler)                                                                                    \
    X(compiler_debug) X(debugger) X(profiler) X(infra_check) X(remote_debug) X(uncompressed)
#define TRAINING_TEXTS(X)                                                                          \
    X(source_dir)                                                                                  \
    X(source_sha256)                                                                               \
    X(entry_point)                                                                                 \
    X(dp_options)                                                                                  \
    X(mpi_options)                                                                                 \
    X(mp_parameters)                                                                               \
    X(input_mode)                                                                                  \
    X(checkpoint)                                                                                  \
    X(checkpoint_path)                                                                             \
    X(output_kms_key)                                                                              \
    X(training_plan)                                                                               \
    X(image_access)                                                                                \
    X(image_credentials)                                                                           \
    X(tensorboard)                                                                                 \
    X(tensorboard_path) X(experiment) X(experiment_trial) X(experiment_display) X(experiment_run)

static json_t *gate_out(const struct spec_gate *g)
{
    json_t *o = json_object();
    spec_put_text(o, "metric", g->metric);
    if (g->has_below) {
        (void)json_object_set_new(o, "below", json_real(g->below));
    }
    if (g->has_above) {
        (void)json_object_set_new(o, "above", json_real(g->above));
    }
    return o;
}

static bool get_bound(struct stored *r, const json_t *o, const char *key, double *ret)
{
    const json_t *v = json_object_get(o, key);
    if (v != NULL && !json_is_number(v)) {
        spec_stored_fail(r, key);
    }
    *ret = json_number_value(v);
    return v != NULL;
}

static void get_gate(struct stored *r, const json_t *o, struct spec_gate *g)
{
    if (o != NULL) { /* stored before there was any, or none */
        g->metric = spec_need_text(r, o, "metric");
        g->has_below = get_bound(r, o, "below", &g->below);
        g->has_above = get_bound(r, o, "above", &g->above);
    }
}

static void pairs_out(json_t *o, const char *key, const struct spec_pair *p, int n)
{
    if (n > 0) {
        (void)json_object_set_new(o, key, spec_pairs_out(p, n));
    }
}

static json_t *hook_out(const struct spec_hook *h)
{
    json_t *o = json_object();
    json_t *collections = json_array();
    json_t *rules = json_array();
    for (int i = 0; i < h->collections_n; i++) {
        json_t *c = json_object();
        spec_put_text(c, "name", h->collections[i].name);
        pairs_out(c, "parameters", h->collections[i].parameters, h->collections[i].parameters_n);
        (void)json_array_append_new(collections, c);
    }
    for (int i = 0; i < h->rules_n; i++) {
        json_t *rule = json_object();
        spec_put_text(rule, "name", h->rules[i].name);
        spec_put_text(rule, "image", h->rules[i].image);
        spec_put_text(rule, "instance_type", h->rules[i].instance_type);
        spec_put_text(rule, "to", h->rules[i].to);
        spec_put_text(rule, "path", h->rules[i].path);
        (void)json_object_set_new(rule, "volume_gb", json_integer(h->rules[i].volume_gb));
        pairs_out(rule, "parameters", h->rules[i].parameters, h->rules[i].parameters_n);
        (void)json_array_append_new(rules, rule);
    }
    spec_put_text(o, "to", h->to);
    spec_put_text(o, "path", h->path);
    (void)json_object_set_new(o, "interval_ms", json_integer(h->interval_ms));
    pairs_out(o, "parameters", h->parameters, h->parameters_n);
    (void)json_object_set_new(o, "collections", collections);
    (void)json_object_set_new(o, "rules", rules);
    return o;
}

json_t *spec_training_out(const struct spec_stage *s)
{
    const struct spec_training *t = s->training;
    json_t *o = json_object();
#define X(field) (void)json_object_set_new(o, #field, json_boolean(t->field));
    TRAINING_BOOLS(X)
#undef X
#define X(field) spec_put_text(o, #field, t->field);
    TRAINING_TEXTS(X)
#undef X
    (void)json_object_set_new(o, "log_level", json_integer(t->log_level));
    (void)json_object_set_new(o, "mpi_processes", json_integer(t->mpi_processes));
    (void)json_object_set_new(o, "retry_strategy", json_integer(t->retry_strategy));
    if (t->max_pending_s > 0) {
        (void)json_object_set_new(o, "max_pending_s", json_integer(t->max_pending_s));
    }
    if (t->debugger) {
        (void)json_object_set_new(o, "debug", hook_out(&t->debug));
    }
    if (t->profiler) {
        (void)json_object_set_new(o, "profile", hook_out(&t->profile));
    }
    (void)json_object_set_new(o, "encrypt_traffic", json_boolean(s->encrypt_traffic));
    (void)json_object_set_new(o, "session_tags", json_boolean(s->session_tags));
    spec_put_text(o, "volume_kms_key", s->volume_kms_key);
    lists_out(o, s, t);
    if (s->gate.metric != NULL) {
        (void)json_object_set_new(o, "gate", gate_out(&s->gate));
    }
    return o;
}

static void get_channel(struct stored *r, const json_t *o, struct spec_channel *c)
{
    c->name = spec_need_text(r, o, "name");
    c->from = spec_get_text(r, o, "from");
    c->type = spec_get_text(r, o, "type");
    c->spread = spec_get_text(r, o, "spread");
    c->mode = spec_get_text(r, o, "mode");
    c->content_type = spec_get_text(r, o, "content_type");
    c->compression = spec_get_text(r, o, "compression");
    c->record_wrapper = spec_get_text(r, o, "record_wrapper");
    c->attributes_n = spec_get_texts(r, o, "attributes", c->attributes, SPEC_ATTRIBUTES_MAX);
    c->shuffle_seed = spec_get_i64(r, o, "shuffle_seed", -1, INT64_MAX);
    c->file_system = spec_get_text(r, o, "file_system");
    c->lustre_stage = spec_get_text(r, o, "lustre_stage");
    c->file_system_type = spec_get_text(r, o, "file_system_type");
    c->directory = spec_get_text(r, o, "directory");
    c->access = spec_get_text(r, o, "access");
}

static const json_t *get_list(struct stored *r, const json_t *o, const char *key, size_t max)
{
    const json_t *list = json_object_get(o, key);
    if (!json_is_array(list) || json_array_size(list) > max) {
        spec_stored_fail(r, key);
        return NULL;
    }
    return list;
}

static void get_lists(struct stored *r, const json_t *o, struct spec_training *t)
{
    struct spec_pair metrics[SPEC_METRICS_MAX] = {{NULL, NULL}};
    size_t i;
    const json_t *v;
    const json_t *list = get_list(r, o, "channels", SPEC_CHANNELS_MAX);
    json_array_foreach(list, i, v)
    {
        get_channel(r, v, &t->channels[t->channels_n++]);
    }
    list = get_list(r, o, "distribution", DISTRIBUTION_COUNT);
    json_array_foreach(list, i, v)
    {
        t->distribution[i] = json_is_null(v) ? NULL : spec_text_of(r, v, "distribution");
    }
    list = get_list(r, o, "quoted", SPEC_PAIRS_MAX);
    json_array_foreach(list, i, v)
    {
        int64_t at = json_is_integer(v) ? json_integer_value(v) : -1;
        if (at < 0 || at >= SPEC_PAIRS_MAX) {
            spec_stored_fail(r, "quoted");
            return;
        }
        t->quoted[at] = true;
    }
    t->metrics_n = spec_get_pairs(r, o, "metrics", metrics, SPEC_METRICS_MAX);
    for (int k = 0; k < t->metrics_n; k++) {
        t->metrics[k] = (struct spec_metric){metrics[k].key, metrics[k].value};
    }
    t->entrypoint_n = spec_get_texts(r, o, "entrypoint", t->entrypoint, ARRAY_LEN(t->entrypoint));
    t->tags_n = spec_get_pairs(r, o, "tags", t->tags, SPEC_STAGE_TAGS_MAX);
}

static void get_parameters(struct stored *r, const json_t *o, size_t max,
                           const struct spec_pair **ret, int *ret_n)
{
    if (json_object_get(o, "parameters") != NULL) { /* none is not stored */
        struct spec_pair *pairs = arena_alloc(r->a, max * sizeof *pairs);
        *ret_n = spec_get_pairs(r, o, "parameters", pairs, max);
        *ret = pairs;
    }
}

static void get_rules(struct stored *r, const json_t *list, struct spec_hook *h)
{
    struct spec_rule *rules = arena_alloc(r->a, SPEC_HOOK_MAX * sizeof *rules);
    size_t i;
    const json_t *v;
    h->rules = rules;
    json_array_foreach(list, i, v)
    {
        struct spec_rule *rule = &rules[h->rules_n++];
        rule->name = spec_need_text(r, v, "name");
        rule->image = spec_need_text(r, v, "image");
        rule->instance_type = spec_get_text(r, v, "instance_type");
        rule->to = spec_get_text(r, v, "to");
        rule->path = spec_get_text(r, v, "path");
        rule->volume_gb = (int)spec_get_i64(r, v, "volume_gb", 0, VOLUME_GB_MAX);
        get_parameters(r, v, SPEC_RULE_PARAMETERS, &rule->parameters, &rule->parameters_n);
    }
}

/* Stored before there was more than a switch: nothing. */
static void get_hook(struct stored *r, const json_t *o, const char *key, struct spec_hook *h)
{
    const json_t *hook = json_object_get(o, key);
    size_t i;
    const json_t *v;
    if (hook == NULL) {
        return;
    }
    h->to = spec_get_text(r, hook, "to");
    h->path = spec_get_text(r, hook, "path");
    h->interval_ms = (int)spec_get_i64(r, hook, "interval_ms", 0, 60000);
    get_parameters(r, hook, SPEC_HOOK_MAX, &h->parameters, &h->parameters_n);
    const json_t *list = get_list(r, hook, "collections", SPEC_HOOK_MAX);
    struct spec_collection *collections = arena_alloc(r->a, SPEC_HOOK_MAX * sizeof *collections);
    h->collections = collections;
    json_array_foreach(list, i, v)
    {
        struct spec_collection *c = &collections[h->collections_n++];
        c->name = spec_need_text(r, v, "name");
        get_parameters(r, v, SPEC_HOOK_MAX, &c->parameters, &c->parameters_n);
    }
    get_rules(r, get_list(r, hook, "rules", SPEC_HOOK_MAX), h);
}

void spec_training_in(struct stored *r, const json_t *stage, struct spec_stage *s)
{
    const json_t *o = json_object_get(stage, "training");
    if (o == NULL) {
        return; /* stored before there was any */
    }
    if (!json_is_object(o)) {
        spec_stored_fail(r, "training");
        return;
    }
    struct spec_training *t = arena_alloc(r->a, sizeof *t);
    s->training = t;
#define X(field) t->field = spec_get_bool(r, o, #field);
    TRAINING_BOOLS(X)
#undef X
#define X(field) t->field = spec_get_text(r, o, #field);
    TRAINING_TEXTS(X)
#undef X
    t->log_level = (int)spec_get_i64(r, o, "log_level", 0, 50);
    t->mpi_processes = (int)spec_get_i64(r, o, "mpi_processes", 0, 1024);
    t->retry_strategy = (int)spec_get_i64(r, o, "retry_strategy", 0, SPEC_RETRY_STRATEGY_MAX);
    if (json_object_get(o, "max_pending_s") != NULL) {
        t->max_pending_s =
            spec_get_i64(r, o, "max_pending_s", SPEC_PENDING_S_MIN, SPEC_PENDING_S_MAX);
    }
    s->encrypt_traffic = spec_get_bool(r, o, "encrypt_traffic");
    s->session_tags = spec_get_bool(r, o, "session_tags");
    s->volume_kms_key = spec_get_text(r, o, "volume_kms_key");
    get_hook(r, o, "debug", &t->debug);
    get_hook(r, o, "profile", &t->profile);
    get_lists(r, o, t);
    get_gate(r, json_object_get(o, "gate"), &s->gate);
}
