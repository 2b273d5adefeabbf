/* Fields of CreateTrainingJob that watch the job and say where it is listed: Debugger, Profiler,
 * their rules, TensorBoard, experiment. See request_parts.h. */
#include "core/spec/spec_read.h"
#include "request_parts.h"

static const char experiment[] = "experiment"; /* that its names are judged besides */

static bool pairs_each(const struct spec_pair *p, int n, debug_template_fn *fn, void *ctx)
{
    for (int i = 0; i < n; i++) {
        if (!fn(ctx, p[i].key, p[i].value, SPEC_CONFIG_TEXT_MAX)) {
            return false;
        }
    }
    return true;
}

static bool place_each(const char *what, const char *to, debug_template_fn *fn, void *ctx)
{
    return to == NULL || fn(ctx, what, to, S3_URI_MAX);
}

static bool hook_each(const char *what, const struct spec_hook *h, debug_template_fn *fn, void *ctx)
{
    bool good =
        place_each(what, h->to, fn, ctx) && pairs_each(h->parameters, h->parameters_n, fn, ctx);
    for (int i = 0; i < h->collections_n && good; i++) {
        good = pairs_each(h->collections[i].parameters, h->collections[i].parameters_n, fn, ctx);
    }
    for (int i = 0; i < h->rules_n && good; i++) {
        good = place_each(h->rules[i].name, h->rules[i].to, fn, ctx) &&
               pairs_each(h->rules[i].parameters, h->rules[i].parameters_n, fn, ctx);
    }
    return good;
}

bool debug_fields_each(const struct spec_training *t, debug_template_fn *fn, void *ctx)
{
    const char *const names[] = {t->experiment, t->experiment_trial, t->experiment_display,
                                 t->experiment_run};
    bool good = hook_each("debugger", &t->debug, fn, ctx) &&
                hook_each("profiler", &t->profile, fn, ctx) &&
                place_each("tensorboard", t->tensorboard, fn, ctx);
    for (size_t i = 0; i < ARRAY_LEN(names) && good; i++) {
        good = names[i] == NULL || fn(ctx, experiment, names[i], SPEC_EXPERIMENT_MAX);
    }
    return good;
}

struct expansion {
    const struct training_request_input *in;
    struct err *err;
};

static bool expands(void *ctx, const char *what, const char *template, size_t max)
{
    const struct expansion *e = ctx;
    AUTO_FREE char *text = NULL;
    if (!request_expand(e->in, what, template, max, &text, e->err)) {
        return false;
    }
    if (what == experiment && !spec_experiment_name_ok(text)) {
        return err_set(e->err, ERR_INVALID,
                       "experiment: '%.120s' is no name: letters, digits, and hyphens between them",
                       text);
    }
    return true;
}

bool debug_fields_expand(const struct request_parts *q, struct err *err)
{
    struct expansion e = {q->in, err};
    return debug_fields_each(q->training, expands, &e);
}

/* What debug_fields_expand has seen to expand. The caller frees it. */
static char *expanded(const struct request_parts *q, const char *template)
{
    struct err err = ERR_INIT;
    char *text = NULL;
    if (!request_expand(q->in, "", template, SPEC_STRING_MAX, &text, &err)) {
        BUG("a template that did expand");
    }
    return text;
}

static void write_text(const struct request_parts *q, struct json_out *w, const char *key,
                       const char *template)
{
    if (template != NULL) {
        AUTO_FREE char *text = expanded(q, template);
        json_out_str(w, key, text);
    }
}

static void write_pairs(const struct request_parts *q, struct json_out *w, const char *key,
                        const struct spec_pair *p, int n)
{
    struct map_entry e[SPEC_RULE_PARAMETERS];
    if (n == 0) {
        return;
    }
    for (int i = 0; i < n; i++) {
        e[i] = (struct map_entry){p[i].key, expanded(q, p[i].value)};
    }
    request_map_sort(e, n);
    request_map(w, key, e, n);
    for (int i = 0; i < n; i++) {
        free(e[i].value);
    }
}

