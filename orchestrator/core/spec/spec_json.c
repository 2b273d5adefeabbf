/* The normalised form of a spec in the database. Reading checks types and bounds: a row that does
 * not fit gives ERR_INTERNAL. */
#include "core/failure/breaker.h"
#include "spec_stored.h"

#define SPEC_JSON_VERSION 1

static void put_i64(json_t *o, const char *key, int64_t v)
{
    (void)json_object_set_new(o, key, json_integer(v));
}

static json_t *change_out(const struct spec_change *c)
{
    json_t *o = json_object();
    put_i64(o, "next", c->next);
    put_i64(o, "volume_x100", c->volume_x100);
    put_i64(o, "volume_max_gb", c->volume_max_gb);
    put_i64(o, "runtime_x100", c->runtime_x100);
    put_i64(o, "runtime_max_s", c->runtime_max_s);
    return o;
}

static json_t *guard_out(const struct spec_guard *g)
{
    json_t *o = json_object();
    put_i64(o, "canary", g->canary);
    put_i64(o, "breaker_same", g->breaker_same);
    put_i64(o, "breaker_of", g->breaker_of);
    put_i64(o, "quarantine", g->quarantine);
    put_i64(o, "hang_silent_s", g->hang_silent_s);
    put_i64(o, "hang_standstill_s", g->hang_standstill_s);
    put_i64(o, "hang_start_s", g->hang_start_s);
    (void)json_object_set_new(o, "twin", json_false()); /* an earlier droverd asks for it */
    return o;
}

static json_t *retry_out(const struct spec_retry *rows)
{
    json_t *o = json_object();
    for (int c = 0; c < CAUSE_COUNT; c++) {
        if (rows[c].set) {
            json_t *row = json_object();
            put_i64(row, "times", rows[c].times);
            put_i64(row, "wait_from_s", rows[c].wait_from_s);
            put_i64(row, "wait_to_s", rows[c].wait_to_s);
            (void)json_object_set_new(row, "counts", json_boolean(rows[c].counts));
            if (rows[c].set_change) {
                (void)json_object_set_new(row, "change", change_out(&rows[c].change));
            }
            (void)json_object_set_new(o, cause_name((enum cause)c), row);
        }
    }
    return o;
}

static json_t *warm_out(const struct spec_warm *w)
{
    json_t *o = json_object();
    put_i64(o, "keep_alive_s", w->keep_alive_s);
    put_i64(o, "max_idle_cost_musd", w->max_idle_cost_musd);
    (void)json_object_set_new(o, "end_when_queue_empty", json_boolean(w->end_when_queue_empty));
    return o;
}

