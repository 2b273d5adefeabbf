/* One stage of a campaign file. */
#include "common/secret_shape.h"
#include "core/catalog/catalog.h"
#include "spec_read.h"
#include "spec_worker.h"
#include "worker_protocol.h"
#include <ctype.h>
#include <stdio.h>

static const struct spec_key stage_keys[] = {
    {"name", KEY_OPEN},
    {"kind", KEY_OPEN},
    {"needs", KEY_OPEN},
    {"worker", KEY_OPEN},
    {"image", KEY_OPEN},
    {"command", KEY_OPEN},
    {"fan_out", KEY_OPEN},
    {"instance_type", KEY_OPEN},
    {"instance_count", KEY_OPEN},
    {"volume_gb", KEY_OPEN},
    {"max_runtime", KEY_OPEN},
    {"min_runtime", KEY_OPEN},
    {"expect", KEY_OPEN},
    {"vpc", KEY_OPEN},
    {"role", KEY_OPEN},
    {"network_isolation", KEY_OPEN},
    {"hyperparameters", KEY_OPEN},
    {"environment", KEY_OPEN},
    {"output", KEY_OPEN},
    {"verify", KEY_OPEN},
    {"done_if", KEY_OPEN},
    {"allow_failed", KEY_OPEN},
    {"retry", KEY_OPEN},
    {"limits", KEY_OPEN},
    {"canary", KEY_OPEN},
    {"breaker", KEY_OPEN},
    {"quarantine", KEY_OPEN},
    {"hang", KEY_OPEN},
    {"twin", KEY_OPEN},
    {"extends", KEY_OPEN},
    {"from", KEY_OPEN},
    {"to", KEY_OPEN},
    {"auth", KEY_OPEN},
    {"framework", KEY_OPEN},
    {"source_dir", KEY_OPEN},
    {"entry_point", KEY_OPEN},
    {"distribution", KEY_OPEN},
    {"compiler", KEY_OPEN},
    {"metrics", KEY_OPEN},
    {"matrix", KEY_OPEN},
    {"gate", KEY_OPEN},
    {"input", KEY_OPEN},
    {"path_prefix", KEY_OPEN},
    {"checkpoint", KEY_OPEN},
    {"resumable", KEY_OPEN},
    {"spot", KEY_OPEN},
    {"retry_strategy", KEY_OPEN},
    {"warm_pool", KEY_OPEN},
    {"encrypt_traffic", KEY_OPEN},
    {"volume_kms_key", KEY_OPEN},
    {"output_kms_key", KEY_OPEN},
    {"size_gb", KEY_LATER},
    {"import", KEY_LATER},
    {"export", KEY_LATER},
    {"ttl", KEY_LATER},
    {"delete", KEY_LATER},
    {"idle", KEY_LATER},
    {"model", KEY_LATER},
    {"smoke_test", KEY_LATER},
    {"log_level", KEY_OPEN},
    {"input_mode", KEY_OPEN},
    {"debugger", KEY_OPEN},
    {"profiler", KEY_OPEN},
    {"infra_check", KEY_OPEN},
    {"remote_debug", KEY_OPEN},
    {"session_tags", KEY_OPEN},
    {"metrics_series", KEY_OPEN},
    {"training_plan", KEY_OPEN},
    {"output_compression", KEY_OPEN},
    {"entrypoint", KEY_OPEN},
    {"tags", KEY_OPEN},
    {"instance_groups", KEY_LATER},
};

bool spec_is_stage_key(const char *s)
{
    for (size_t i = 0; i < ARRAY_LEN(stage_keys); i++) {
        if (strcmp(stage_keys[i].name, s) == 0) {
            return true;
        }
    }
    return false;
}

void spec_guess_stage_key(const char *word, char *out, size_t out_n)
{
    const char *names[ARRAY_LEN(stage_keys)];
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(stage_keys); i++) {
        if (stage_keys[i].status == KEY_OPEN) {
            names[n++] = stage_keys[i].name;
        }
    }
    spec_guess(word, names, n, out, out_n);
}

