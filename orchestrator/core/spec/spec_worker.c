/* Reads what a stage says to drover-worker: the keys from, to, auth and path_prefix, and the places
 * a command needs. They reach the job as hyperparameters. */
#include "spec_worker.h"
#include "spec_read.h"

static const char *const verbs[] = {
    [WORKER_NONE] = "", [WORKER_DOWNLOAD] = "download", [WORKER_INDEX] = "index"};

const char *spec_worker_verb(enum spec_worker w)
{
    return verbs[w];
}

static const char *hyper(const struct spec_stage *s, const char *key)
{
    for (int i = 0; i < s->hyperparameters_n; i++) {
        if (strcmp(s->hyperparameters[i].key, key) == 0) {
            return s->hyperparameters[i].value;
        }
    }
    return NULL;
}

/* Passes a key of the stage to the job as hyperparameter `name`. */
static void pass(struct spec_reader *r, const struct spec_node *at, struct spec_stage *s,
                 const char *name, const char *value)
{
    if (hyper(s, name) != NULL) {
        spec_fault(r, at, "conflict", "leave one of them out",
                   "'%s' and hyperparameters.%s say the same twice", at->key, name);
    } else if (s->hyperparameters_n == SPEC_PAIRS_MAX) {
        spec_fault(r, at, "limit", "leave a hyperparameter out",
                   "more than %d hyperparameters, with those of the stage's own keys",
                   SPEC_PAIRS_MAX);
    } else {
        s->hyperparameters[s->hyperparameters_n++] = (struct spec_pair){name, value};
    }
}

/* The output must differ from task to task, and must be the same for each attempt. */
static void check_place(struct spec_reader *r, const struct spec_node *at,
                        const struct spec_stage *s)
{
    if (!spec_s3(r, at, s->output)) {
        return;
    }
    if (s->fan_out != FAN_OUT_NONE && !spec_names_the_task(s->output)) {
        spec_fault(r, at, "conflict", "add {part:05d}: s3://bucket/img/{part:05d}/",
                   "every part would write to the same place");
    }
    if (strstr(s->output, "{attempt}") != NULL || strstr(s->output, "{attempt:") != NULL) {
        spec_fault(r, at, "conflict", "leave {attempt} out",
                   "a retry must find what the attempt before it finished");
    }
}

static void read_download(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node map;
    struct spec_node at;
    if (spec_child(r, p, "output", false, &at)) {
        spec_fault(r, &at, "conflict", "hyperparameters: {output_folder: ...}",
                   "the output of worker download is its hyperparameter output_folder");
    }
    if (!spec_child(r, p, "hyperparameters", false, &map)) {
        spec_fault(r, p, "required", "hyperparameters: {url_list: \"{uri}\", output_folder: ...}",
                   "worker download needs the hyperparameters url_list and output_folder");
        return;
    }
    if (map.node->kind != YAML_MAP) {
        return; /* said already */
    }
    (void)spec_child(r, &map, "url_list", true, &at);
    if (!spec_child(r, &map, "output_folder", true, &at)) {
        return;
    }
    s->output = hyper(s, "output_folder");
    if (s->output != NULL) {
        check_place(r, &at, s);
    }
}

static void read_index(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node at;
    const char *text;
    if (spec_child(r, p, "from", true, &at) && spec_text(r, &at, BRACES_TEMPLATE, 1024, &text) &&
        spec_s3(r, &at, text)) {
        pass(r, &at, s, "input", text);
    }
    if (spec_child(r, p, "output", true, &at) &&
        spec_text(r, &at, BRACES_TEMPLATE, 1024, &s->output)) {
        check_place(r, &at, s);
        pass(r, &at, s, "output_folder", s->output);
    }
    if (spec_child(r, p, "path_prefix", false, &at) &&
        spec_text(r, &at, BRACES_TEMPLATE, 1024, &text)) {
        pass(r, &at, s, "path_prefix", text);
    }
}

static void check_isolation(struct spec_reader *r, const struct spec_node *p,
                            const struct spec_stage *s)
{
    struct spec_node at;
    if (s->network_isolation && spec_child(r, p, "network_isolation", false, &at)) {
        spec_fault(r, &at, "conflict", "leave it out",
                   "an isolated container has no network at all: it could not %s",
                   spec_worker_verb(s->worker));
    }
}

/* Keys that only some workers read. */
static void check_keys(struct spec_reader *r, const struct spec_node *p, const struct spec_stage *s)
{
    static const struct {
        const char *key;
        const char *hint;
        bool index;
    } rows[] = {{"from", "worker: index", true}, {"path_prefix", "worker: index", true}};
    struct spec_node at;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool read = s->worker == WORKER_INDEX && rows[i].index;
        if (!read && spec_child(r, p, rows[i].key, false, &at)) {
            spec_fault(r, &at, "conflict", rows[i].hint, "this stage does not read '%s'",
                       rows[i].key);
        }
    }
}

void spec_read_worker(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    check_keys(r, p, s);
    switch (s->worker) {
    case WORKER_NONE:
        return;
    case WORKER_DOWNLOAD:
        read_download(r, p, s);
        break;
    case WORKER_INDEX:
        read_index(r, p, s);
        break;
    }
    check_isolation(r, p, s);
}