static json_t *stage_out(const struct spec_stage *s)
{
    json_t *o = json_object();
    spec_put_text(o, "name", s->name);
    (void)json_object_set_new(o, "needs", spec_texts_out(s->needs, s->needs_n));
    put_i64(o, "worker", s->worker);
    spec_put_text(o, "image", s->image);
    put_i64(o, "fan_out", s->fan_out);
    spec_put_text(o, "fan_out_from", s->fan_out_from);
    if (s->fan_out == FAN_OUT_COUNT) {
        put_i64(o, "fan_out_count", s->fan_out_count);
    }
    put_i64(o, "per_part", s->per_part);
    (void)json_object_set_new(o, "instance_type",
                              spec_texts_out(s->instance_type, s->instance_type_n));
    put_i64(o, "instance_count", s->instance_count);
    put_i64(o, "volume_gb", s->volume_gb);
    put_i64(o, "max_runtime_s", s->max_runtime_s);
    put_i64(o, "min_runtime_s", s->min_runtime_s);
    put_i64(o, "expect_s", s->expect_s);
    (void)json_object_set_new(o, "network_isolation", json_boolean(s->network_isolation));
    (void)json_object_set_new(o, "hyperparameters",
                              spec_pairs_out(s->hyperparameters, s->hyperparameters_n));
    (void)json_object_set_new(o, "environment", spec_pairs_out(s->environment, s->environment_n));
    (void)json_object_set_new(o, "command", spec_texts_out(s->command, s->command_n));
    put_i64(o, "verify", s->verify);
    spec_put_text(o, "verify_target", s->verify_target);
    put_i64(o, "verify_count", s->verify_count);
    spec_put_text(o, "output", s->output);
    spec_put_text(o, "done_if", s->done_if);
    put_i64(o, "done_if_kind", s->done_if_kind);
    put_i64(o, "allow_failed_ppm", s->allow_failed_ppm);
    put_i64(o, "budget_musd", s->budget_musd);
    put_i64(o, "per_task_musd", s->per_task_musd);
    (void)json_object_set_new(o, "retry", retry_out(s->retry));
    spec_put_text(o, "role", s->role);
    (void)json_object_set_new(o, "subnets", spec_texts_out(s->subnets, s->subnets_n));
    (void)json_object_set_new(o, "security_groups",
                              spec_texts_out(s->security_groups, s->security_groups_n));
    (void)json_object_set_new(o, "warm", warm_out(&s->warm));
    (void)json_object_set_new(o, "spot", json_boolean(s->spot));
    (void)json_object_set_new(o, "resumable", json_boolean(s->resumable));
    put_i64(o, "parts_limit", s->parts_limit);
    (void)json_object_set_new(o, "guard", guard_out(&s->guard));
    if (s->training != NULL) {
        (void)json_object_set_new(o, "training", spec_training_out(s));
    }
    if (s->endpoint != NULL) {
        (void)json_object_set_new(o, "endpoint", spec_endpoint_out(s->endpoint));
        spec_put_text(o, "volume_kms_key", s->volume_kms_key);
    }
    if (s->filesystem != NULL) {
        (void)json_object_set_new(o, "filesystem", spec_filesystem_out(s->filesystem));
        spec_put_text(o, "volume_kms_key", s->volume_kms_key);
    }
    if (s->group != NULL) {
        spec_put_text(o, "group", s->group);
        (void)json_object_set_new(o, "scales_with",
                                  spec_texts_out(s->scales_with, s->scales_with_n));
    }
    return o;
}

json_t *spec_to_json(const struct spec *s)
{
    json_t *o = json_object();
    put_i64(o, "spec_version", SPEC_JSON_VERSION);
    spec_put_text(o, "name", s->name);
    spec_put_text(o, "project", s->project);
    (void)json_object_set_new(o, "tags", spec_pairs_out(s->tags, s->tags_n));
    put_i64(o, "parts_limit", s->parts_limit);
    put_i64(o, "priority", s->priority);
    if (s->deadline_us != 0) {
        put_i64(o, "deadline_us", s->deadline_us);
    }
    json_t *instances = json_array();
    for (int i = 0; i < s->instances_n; i++) {
        json_t *row = json_array();
        (void)json_array_append_new(row, json_string(s->instances[i].instance_type));
        (void)json_array_append_new(row, json_integer(s->instances[i].n));
        (void)json_array_append_new(instances, row);
    }
    (void)json_object_set_new(o, "instances", instances);
    put_i64(o, "budget_musd", s->budget_musd);
    put_i64(o, "at_limit", s->at_limit);
    put_i64(o, "weight", s->weight);
    json_t *warn_at = json_array();
    for (int i = 0; i < s->warn_at_n; i++) {
        (void)json_array_append_new(warn_at, json_integer(s->warn_at_ppm[i]));
    }
    (void)json_object_set_new(o, "warn_at_ppm", warn_at);
    json_t *stages = json_array();
    for (int i = 0; i < s->stages_n; i++) {
        (void)json_array_append_new(stages, stage_out(s->stages[i]));
    }
    (void)json_object_set_new(o, "stages", stages);
    return o;
}

