/* One stage of a campaign file. */
#include "spec_read.h"
#include "spec_worker.h"
#include "worker_protocol.h"
#include <ctype.h>
#include <stdio.h>

bool spec_is_stage_key(const char *s)
{
    size_t n;
    const struct spec_key *keys = spec_keys_of(SPEC_MAP_STAGE, &n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(keys[i].name, s) == 0) {
            return true;
        }
    }
    return false;
}

void spec_guess_stage_key(const char *word, char *out, size_t out_n)
{
    const char *names[SPEC_KEYS_MAX];
    size_t n = 0, all;
    const struct spec_key *keys = spec_keys_of(SPEC_MAP_STAGE, &all);
    ASSERT(all <= ARRAY_LEN(names));
    for (size_t i = 0; i < all; i++) {
        if (keys[i].of != SPEC_KEY_LATER) {
            names[n++] = keys[i].name;
        }
    }
    spec_guess(word, names, n, out, out_n);
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

/* Of an endpoint these say what serves the model, and stand there. */
static bool is_of_model(struct spec_reader *r, const struct spec_node *p, const char *key)
{
    static const char *const keys[] = {"framework", "image", "entry_point", NULL};
    const struct yaml_node *value = yaml_get(p->node, key);
    const struct yaml_node name = {.kind = YAML_STRING, .text = key};
    struct spec_node at;
    if (value == NULL || !is_word_of(&name, keys)) {
        return false;
    }
    (void)spec_child(r, p, key, true, &at);
    spec_fault(r, &at, "conflict",
               arena_printf(r->a, "model: {stage: train, or data: \"s3://...\", %s: ...}", key),
               "'%s' of an endpoint belongs into its model", key);
    return true;
}

static void check_keys(struct spec_reader *r, const struct spec_node *p, enum spec_kind kind,
                       bool quiet)
{
    struct spec_known_key known[SPEC_KEYS_MAX];
    size_t n;
    const struct spec_key *keys = spec_keys_of(SPEC_MAP_STAGE, &n);
    ASSERT(n <= ARRAY_LEN(known));
    for (size_t i = 0; i < n; i++) {
        bool later = keys[i].of == SPEC_KEY_LATER;
        bool open = (keys[i].of & (1u << kind)) != 0 ||
                    (kind == SPEC_KIND_ENDPOINT && !later && is_of_model(r, p, keys[i].name));
        known[i] = (struct spec_known_key){keys[i].name,
                                           later  ? KEY_LATER
                                           : open ? KEY_OPEN
                                                  : KEY_OTHER_KIND,
                                           keys[i].text};
    }
    spec_check_keys(r, p, known, n, quiet);
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

/* The kind, and what its jobs run: drover-worker or a user's image. False: a kind of a later
 * version, or nothing to extend, with its fault added. */
static const char *const kinds[] = {
#define X(kind, word) word,
#include "core/spec/stage_kind.def"
#undef X
};

const char *spec_kind_word(enum spec_kind kind)
{
    ASSERT((unsigned)kind < SPEC_KIND_COUNT);
    return kinds[kind];
}

static bool read_kind(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    static const char *const workers[] = {"download", "index", "copy"};
    static const char *const workers_later[] = {"train-sample", NULL};
    struct spec_node at;
    int i = SPEC_KIND_JOBS;
    if (spec_child(r, p, "kind", false, &at)) {
        (void)spec_choice(r, &at, kinds, ARRAY_LEN(kinds), NULL, &i);
    }
    s->kind = (enum spec_kind)i;
    if (s->kind == SPEC_KIND_JOBS && spec_child(r, p, "worker", false, &at)) {
        bool good = spec_choice(r, &at, workers, ARRAY_LEN(workers), workers_later, &i);
        if (!good && is_word_of(at.node, workers_later)) {
            return false;
        }
        /* a word mistyped hides no fault of the rest */
        s->worker = good ? (enum spec_worker)(i + 1) : WORKER_DOWNLOAD;
    }
    return yaml_get(p->node, "extends") == NULL; /* of a stage that is not there */
}

static void read_image(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node at;
    s->image = s->worker != WORKER_NONE ? r->defaults->worker_image : NULL;
    if (spec_child(r, p, "image", false, &at)) {
        (void)spec_image(r, &at, &s->image);
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
    spec_lines(r, &at, BRACES_TEMPLATE, ARRAY_LEN(s->command), 256, s->command, &s->command_n);
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
        spec_check_type(r, &one, s->instance_type[i], false);
        for (int j = 0; j < i; j++) {
            if (strcmp(s->instance_type[i], s->instance_type[j]) == 0) {
                spec_fault(r, &one, "duplicate", "", "'%s' is listed twice", s->instance_type[i]);
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
        if (n > 1 && s->worker != WORKER_NONE && s->worker != WORKER_DOWNLOAD) {
            spec_fault(r, &at, "conflict", "1: parts run side by side as jobs of their own",
                       "a job of worker %s has one instance", spec_worker_verb(s->worker));
        }
    }
    if (spec_child(r, p, "volume_gb", false, &at) && spec_i64(r, &at, 1, VOLUME_GB_MAX, &n)) {
        s->volume_gb = (int)n;
    }
}

static void read_times(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
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
        spec_check_map(r, &at, SPEC_MAP_EXPECT);
        if (spec_child(r, &at, "duration", false, &d)) {
            (void)spec_duration(r, &d, 1, SPEC_RUNTIME_S_MAX, &s->expect_s);
        }
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

static void read_hyperparameters(struct spec_reader *r, const struct spec_node *p,
                                 struct spec_stage *s, struct spec_training *t)
{
    struct spec_node at;
    if (!spec_child(r, p, "hyperparameters", false, &at)) {
        return;
    }
    if (s->worker == WORKER_NONE && spec_has_script(p)) {
        spec_json_pairs(r, &at, s, t);
    } else {
        (void)spec_pairs(r, &at, BRACES_TEMPLATE, SPEC_PAIRS_MAX, 256, HYPER_VALUE_MAX,
                         s->hyperparameters, &s->hyperparameters_n);
        spec_pairs_lines(r, &at, s->hyperparameters, s->hyperparameters_n);
    }
    spec_no_secrets(r, &at, s->hyperparameters, s->hyperparameters_n, false); /* eos_token */
}

/* What stages of kind jobs say. */
static void read_jobs(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node at;
    struct spec_training *t = arena_alloc(r->a, sizeof *t);
    s->training = t;
    if (spec_child(r, p, "fan_out", false, &at)) {
        spec_read_fan_out(r, &at, s);
    }
    read_image(r, p, s);
    read_types(r, p, s);
    read_size(r, p, s);
    read_times(r, p, s);
    spec_stage_security(r, p, s);
    read_market(r, p, s);
    read_hyperparameters(r, p, s, t);
    spec_stage_environment(r, p, BRACES_TEMPLATE, SPEC_PAIRS_MAX - WP_ENV_N, ENV_VALUE_MAX, s);
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
}

void spec_stage_read(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
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
    r->task_vars_n = 0;
    r->no_input = false;
    read_name(r, p, s);
    read_needs(r, p, s);
    bool known = read_kind(r, p, s);
    check_keys(r, p, s->kind, !known);
    if (!known) {
        return; /* one fault says it; what such a stage holds is not judged */
    }
    if (s->kind == SPEC_KIND_ENDPOINT) {
        spec_endpoint_read(r, p, s);
    } else if (s->kind == SPEC_KIND_LUSTRE) {
        spec_filesystem_read(r, p, s);
    } else {
        read_jobs(r, p, s);
    }
    r->judged = true;
}
