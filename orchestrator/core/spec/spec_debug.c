/* Reads what watches a training job and where it is listed: `debugger` and `profiler` with their
 * rules, `tensorboard`, `experiment`. */
#include "spec_read.h"
#include <ctype.h>

/* [a-zA-Z0-9](-*[a-zA-Z0-9]){0,119}, bytes counted */
bool spec_experiment_name_ok(const char *s)
{
    size_t n = strlen(s);
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)s[i]) && s[i] != '-') {
            return false;
        }
    }
    return n > 0 && n <= SPEC_EXPERIMENT_MAX && s[0] != '-' && s[n - 1] != '-';
}

/* `path`: a folder in the container. */
static void read_path(struct spec_reader *r, const struct spec_node *p, const char *hint,
                      const char **ret)
{
    struct spec_node at;
    if (!spec_child(r, p, "path", false, &at) ||
        !spec_text(r, &at, BRACES_VARS, SPEC_STRING_MAX, ret)) {
        return;
    }
    spec_one_line(r, &at, *ret);
    if ((*ret)[0] != '/') {
        spec_fault(r, &at, "pattern", hint, "a path in the container is absolute");
    }
}

static bool read_to(struct spec_reader *r, const struct spec_node *p, const char **ret)
{
    return spec_text(r, p, BRACES_TEMPLATE, 1024, ret) && spec_s3(r, p, *ret);
}

static void read_child_to(struct spec_reader *r, const struct spec_node *p, const char **ret)
{
    struct spec_node at;
    if (spec_child(r, p, "to", false, &at)) {
        (void)read_to(r, &at, ret);
    }
}

static void read_parameters(struct spec_reader *r, const struct spec_node *p, size_t max,
                            const struct spec_pair **ret, int *ret_n)
{
    struct spec_node at;
    if (!spec_child(r, p, "parameters", false, &at)) {
        return;
    }
    struct spec_pair *pairs = arena_alloc(r->a, MIN(at.node->n + 1, max) * sizeof *pairs);
    (void)spec_pairs(r, &at, BRACES_TEMPLATE, max, SPEC_CONFIG_TEXT_MAX, SPEC_CONFIG_TEXT_MAX,
                     pairs, ret_n);
    spec_pairs_lines(r, &at, pairs, *ret_n);
    *ret = pairs;
}

/* `name` at p, which must be there and its own among names[n]. */
static void read_name(struct spec_reader *r, const struct spec_node *p, const char **names, int n)
{
    struct spec_node at;
    names[n] = "";
    if (!spec_child(r, p, "name", true, &at) ||
        !spec_text(r, &at, BRACES_VARS, SPEC_CONFIG_TEXT_MAX, &names[n])) {
        return;
    }
    spec_one_line(r, &at, names[n]);
    if (names[n][0] == '\0') {
        spec_fault(r, &at, "required", "name: losses", "an empty name");
    }
    for (int i = 0; i < n; i++) {
        if (strcmp(names[i], names[n]) == 0) {
            spec_fault(r, &at, "duplicate", "a name of its own", "two are named '%.64s'", names[n]);
        }
    }
}

static void read_collections(struct spec_reader *r, const struct spec_node *p, struct spec_hook *h)
{
    static const char hint[] = "[{name: losses, parameters: {save_interval: 50}}]";
    const char *names[SPEC_HOOK_MAX] = {NULL};
    struct spec_node at;
    if (!spec_child(r, p, "collections", false, &at) ||
        !spec_is_list(r, &at, SPEC_HOOK_MAX, hint)) {
        return;
    }
    struct spec_collection *list = arena_alloc(r->a, SPEC_HOOK_MAX * sizeof *list);
    h->collections = list;
    for (size_t i = 0; i < at.node->n; i++) {
        char key[24];
        const struct spec_node one = spec_item(&at, i, key);
        struct spec_collection *c = &list[h->collections_n];
        if (spec_is_map(r, &one, hint)) {
            spec_check_map(r, &one, SPEC_MAP_COLLECTION);
            read_name(r, &one, names, h->collections_n);
            c->name = names[h->collections_n++];
            read_parameters(r, &one, SPEC_HOOK_MAX, &c->parameters, &c->parameters_n);
        }
    }
}

static void read_rule(struct spec_reader *r, const struct spec_node *p, struct spec_rule *rule)
{
    struct spec_node at;
    int64_t n;
    spec_check_map(r, p, SPEC_MAP_RULE);
    if (spec_child(r, p, "image", true, &at)) {
        (void)spec_image(r, &at, &rule->image);
    }
    if (spec_child(r, p, "instance_type", false, &at) &&
        spec_text(r, &at, BRACES_VARS, 64, &rule->instance_type)) {
        spec_check_type(r, &at, rule->instance_type, false);
    }
    if (spec_child(r, p, "volume_gb", false, &at) && spec_i64(r, &at, 1, VOLUME_GB_MAX, &n)) {
        rule->volume_gb = (int)n;
    }
    read_parameters(r, p, SPEC_RULE_PARAMETERS, &rule->parameters, &rule->parameters_n);
    read_child_to(r, p, &rule->to);
    read_path(r, p, "/opt/ml/processing/output/rule", &rule->path);
}