static void get_change(struct stored *r, const json_t *row, struct spec_retry *ret)
{
    const json_t *c = json_object_get(row, "change");
    if (c == NULL) {
        return;
    }
    ret->set_change = true;
    ret->change = (struct spec_change){
        .next = (enum spec_next)spec_get_i64(r, c, "next", NEXT_SAME, NEXT_AROUND),
        .volume_x100 = (int)spec_get_i64(r, c, "volume_x100", 0, SPEC_CHANGE_X100_MAX),
        .volume_max_gb = (int)spec_get_i64(r, c, "volume_max_gb", 0, VOLUME_GB_MAX),
        .runtime_x100 = (int)spec_get_i64(r, c, "runtime_x100", 0, SPEC_CHANGE_X100_MAX),
        .runtime_max_s = spec_get_i64(r, c, "runtime_max_s", 0, SPEC_RUNTIME_S_MAX)};
}

static void get_retry(struct stored *r, const json_t *o, struct spec_retry *rows)
{
    json_t *list = json_object_get(o, "retry");
    const char *name;
    json_t *row;
    if (!json_is_object(list)) {
        spec_stored_fail(r, "retry");
        return;
    }
    json_object_foreach(list, name, row)
    {
        enum cause c = cause_parse(name);
        if (c == CAUSE_COUNT) {
            spec_stored_fail(r, "retry");
            return;
        }
        rows[c] =
            (struct spec_retry){.set = true,
                                .times = (int)spec_get_i64(r, row, "times", -1, 1000000),
                                .wait_from_s = spec_get_i64(r, row, "wait_from_s", 0, INT32_MAX),
                                .wait_to_s = spec_get_i64(r, row, "wait_to_s", 0, INT32_MAX),
                                .counts = spec_get_bool(r, row, "counts")};
        get_change(r, row, &rows[c]);
    }
}

/* Specs stored before warm pools and spot existed have neither. */
static void get_market(struct stored *r, const json_t *o, struct spec_stage *s)
{
    const json_t *w = json_object_get(o, "warm");
    s->warm = (struct spec_warm){.max_idle_cost_musd = -1, .end_when_queue_empty = true};
    s->resumable = s->worker != WORKER_NONE;
    if (w != NULL) {
        s->warm.keep_alive_s =
            spec_get_i64(r, w, "keep_alive_s", SPEC_KEEP_ALIVE_AUTO, SPEC_KEEP_ALIVE_MAX_S);
        s->warm.max_idle_cost_musd = spec_get_i64(r, w, "max_idle_cost_musd", -1, INT64_MAX);
        s->warm.end_when_queue_empty = spec_get_bool(r, w, "end_when_queue_empty");
        s->spot = spec_get_bool(r, o, "spot");
        s->resumable = spec_get_bool(r, o, "resumable");
    }
}

/* Specs stored before guards existed have none. */
static void get_guard(struct stored *r, const json_t *o, struct spec_stage *s)
{
    const json_t *g = json_object_get(o, "guard");
    s->parts_limit = -1;
    if (g == NULL) {
        return;
    }
    s->parts_limit = spec_get_i64(r, o, "parts_limit", -1, INT64_MAX);
    s->guard = (struct spec_guard){
        .canary = (int)spec_get_i64(r, g, "canary", 0, SPEC_CANARY_MAX),
        .breaker_same = (int)spec_get_i64(r, g, "breaker_same", 0, BREAKER_OF_MAX),
        .breaker_of = (int)spec_get_i64(r, g, "breaker_of", 0, BREAKER_OF_MAX),
        .quarantine = (int)spec_get_i64(r, g, "quarantine", 0, SPEC_QUARANTINE_MAX),
        .hang_silent_s = spec_get_i64(r, g, "hang_silent_s", 0, SPEC_RUNTIME_S_MAX),
        .hang_standstill_s = spec_get_i64(r, g, "hang_standstill_s", 0, SPEC_RUNTIME_S_MAX),
        .hang_start_s = spec_get_i64(r, g, "hang_start_s", 0, SPEC_RUNTIME_S_MAX)};
}