bool spec_stage_name_ok(const char *s)
{
    size_t n = strlen(s);
    if (n == 0 || n > SPEC_STAGE_NAME_MAX || !islower((unsigned char)s[0]) || s[n - 1] == '-') {
        return false;
    }
    return s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

static void read_name(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node at;
    s->name = "";
    if (!spec_child(r, p, "name", true, &at) || !spec_text(r, &at, BRACES_VARS, 256, &s->name)) {
        return;
    }
    if (!spec_stage_name_ok(s->name)) {
        spec_fault(r, &at, "pattern",
                   "a lower-case letter, then lower-case letters, digits and hyphens, 32 at most",
                   "'%.64s' cannot name a stage", s->name);
    }
}

static void read_needs(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node at;
    if (spec_child(r, p, "needs", false, &at)) {
        (void)spec_texts(r, &at, BRACES_VARS, SPEC_STAGES_MAX, 64, s->needs, &s->needs_n);
    }
}

static bool is_word_of(const struct yaml_node *node, const char *const *words)
{
    for (; node->kind == YAML_STRING && *words != NULL; words++) {
        if (strcmp(node->text, *words) == 0) {
            return true;
        }
    }
    return false;
}

/* What the stage runs: drover-worker or a user's image. False: a kind of a later version, or
 * nothing to extend, with its fault added. */
static bool read_kind(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    static const char *const kinds[] = {"jobs"};
    static const char *const kinds_later[] = {"lustre", "endpoint", NULL};
    static const char *const workers[] = {"download", "index", "copy"};
    static const char *const workers_later[] = {"train-sample", NULL};
    struct spec_node at;
    int i;
    if (spec_child(r, p, "kind", false, &at) &&
        !spec_choice(r, &at, kinds, ARRAY_LEN(kinds), kinds_later, &i) &&
        is_word_of(at.node, kinds_later)) {
        return false;
    }
    if (spec_child(r, p, "worker", false, &at)) {
        bool good = spec_choice(r, &at, workers, ARRAY_LEN(workers), workers_later, &i);
        if (!good && is_word_of(at.node, workers_later)) {
            return false;
        }
        /* a word mistyped hides no fault of the rest */
        s->worker = good ? (enum spec_worker)(i + 1) : WORKER_DOWNLOAD;
    }
    return yaml_get(p->node, "extends") == NULL; /* of a stage that is not there */
}

/* registry/repository[:tag][@sha256:digest] */
static bool image_ok(const char *s)
{
    size_t n = strlen(s);
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)s[i]) && strchr("._-/:@", s[i]) == NULL) {
            return false;
        }
    }
    const char *digest = strchr(s, '@');
    if (digest != NULL && (strncmp(digest, "@sha256:", 8) != 0 || strlen(digest + 8) != 64 ||
                           digest[8 + strspn(digest + 8, "0123456789abcdef")] != '\0')) {
        return false;
    }
    return n > 0 && n <= 255 && isalnum((unsigned char)s[0]);
}

static void read_image(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node at;
    s->image = s->worker != WORKER_NONE ? r->defaults->worker_image : NULL;
    if (spec_child(r, p, "image", false, &at)) {
        if (spec_text(r, &at, BRACES_VARS, 255, &s->image) && !image_ok(s->image)) {
            spec_fault(r, &at, "pattern",
                       "111122223333.dkr.ecr.eu-west-1.amazonaws.com/name@sha256:...",
                       "'%.120s' is no image", s->image);
        }
    } else if (s->worker == WORKER_NONE && yaml_get(p->node, "framework") != NULL) {
        s->image = ""; /* spec_training_read puts AWS's here */
    } else if (s->worker == WORKER_NONE) {
        spec_fault(r, p, "required",
                   "worker: copy, download or index, image: REPOSITORY@sha256:..., or framework: "
                   "pytorch 1.12",
                   "what the stage runs is not said");
    } else if (s->image == NULL) {
        spec_fault(r, p, "required", "image: REPOSITORY@sha256:..., or set DROVER_WORKER_IMAGE",
                   "'image' is missing, and no image of our worker is set");
    }
    if (!spec_child(r, p, "command", false, &at)) {
        return;
    }
    if (s->worker != WORKER_NONE) {
        spec_fault(r, &at, "conflict", "leave it out", "our worker has its own command");
        return;
    }
    (void)spec_texts(r, &at, BRACES_TEMPLATE, ARRAY_LEN(s->command), 256, s->command,
                     &s->command_n);
}

/* A type that AWS may have by now is taken when limits.instances names it; other sizes of a known
 * family are taken with a warning. */
static void check_type(struct spec_reader *r, const struct spec_node *p, const char *type)
{
    bool named = catalog_family_known(type);
    for (int i = 0; i < r->named_types_n && !named; i++) {
        named = strcmp(r->named_types[i], type) == 0;
    }
    if (!spec_instance_type_ok(type)) {
        spec_fault(r, p, "pattern", "like ml.c5.18xlarge", "'%.64s' is no instance type", type);
    } else if (!named) {
        const char *guess = catalog_type_guess(type);
        spec_fault(r, p, "value",
                   arena_printf(r->a,
                                "%s%s%sa type newer than this drover: name it in "
                                "limits: {instances: {%.64s: 1}}",
                                guess != NULL ? "did you mean " : "", guess != NULL ? guess : "",
                                guess != NULL ? "? " : "", type),
                   "'%.64s' is not known", type);
    }
}