static void read_rules(struct spec_reader *r, const struct spec_node *p, struct spec_hook *h)
{
    static const char hint[] = "[{name: loss, image: ACCOUNT.dkr.ecr.REGION.amazonaws.com/"
                               "sagemaker-debugger-rules, parameters: {rule_to_invoke: "
                               "LossNotDecreasing}}]";
    const char *names[SPEC_HOOK_MAX] = {NULL};
    struct spec_node at;
    if (!spec_child(r, p, "rules", false, &at) || !spec_is_list(r, &at, SPEC_HOOK_MAX, hint)) {
        return;
    }
    struct spec_rule *list = arena_alloc(r->a, SPEC_HOOK_MAX * sizeof *list);
    h->rules = list;
    for (size_t i = 0; i < at.node->n; i++) {
        char key[24];
        const struct spec_node one = spec_item(&at, i, key);
        struct spec_rule *rule = &list[h->rules_n];
        if (spec_is_map(r, &one, hint)) {
            read_name(r, &one, names, h->rules_n);
            rule->name = names[h->rules_n++];
            rule->image = "";
            read_rule(r, &one, rule);
        }
    }
}

static void read_interval(struct spec_reader *r, const struct spec_node *p, struct spec_hook *h)
{
    static const int intervals[] = {100, 200, 500, 1000, 5000, 60000};
    struct spec_node at;
    int64_t n;
    if (!spec_child(r, p, "interval_ms", false, &at) || !spec_i64(r, &at, 100, 60000, &n)) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(intervals); i++) {
        h->interval_ms = n == intervals[i] ? (int)n : h->interval_ms;
    }
    if (h->interval_ms == 0) {
        spec_fault(r, &at, "value", "one of 100, 200, 500, 1000, 5000, 60000",
                   "the Profiler does not measure every %lld ms", (long long)n);
    }
}

/* A switch, or a map, which switches it on. */
static bool read_hook(struct spec_reader *r, const struct spec_node *p, enum spec_map map,
                      struct spec_hook *h, bool *ret_on)
{
    if (p->node->kind != YAML_MAP) {
        (void)spec_bool(r, p, ret_on);
        return false;
    }
    *ret_on = true;
    spec_check_map(r, p, map);
    read_child_to(r, p, &h->to);
    read_parameters(r, p, SPEC_HOOK_MAX, &h->parameters, &h->parameters_n);
    read_rules(r, p, h);
    return true;
}

static void read_tensorboard(struct spec_reader *r, const struct spec_node *p,
                             struct spec_training *t)
{
    struct spec_node at, to;
    if (!spec_child(r, p, "tensorboard", false, &at)) {
        return;
    }
    to = at;
    if (at.node->kind == YAML_MAP) {
        spec_check_map(r, &at, SPEC_MAP_TENSORBOARD);
        read_path(r, &at, "/opt/ml/output/tensorboard", &t->tensorboard_path);
        if (!spec_child(r, &at, "to", true, &to)) {
            return;
        }
    }
    (void)read_to(r, &to, &t->tensorboard);
}

static void read_experiment(struct spec_reader *r, const struct spec_node *p,
                            struct spec_training *t)
{
    const struct {
        const char *key, **ret;
    } names[] = {{"name", &t->experiment},
                 {"trial", &t->experiment_trial},
                 {"display_name", &t->experiment_display},
                 {"run", &t->experiment_run}};
    struct spec_node map, at;
    if (!spec_child(r, p, "experiment", false, &map) ||
        !spec_is_map(r, &map, "{name: bert, trial: small}")) {
        return;
    }
    spec_check_map(r, &map, SPEC_MAP_EXPERIMENT);
    if (map.node->n == 0) {
        spec_fault(r, &map, "required", "{name: bert, trial: small}",
                   "an experiment without names");
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *text;
        if (!spec_child(r, &map, names[i].key, false, &at) ||
            !spec_text(r, &at, BRACES_TEMPLATE, SPEC_EXPERIMENT_MAX, &text)) {
            continue;
        }
        *names[i].ret = text;
        if (strchr(text, '{') == NULL &&
            !spec_experiment_name_ok(text)) { /* else once it is whole */
            spec_fault(r, &at, "pattern", "letters, digits, and hyphens between them",
                       "'%.120s' is no name that SageMaker's experiments take", text);
        }
    }
}

void spec_debug_read(struct spec_reader *r, const struct spec_node *p, struct spec_training *t)
{
    struct spec_node at;
    if (spec_child(r, p, "debugger", false, &at) &&
        read_hook(r, &at, SPEC_MAP_DEBUGGER, &t->debug, &t->debugger)) {
        read_path(r, &at, "/opt/ml/output/tensors", &t->debug.path);
        read_collections(r, &at, &t->debug);
    }
    if (spec_child(r, p, "profiler", false, &at) &&
        read_hook(r, &at, SPEC_MAP_PROFILER, &t->profile, &t->profiler)) {
        read_interval(r, &at, &t->profile);
    }
    read_tensorboard(r, p, t);
    read_experiment(r, p, t);
}