static void get_stage_lists(struct stored *r, const json_t *o, struct spec_stage *s)
{
    s->needs_n = spec_get_texts(r, o, "needs", s->needs, ARRAY_LEN(s->needs));
    s->instance_type_n =
        spec_get_texts(r, o, "instance_type", s->instance_type, ARRAY_LEN(s->instance_type));
    s->command_n = spec_get_texts(r, o, "command", s->command, ARRAY_LEN(s->command));
    s->subnets_n = spec_get_texts(r, o, "subnets", s->subnets, ARRAY_LEN(s->subnets));
    s->security_groups_n =
        spec_get_texts(r, o, "security_groups", s->security_groups, ARRAY_LEN(s->security_groups));
    s->hyperparameters_n =
        spec_get_pairs(r, o, "hyperparameters", s->hyperparameters, ARRAY_LEN(s->hyperparameters));
    s->environment_n =
        spec_get_pairs(r, o, "environment", s->environment, ARRAY_LEN(s->environment));
    get_retry(r, o, s->retry);
    if (s->instance_type_n == 0) {
        spec_stored_fail(r, "instance_type");
    }
}

static void get_stage(struct stored *r, const json_t *o, struct spec_stage *s)
{
    s->name = spec_need_text(r, o, "name");
    s->worker = (enum spec_worker)spec_get_i64(r, o, "worker", WORKER_NONE, WORKER_COPY);
    s->image = spec_need_text(r, o, "image");
    s->fan_out = (enum spec_fan_out)spec_get_i64(r, o, "fan_out", FAN_OUT_NONE, FAN_OUT_COUNT);
    s->fan_out_from = spec_get_text(r, o, "fan_out_from");
    if (s->fan_out == FAN_OUT_COUNT) {
        s->fan_out_count = (int)spec_get_i64(r, o, "fan_out_count", 1, SPEC_COUNT_MAX);
    }
    s->per_part = (int)spec_get_i64(r, o, "per_part", 1, 1000000);
    s->instance_count = (int)spec_get_i64(r, o, "instance_count", 1, 100000);
    s->volume_gb = (int)spec_get_i64(r, o, "volume_gb", 1, VOLUME_GB_MAX);
    s->max_runtime_s = spec_get_i64(r, o, "max_runtime_s", 1, INT32_MAX);
    s->min_runtime_s = spec_get_i64(r, o, "min_runtime_s", 1, INT32_MAX);
    s->expect_s = spec_get_i64(r, o, "expect_s", 0, INT32_MAX);
    s->network_isolation = spec_get_bool(r, o, "network_isolation");
    s->verify = (enum spec_verify)spec_get_i64(r, o, "verify", VERIFY_MANIFEST, VERIFY_NONE);
    s->verify_target = spec_get_text(r, o, "verify_target");
    s->verify_count = spec_get_i64(r, o, "verify_count", 0, INT32_MAX);
    s->output = spec_get_text(r, o, "output");
    s->done_if = spec_get_text(r, o, "done_if");
    s->done_if_kind =
        (enum spec_verify)spec_get_i64(r, o, "done_if_kind", VERIFY_MANIFEST, VERIFY_NONE);
    s->allow_failed_ppm = spec_get_i64(r, o, "allow_failed_ppm", 0, 1000000);
    s->budget_musd = spec_get_i64(r, o, "budget_musd", -1, INT64_MAX);
    s->per_task_musd = spec_get_i64(r, o, "per_task_musd", -1, INT64_MAX);
    s->role = spec_need_text(r, o, "role");
    get_market(r, o, s);
    get_guard(r, o, s);
    spec_training_in(r, o, s);
    spec_endpoint_in(r, o, s);
    spec_filesystem_in(r, o, s);
    get_stage_lists(r, o, s);
    s->group = spec_get_text(r, o, "group"); /* of a row of a matrix, since there are any */
    if (s->group != NULL) {
        s->scales_with_n =
            spec_get_texts(r, o, "scales_with", s->scales_with, ARRAY_LEN(s->scales_with));
    }
}