static void read_types(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node at;
    if (!spec_child(r, p, "instance_type", true, &at) ||
        !spec_texts(r, &at, BRACES_VARS, SPEC_LADDER_MAX, 64, s->instance_type,
                    &s->instance_type_n)) {
        return;
    }
    if (s->instance_type_n == 0) {
        spec_fault(r, &at, "required", "ml.c5.18xlarge", "an empty list");
    }
    for (int i = 0; i < s->instance_type_n; i++) {
        char key[24];
        bool list = at.node->kind == YAML_LIST;
        struct spec_node one = list ? spec_item(&at, (size_t)i, key) : at;
        check_type(r, &one, s->instance_type[i]);
        for (int j = 0; j < i; j++) {
            if (strcmp(s->instance_type[i], s->instance_type[j]) == 0) {
                spec_fault(r, &one, "duplicate", "", "'%s' stands there twice",
                           s->instance_type[i]);
            }
        }
    }
}

static void read_size(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node at;
    int64_t n;
    if (spec_child(r, p, "instance_count", false, &at) && spec_i64(r, &at, 1, 256, &n)) {
        s->instance_count = (int)n;
        if (n > 1 && s->worker != WORKER_NONE) {
            spec_fault(r, &at, "conflict", "1: parts run side by side as jobs of their own",
                       "a job of worker %s has one instance", spec_worker_verb(s->worker));
        }
    }
    if (spec_child(r, p, "volume_gb", false, &at) && spec_i64(r, &at, 1, 2000, &n)) {
        s->volume_gb = (int)n;
    }
}

static void read_times(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    static const struct spec_key expect_keys[] = {{"duration", KEY_OPEN}, {"files", KEY_LATER}};
    struct spec_node at;
    if (spec_child(r, p, "max_runtime", false, &at)) {
        (void)spec_duration(r, &at, 1, SPEC_RUNTIME_S_MAX, &s->max_runtime_s);
    }
    s->min_runtime_s = s->max_runtime_s;
    if (spec_child(r, p, "min_runtime", false, &at) &&
        spec_duration(r, &at, 1, SPEC_RUNTIME_S_MAX, &s->min_runtime_s) &&
        s->min_runtime_s > s->max_runtime_s) {
        spec_fault(r, &at, "range", "at most max_runtime",
                   "min_runtime of %lld s is more than max_runtime of %lld s",
                   (long long)s->min_runtime_s, (long long)s->max_runtime_s);
    }
    if (spec_child(r, p, "expect", false, &at) && spec_is_map(r, &at, "{duration: 100m}")) {
        struct spec_node d;
        spec_check_keys(r, &at, expect_keys, ARRAY_LEN(expect_keys), false);
        if (spec_child(r, &at, "duration", false, &d)) {
            (void)spec_duration(r, &d, 1, SPEC_RUNTIME_S_MAX, &s->expect_s);
        }
    }
}

static void read_security(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node at;
    s->role = r->role;
    if (spec_child(r, p, "role", false, &at)) {
        (void)spec_role(r, &at, &s->role);
    }
    if (spec_child(r, p, "vpc", false, &at)) {
        spec_read_vpc(r, &at, s->subnets, &s->subnets_n, s->security_groups, &s->security_groups_n);
    } else {
        memcpy(s->subnets, r->subnets, sizeof s->subnets);
        memcpy(s->security_groups, r->security_groups, sizeof s->security_groups);
        s->subnets_n = r->subnets_n;
        s->security_groups_n = r->security_groups_n;
    }
    if (spec_child(r, p, "network_isolation", false, &at)) {
        (void)spec_bool(r, &at, &s->network_isolation);
    }
}

/* Spot and warm pools. An interrupted spot job starts from the beginning, so its results must be in
 * S3. SageMaker keeps no spot instances warm. */
static void read_market(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node at;
    struct spec_node spot;
    s->warm = r->warm;
    if (spec_child(r, p, "warm_pool", false, &at)) {
        spec_read_warm(r, &at, &s->warm);
    }
    s->resumable = s->worker != WORKER_NONE || yaml_get(p->node, "checkpoint") != NULL;
    if (spec_child(r, p, "resumable", false, &at)) {
        (void)spec_bool(r, &at, &s->resumable);
    }
    if (!spec_child(r, p, "spot", false, &spot) || !spec_bool(r, &spot, &s->spot) || !s->spot) {
        return;
    }
    if (!s->resumable) {
        spec_fault(
            r, &spot, "required",
            "checkpoint: \"s3://...\", or resumable: true when it goes on from what is in S3",
            "a spot job may be taken and started again, and this one does not resume");
    }
    if (s->warm.keep_alive_s > 0) {
        spec_fault(r, &spot, "conflict", "warm_pool: {keep_alive: off} in this stage, or no spot",
                   "SageMaker keeps no spot instances, and a keep-alive of %lld s is asked for",
                   (long long)s->warm.keep_alive_s);
    }
}

