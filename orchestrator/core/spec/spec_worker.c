/* Reads what a stage says to drover-worker: the keys from, to, auth and path_prefix, and the places
 * a command needs. They reach the job as hyperparameters. */
#include "spec_worker.h"
#include "common/cleanup.h"
#include "spec_read.h"

#define SPEC_SOURCES_MAX 64

static const char *const verbs[] = {[WORKER_NONE] = "",
                                    [WORKER_DOWNLOAD] = "download",
                                    [WORKER_INDEX] = "index",
                                    [WORKER_COPY] = "copy"};

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
    (void)spec_part_place(r, at, s, s->output, "write to the same place");
    if (strstr(s->output, "{attempt}") != NULL || strstr(s->output, "{attempt:") != NULL) {
        spec_fault(r, at, "conflict", "leave {attempt} out",
                   "a retry must find what the attempt before it finished");
    }
}

/* Several instances share a part only when nothing has to be removed or numbered first. */
static void check_mode(struct spec_reader *r, const struct spec_node *map,
                       const struct spec_stage *s)
{
    struct spec_node at;
    const char *mode = hyper(s, "incremental_mode");
    if (s->instance_count > 1 && mode != NULL && strcmp(mode, "incremental") != 0 &&
        spec_child(r, map, "incremental_mode", false, &at)) {
        spec_fault(r, &at, "conflict", "incremental, or instance_count: 1",
                   "%d instances share a part only with incremental_mode incremental",
                   s->instance_count);
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
    check_mode(r, &map, s);
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
    if (spec_child(r, p, "from", true, &at)) {
        if (spec_is_volume(at.node)) { /* its job's only channel: spec_input.c */
            pass(r, &at, s, "input", "channel:" SPEC_INDEX_CHANNEL);
        } else if (spec_text(r, &at, BRACES_TEMPLATE, 1024, &text) && spec_s3(r, &at, text)) {
            pass(r, &at, s, "input", text);
        }
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

static bool is_source(const char *s)
{
    return strncmp(s, "s3://", 5) == 0 || strncmp(s, "https://", 8) == 0 ||
           strncmp(s, "http://", 7) == 0;
}

/* One source or a list of them; the parts of a fan_out over objects are sources themselves. */
static void read_copy_from(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    AUTO_BUF struct buf joined = BUF_INIT(HYPER_VALUE_MAX);
    const char *from[SPEC_SOURCES_MAX];
    struct spec_node at;
    int n = 0;
    if (!spec_child(r, p, "from", s->fan_out != FAN_OUT_S3, &at)) {
        if (s->fan_out == FAN_OUT_S3) {
            pass(r, p, s, "from", "{uri}");
        }
        return;
    }
    if (!spec_texts(r, &at, BRACES_TEMPLATE, SPEC_SOURCES_MAX, 2000, from, &n)) {
        return;
    }
    for (int i = 0; i < n; i++) {
        if (!is_source(from[i]) && strcmp(from[i], "{uri}") != 0) {
            spec_fault(r, &at, "pattern", "https://host/part-[000-127].parquet or s3://bucket/*",
                       "'%.120s' is neither in S3 nor an https:// URL", from[i]);
        } else if (strpbrk(from[i], " \t\r\n") != NULL) {
            spec_fault(r, &at, "pattern", "write a list, and a blank in a URL as %20",
                       "'%.120s' has a blank", from[i]);
        }
        buf_addf(&joined, "%s%s", i == 0 ? "" : " ", from[i]);
    }
    if (n == 0) {
        spec_fault(r, &at, "required", "https://host/part-[000-127].parquet", "an empty list");
    } else if (joined.overflow) {
        spec_fault(r, &at, "limit", "use [000-127] or a pattern with *",
                   "the sources take more than %d bytes", HYPER_VALUE_MAX);
    } else {
        pass(r, &at, s, "from", arena_strndup(r->a, buf_cstr(&joined), joined.n));
    }
}

struct copy_target { /* `to`, as the job gets it */
    struct buf text;
    size_t folder_n;   /* of text: the folder that all files of the job have in common */
    bool of_file;      /* a field that differs from file to file has come */
    const char *fault; /* NULL: none */
};

static void add_doubled(struct buf *b, struct str s, int times)
{
    for (size_t i = 0; i < s.n; i++) {
        bool brace = s.p[i] == '{' || s.p[i] == '}';
        for (int k = 0; k < (brace ? times : 1); k++) {
            buf_add_char(b, s.p[i]);
        }
    }
}

/* The job expands what differs from file to file, so those braces are doubled; what differs from
 * task to task only is expanded before. */
static void add_field(struct copy_target *t, const struct spec_stage *s, struct str field,
                      struct str name)
{
    bool of_file = str_eq_cstr(name, "file_name") || str_eq_cstr(name, "stem") ||
                   (str_eq_cstr(name, "part") && s->fan_out == FAN_OUT_NONE);
    add_doubled(&t->text, field, of_file ? 2 : 1);
    t->of_file = t->of_file || of_file;
    if (str_eq_cstr(name, "uri") || str_eq_cstr(name, "size")) {
        t->fault = "a target is made of {file_name}, {stem} and {part:05d}";
    } else if (str_eq_cstr(name, "attempt")) {
        t->fault = "a retry must find what the attempt before it finished: leave {attempt} out";
    }
}

static void make_target(const struct spec_stage *s, const char *to, struct copy_target *t)
{
    const char *p = to;
    while (*p != '\0') {
        struct str literal;
        struct spec_field f;
        bool has_field;
        const char *start = p;
        if (!spec_next_piece(&p, &literal, &has_field, &f, NULL)) {
            return;
        }
        for (size_t i = 0; i < literal.n; i++) { /* a brace is expanded twice */
            add_doubled(&t->text, (struct str){literal.p + i, 1}, 4);
            t->folder_n = literal.p[i] == '/' && !t->of_file ? t->text.n : t->folder_n;
        }
        if (has_field) {
            const char *brace = start + literal.n;
            add_field(t, s, (struct str){brace, (size_t)(p - brace)}, f.name);
        }
    }
}

static void target_done(struct copy_target *t)
{
    buf_done(&t->text);
}

static void read_copy_to(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    CLEANUP(target_done)
    struct copy_target t = {.text = BUF_INIT(SPEC_STRING_MAX)};
    struct spec_node at;
    const char *to;
    bool no_input = r->no_input;
    r->no_input = false; /* {file_name} is the source's */
    bool good = spec_child(r, p, "to", true, &at) &&
                spec_text(r, &at, BRACES_TEMPLATE, 1024, &to) && spec_s3(r, &at, to);
    r->no_input = no_input;
    if (!good) {
        return;
    }
    make_target(s, to, &t);
    if (t.fault == NULL && (t.folder_n == t.text.n || t.folder_n < strlen("s3://b/"))) {
        t.fault = "it must end in a name";
    }
    if (t.fault != NULL) {
        spec_fault(r, &at, "pattern", "s3://bucket/meta/{file_name}", "'%.120s': %s", to, t.fault);
        return;
    }
    pass(r, &at, s, "to", arena_strndup(r->a, buf_cstr(&t.text), t.text.n));
    if (!t.of_file || yaml_get(p->node, "from") == NULL) { /* files of `from` have other names */
        (void)spec_part_place(r, &at, s, to, "write to the same place");
    }
    s->output = arena_strndup(r->a, buf_cstr(&t.text), t.folder_n);
    if (s->fan_out != FAN_OUT_NONE && !spec_names_the_task(s, s->output)) {
        s->output = arena_printf(r->a, "%s_copy/{part:05d}/", s->output);
    }
}

static bool header_ok(const char *s)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-_";
    return s[0] != '\0' && s[strspn(s, allowed)] == '\0';
}

static bool is_secret_arn(const char *s)
{
    return strncmp(s, "arn:aws", 7) == 0 &&
           (strstr(s, ":secretsmanager:") != NULL || strstr(s, ":ssm:") != NULL);
}

/* auth: {secret: ARN, header: Authorization, prefix: "Bearer "} */
static void read_auth(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node at;
    const char *text;
    if (!spec_is_map(r, p, "{secret: \"arn:aws:secretsmanager:...\"}")) {
        return;
    }
    spec_check_map(r, p, SPEC_MAP_AUTH);
    if (spec_child(r, p, "secret", true, &at) && spec_text(r, &at, BRACES_VARS, 2048, &text)) {
        if (is_secret_arn(text)) {
            pass(r, &at, s, "secret", text);
        } else { /* the text may be one: it is not repeated */
            spec_fault(r, &at, "secret",
                       "arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME or "
                       "arn:aws:ssm:REGION:ACCOUNT:parameter/NAME",
                       "the ARN of a secret is needed here, never the secret itself");
        }
    }
    if (spec_child(r, p, "header", false, &at) && spec_text(r, &at, BRACES_VARS, 64, &text)) {
        if (header_ok(text)) {
            pass(r, &at, s, "auth_header", text);
        } else {
            spec_fault(r, &at, "pattern", "Authorization", "'%.64s' cannot name a header", text);
        }
    }
    if (spec_child(r, p, "prefix", false, &at) && spec_text(r, &at, BRACES_VARS, 64, &text)) {
        pass(r, &at, s, "auth_prefix", text);
    }
}

static void read_copy(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s)
{
    struct spec_node at;
    read_copy_from(r, p, s);
    read_copy_to(r, p, s);
    if (spec_child(r, p, "output", false, &at) &&
        spec_text(r, &at, BRACES_TEMPLATE, 1024, &s->output)) {
        check_place(r, &at, s);
    }
    if (s->output != NULL) {
        pass(r, p, s, "output_folder", s->output);
    }
    if (spec_child(r, p, "auth", false, &at)) {
        read_auth(r, &at, s);
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
        bool index, copy;
    } rows[] = {{"from", "worker: copy, or worker: index", true, true},
                {"to", "worker: copy", false, true},
                {"auth", "worker: copy", false, true},
                {"path_prefix", "worker: index", true, false}};
    struct spec_node at;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool read = (s->worker == WORKER_INDEX && rows[i].index) ||
                    (s->worker == WORKER_COPY && rows[i].copy);
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
    case WORKER_COPY:
        read_copy(r, p, s);
        break;
    }
    check_isolation(r, p, s);
}