static void get_instances(struct stored *r, const json_t *o, struct spec *s)
{
    const json_t *list = json_object_get(o, "instances");
    if (!json_is_array(list) || json_array_size(list) > ARRAY_LEN(s->instances)) {
        spec_stored_fail(r, "instances");
        return;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *row = json_array_get(list, i);
        const json_t *n = json_array_get(row, 1);
        if (!json_is_integer(n) || json_integer_value(n) < 0) {
            spec_stored_fail(r, "instances");
        }
        s->instances[s->instances_n++] = (struct spec_limit){
            spec_text_of(r, json_array_get(row, 0), "instances"), json_integer_value(n)};
    }
}

/* Specs stored before weight and warnings existed have an equal share and no warning. */
static void get_shares(struct stored *r, const json_t *o, struct spec *s)
{
    const json_t *list = json_object_get(o, "warn_at_ppm");
    s->weight = SPEC_WEIGHT_DEFAULT;
    if (list == NULL) {
        return;
    }
    s->weight = spec_get_i64(r, o, "weight", 1, SPEC_WEIGHT_MAX);
    if (!json_is_array(list) || json_array_size(list) > WARNS_MAX) {
        spec_stored_fail(r, "warn_at_ppm");
        return;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *n = json_array_get(list, i);
        int64_t ppm = json_is_integer(n) ? json_integer_value(n) : -1;
        if (ppm <= (i > 0 ? s->warn_at_ppm[i - 1] : 0) || ppm > 1000000) {
            spec_stored_fail(r, "warn_at_ppm");
            return;
        }
        s->warn_at_ppm[s->warn_at_n++] = ppm;
    }
}

bool spec_from_json(const json_t *v, struct arena *a, struct spec **ret, struct err *err)
{
    struct stored r = {.a = a, .err = err};
    const json_t *stages = json_object_get(v, "stages");
    if (!json_is_array(stages) || json_array_size(stages) > SPEC_STAGES_MAX) {
        return err_set(err, ERR_INTERNAL, "stored spec: 'stages' does not fit");
    }
    struct spec *s = arena_alloc(a, sizeof *s);
    (void)spec_get_i64(&r, v, "spec_version", SPEC_JSON_VERSION, SPEC_JSON_VERSION);
    s->name = spec_need_text(&r, v, "name");
    s->project = spec_need_text(&r, v, "project");
    s->tags_n = spec_get_pairs(&r, v, "tags", s->tags, ARRAY_LEN(s->tags));
    s->parts_limit = spec_get_i64(&r, v, "parts_limit", -1, INT64_MAX);
    s->priority = (int)spec_get_i64(&r, v, "priority", 0, 100);
    if (json_object_get(v, "deadline_us") != NULL) {
        s->deadline_us = spec_get_i64(&r, v, "deadline_us", 0, INT64_MAX);
    }
    s->budget_musd = spec_get_i64(&r, v, "budget_musd", -1, INT64_MAX);
    s->at_limit = (enum at_limit)spec_get_i64(&r, v, "at_limit", AT_LIMIT_DRAIN, AT_LIMIT_HOLD);
    get_instances(&r, v, s);
    get_shares(&r, v, s);
    for (size_t i = 0; i < json_array_size(stages) && !r.bad; i++) {
        struct spec_stage *st = arena_alloc(a, sizeof *st);
        get_stage(&r, json_array_get(stages, i), st);
        s->stages[s->stages_n++] = st;
    }
    if (r.bad) {
        return false;
    }
    *ret = s;
    return true;
}