static bool env_key_ok(const char *s)
{
    if (isdigit((unsigned char)s[0]) || strncmp(s, "DROVER_", 7) == 0) {
        return false;
    }
    for (; *s != '\0'; s++) {
        if (!isalnum((unsigned char)*s) && *s != '_') {
            return false;
        }
    }
    return true;
}

/* Refuses values that look like secrets: they would be in the database, in SageMaker's answers and
 * in backups. The fault does not repeat the value. */
static void no_secrets(struct spec_reader *r, const struct spec_node *map,
                       const struct spec_pair *pairs, int n, bool by_name)
{
    for (int i = 0; i < n; i++) {
        struct str value = str_of(pairs[i].value);
        const char *what = by_name ? secret_shape_named(pairs[i].key, value) : secret_shape(value);
        for (size_t k = 0; what != NULL && k < map->node->n; k++) {
            if (strcmp(map->node->keys[k], pairs[i].key) == 0) {
                const struct spec_node at = {map, pairs[i].key, map->node->items[k],
                                             map->node->key_pos[k]};
                spec_fault(r, &at, "secret",
                           "use a secret reference: keep it in Secrets Manager, give its ARN, and "
                           "let the job's role read it",
                           "the value looks like %s", what);
                break;
            }
        }
    }
}

static void read_settings(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s,
                          struct spec_training *t)
{
    struct spec_node at;
    if (spec_child(r, p, "hyperparameters", false, &at)) {
        if (s->worker == WORKER_NONE && spec_has_script(p)) {
            spec_json_pairs(r, &at, s, t);
        } else {
            (void)spec_pairs(r, &at, BRACES_TEMPLATE, SPEC_PAIRS_MAX, 256, 2500, s->hyperparameters,
                             &s->hyperparameters_n);
        }
        no_secrets(r, &at, s->hyperparameters, s->hyperparameters_n, false); /* eos_token */
    }
    if (!spec_child(r, p, "environment", false, &at)) {
        return;
    }
    (void)spec_pairs(r, &at, BRACES_TEMPLATE, SPEC_PAIRS_MAX - WP_ENV_N, 512, 512, s->environment,
                     &s->environment_n);
    no_secrets(r, &at, s->environment, s->environment_n, true);
    for (size_t i = 0; at.node->kind == YAML_MAP && i < at.node->n; i++) {
        const struct spec_node key = {&at, at.node->keys[i], at.node->items[i],
                                      at.node->key_pos[i]};
        if (!env_key_ok(at.node->keys[i])) {
            spec_fault(r, &key, "pattern", "letters, digits and _, not beginning with DROVER_",
                       "'%.64s' cannot name an environment variable", at.node->keys[i]);
        }
    }
}

void spec_stage_read(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node at;
    *s = (struct spec_stage){.name = "",
                             .per_part = 1,
                             .instance_count = 1,
                             .volume_gb = 30,
                             .max_runtime_s = 86400,
                             .min_runtime_s = 86400,
                             .budget_musd = -1,
                             .per_task_musd = -1,
                             .parts_limit = -1};
    r->judged = false;
    if (!spec_is_map(r, p, "{name: download, worker: download, ...}")) {
        return;
    }
    struct spec_training *t = arena_alloc(r->a, sizeof *t);
    s->training = t;
    r->task_vars_n = 0;
    r->no_input = false;
    read_name(r, p, s);
    read_needs(r, p, s);
    bool known = read_kind(r, p, s);
    spec_check_keys(r, p, stage_keys, ARRAY_LEN(stage_keys), !known);
    if (!known) {
        return; /* one fault says it; what such a stage holds is not judged */
    }
    if (spec_child(r, p, "fan_out", false, &at)) {
        spec_read_fan_out(r, &at, s);
    }
    read_image(r, p, s);
    read_types(r, p, s);
    read_size(r, p, s);
    read_times(r, p, s);
    read_security(r, p, s);
    read_market(r, p, s);
    read_settings(r, p, s, t);
    spec_read_output(r, p, s);
    if (spec_child(r, p, "allow_failed", false, &at)) {
        (void)spec_percent(r, &at, &s->allow_failed_ppm);
    }
    spec_guard_read(r, p, s);
    memcpy(s->retry, r->retry, sizeof s->retry);
    spec_training_read(r, p, s, t);
    spec_gate_read(r, p, s);
    if (spec_child(r, p, "retry", false, &at)) {
        spec_read_retry(r, &at, s->retry);
    }
    r->judged = true;
}