static void write_output(const struct request_parts *q, struct json_out *w, const char *to)
{
    if (to != NULL) {
        write_text(q, w, "S3OutputPath", to);
    } else {
        json_out_str(w, "S3OutputPath", q->output);
    }
}

static void write_path(struct json_out *w, const char *path)
{
    if (path != NULL) {
        json_out_str(w, "LocalPath", path);
    }
}

static void write_rules(const struct request_parts *q, struct json_out *w, const char *key,
                        const struct spec_hook *h)
{
    if (h->rules_n == 0) {
        return;
    }
    json_out_array(w, key);
    for (int i = 0; i < h->rules_n; i++) {
        const struct spec_rule *rule = &h->rules[i];
        json_out_object(w, NULL);
        json_out_str(w, "RuleConfigurationName", rule->name);
        json_out_str(w, "RuleEvaluatorImage", rule->image);
        if (rule->instance_type != NULL) {
            json_out_str(w, "InstanceType", rule->instance_type);
        }
        if (rule->volume_gb > 0) {
            json_out_i64(w, "VolumeSizeInGB", rule->volume_gb);
        }
        write_pairs(q, w, "RuleParameters", rule->parameters, rule->parameters_n);
        write_path(w, rule->path);
        write_text(q, w, "S3OutputPath", rule->to);
        json_out_end_object(w);
    }
    json_out_end_array(w);
}

static void write_debugger(const struct request_parts *q, struct json_out *w)
{
    const struct spec_hook *h = &q->training->debug;
    json_out_object(w, "DebugHookConfig");
    write_output(q, w, h->to);
    write_path(w, h->path);
    write_pairs(q, w, "HookParameters", h->parameters, h->parameters_n);
    json_out_array(w, "CollectionConfigurations");
    for (int i = 0; i < h->collections_n; i++) {
        const struct spec_collection *c = &h->collections[i];
        json_out_object(w, NULL);
        json_out_str(w, "CollectionName", c->name);
        write_pairs(q, w, "CollectionParameters", c->parameters, c->parameters_n);
        json_out_end_object(w);
    }
    json_out_end_array(w);
    json_out_end_object(w);
}

static void write_profiler(const struct request_parts *q, struct json_out *w)
{
    const struct spec_hook *h = &q->training->profile;
    json_out_object(w, "ProfilerConfig");
    if (q->training->profiler) {
        write_output(q, w, h->to);
        if (h->interval_ms > 0) {
            json_out_i64(w, "ProfilingIntervalInMilliseconds", h->interval_ms);
        }
        write_pairs(q, w, "ProfilingParameters", h->parameters, h->parameters_n);
    }
    json_out_bool(w, "DisableProfiler", !q->training->profiler);
    json_out_end_object(w);
}

static void write_experiment(const struct request_parts *q, struct json_out *w)
{
    const struct spec_training *t = q->training;
    if (t->experiment == NULL && t->experiment_trial == NULL && t->experiment_display == NULL &&
        t->experiment_run == NULL) {
        return;
    }
    json_out_object(w, "ExperimentConfig");
    write_text(q, w, "ExperimentName", t->experiment);
    write_text(q, w, "TrialName", t->experiment_trial);
    write_text(q, w, "TrialComponentDisplayName", t->experiment_display);
    write_text(q, w, "RunName", t->experiment_run);
    json_out_end_object(w);
}

/* The profiler and the debugger are off unless asked for: each adds a container and uploads. */
void debug_fields_write(const struct request_parts *q, struct json_out *w)
{
    const struct spec_training *t = q->training;
    if (t->debugger) {
        write_debugger(q, w);
    }
    write_profiler(q, w);
    write_rules(q, w, "DebugRuleConfigurations", &t->debug);
    write_rules(q, w, "ProfilerRuleConfigurations", &t->profile);
    if (t->tensorboard != NULL) {
        json_out_object(w, "TensorBoardOutputConfig");
        write_path(w, t->tensorboard_path);
        write_text(q, w, "S3OutputPath", t->tensorboard);
        json_out_end_object(w);
    }
    write_experiment(q, w);
}
