/* Reads typed values of a campaign file. A wrong value becomes a fault that says what to write. */
#include "spec_read.h"
#include "spec_expand.h"
#include <stdarg.h>
#include <stdio.h>

static size_t pointer_of(const struct spec_node *p, char *out, size_t n)
{
    size_t used = p->up == NULL ? 0 : pointer_of(p->up, out, n);
    if (p->key != NULL && used < n) {
        int wrote = snprintf(out + used, n - used, "%s%s", used == 0 ? "" : ".", p->key);
        used = MIN(used + (size_t)MAX(wrote, 0), n - 1);
    }
    return used;
}

/* A key that several stages have from one place in the file is one mistake. */
static bool said_already(const struct spec_reader *r, struct position pos, const char *code,
                         const char *message)
{
    for (int i = 0; i < r->faults->n; i++) {
        const struct fault *f = &r->faults->at[i];
        if (f->pos.line == pos.line && f->pos.column == pos.column && strcmp(f->code, code) == 0 &&
            strcmp(f->message, message) == 0) {
            return true;
        }
    }
    return false;
}

void spec_fault(struct spec_reader *r, const struct spec_node *p, const char *code,
                const char *hint, const char *fmt, ...)
{
    for (int i = 0; i < r->yaml_faults_n; i++) {
        const struct position *said = &r->faults->at[i].pos;
        if (said->line == p->pos.line && said->column == p->pos.column) {
            return;
        }
    }
    char pointer[160] = "";
    (void)pointer_of(p, pointer, sizeof pointer);
    char message[sizeof r->faults->at[0].message];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    if (said_already(r, p->pos, code, message)) {
        return;
    }
    faults_add(r->faults, p->pos, pointer, code, hint, "%s", message);
}

bool spec_child(struct spec_reader *r, const struct spec_node *p, const char *key, bool required,
                struct spec_node *ret)
{
    const struct yaml_node *m = p->node;
    for (size_t i = 0; m->kind == YAML_MAP && i < m->n; i++) {
        if (strcmp(m->keys[i], key) == 0) {
            struct position pos = m->items[i]->pos.line > 0 ? m->items[i]->pos : m->key_pos[i];
            *ret = (struct spec_node){p, m->keys[i], m->items[i], pos};
            return true;
        }
    }
    if (required) {
        char hint[96];
        (void)snprintf(hint, sizeof hint, "add '%s: ...'", key);
        spec_fault(r, p, "required", hint, "'%s' is missing", key);
    }
    return false;
}

struct spec_node spec_item(const struct spec_node *list, size_t i, char key[static 24])
{
    (void)snprintf(key, 24, "%zu", i);
    return (struct spec_node){list, key, list->node->items[i], list->node->items[i]->pos};
}

static const char *kind_name(const struct yaml_node *n)
{
    switch (n->kind) {
    case YAML_NULL:
        return "nothing";
    case YAML_BOOL:
        return "a boolean";
    case YAML_INT:
    case YAML_FLOAT:
        return "a number";
    case YAML_STRING:
        return "text";
    case YAML_LIST:
        return "a list";
    case YAML_MAP:
        return "a map";
    }
    return "something else";
}

static bool wrong_type(struct spec_reader *r, const struct spec_node *p, const char *want,
                       const char *hint)
{
    spec_fault(r, p, "type", hint, "%s is needed here, this is %s", want, kind_name(p->node));
    return false;
}

bool spec_is_map(struct spec_reader *r, const struct spec_node *p, const char *hint)
{
    return p->node->kind == YAML_MAP || wrong_type(r, p, "a map", hint);
}

bool spec_is_list(struct spec_reader *r, const struct spec_node *p, size_t max, const char *hint)
{
    if (p->node->kind != YAML_LIST) {
        return wrong_type(r, p, "a list", hint);
    }
    if (p->node->n > max) {
        spec_fault(r, p, "limit", hint, "a list of %zu; at most %zu are allowed", p->node->n, max);
        return false;
    }
    return true;
}

static size_t same_letters(const char *a, const char *b)
{
    size_t n = 0;
    for (; n < 4 && *a != '\0' && *a == *b; a++, b++) {
        n++;
    }
    return n;
}

void spec_guess(const char *word, const char *const *words, size_t n, char *out, size_t out_n)
{
    size_t best = SIZE_MAX, best_score = SIZE_MAX;
    const char *nearest = NULL;
    for (size_t i = 0; i < n; i++) { /* 'retries' is 'retry' rather than 'metrics' */
        size_t d = str_distance(str_of(word), str_of(words[i]));
        size_t score = 2 * d + 4 - same_letters(word, words[i]);
        if (score < best_score) {
            best_score = score;
            best = d;
            nearest = words[i];
        }
    }
    bool same_start = nearest != NULL && strlen(word) > 5 && same_letters(word, nearest) == 4;
    if (nearest != NULL && (same_start || best <= MAX((size_t)2, strlen(word) / 3))) {
        (void)snprintf(out, out_n, "did you mean '%s'?", nearest);
        return;
    }
    size_t used = (size_t)snprintf(out, out_n, "write one of:");
    for (size_t i = 0; i < n && used < out_n; i++) {
        used += (size_t)snprintf(out + used, out_n - used, "%s %s", i == 0 ? "" : ",", words[i]);
    }
}

void spec_check_keys(struct spec_reader *r, const struct spec_node *p,
                     const struct spec_known_key *keys, size_t n, bool quiet)
{
    const char *names[SPEC_KEYS_MAX];
    size_t open = 0;
    ASSERT(n <= ARRAY_LEN(names));
    size_t names_n = 0;
    for (size_t i = 0; i < n; i++) {
        if (keys[i].status == KEY_OPEN) {
            names[names_n++] = keys[i].name;
        }
    }
    for (size_t k = 0; k < p->node->n; k++) {
        const char *key = p->node->keys[k];
        const struct spec_node at = {p, key, p->node->items[k], p->node->key_pos[k]};
        for (open = 0; open < n && strcmp(keys[open].name, key) != 0; open++) {
        }
        if (open == n) {
            char hint[256];
            spec_guess(key, names, names_n, hint, sizeof hint);
            spec_fault(r, &at, "unknown_key", hint, "unknown key '%.64s'", key);
        } else if (keys[open].status == KEY_LATER && !quiet) {
            spec_fault(r, &at, "unsupported", "leave it out",
                       "'%s' is not supported in this version%s%s", key,
                       keys[open].why != NULL ? ": " : "",
                       keys[open].why != NULL ? keys[open].why : "");
        } else if (keys[open].status == KEY_OTHER_KIND && !quiet) {
            spec_fault(r, &at, "conflict", "leave it out, or give the stage that kind",
                       "'%s' is a key of another kind of stage", key);
        }
    }
}

void spec_check_map(struct spec_reader *r, const struct spec_node *p, enum spec_map map)
{
    struct spec_known_key known[SPEC_KEYS_MAX];
    size_t n;
    const struct spec_key *keys = spec_keys_of(map, &n);
    ASSERT(n <= ARRAY_LEN(known));
    for (size_t i = 0; i < n; i++) {
        known[i] = (struct spec_known_key){
            keys[i].name, keys[i].of == SPEC_KEY_LATER ? KEY_LATER : KEY_OPEN, keys[i].text};
    }
    spec_check_keys(r, p, known, n, false);
}

/* NULL: there is none of that name, or a row's value has no text. */
static const char *var_value(struct spec_reader *r, struct str name)
{
    for (int i = 0; i < r->row_vars_n; i++) {
        if (str_eq_cstr(name, r->row_vars[i].key)) {
            r->row_vars_used[i] = true;
            return r->row_vars[i].value;
        }
    }
    for (int i = 0; i < r->vars_n; i++) {
        if (str_eq_cstr(name, r->vars[i].key)) {
            return r->vars[i].value;
        }
    }
    return NULL;
}

static bool is_row_var(const struct spec_reader *r, struct str name)
{
    for (int i = 0; i < r->row_vars_n; i++) {
        if (str_eq_cstr(name, r->row_vars[i].key)) {
            return true;
        }
    }
    return false;
}

static bool is_task_var(const struct spec_reader *r, struct str name)
{
    for (int i = 0; i < r->task_vars_n; i++) {
        if (str_eq_cstr(name, r->task_vars[i])) {
            return true;
        }
    }
    bool of_input = str_eq_cstr(name, "uri") || str_eq_cstr(name, "file_name") ||
                    str_eq_cstr(name, "stem") || str_eq_cstr(name, "size");
    return spec_is_task_variable(name) && !(r->no_input && of_input);
}

static bool unknown_var(struct spec_reader *r, const struct spec_node *p, struct str name,
                        enum braces braces)
{
    static const char *const per_task[] = {"part", "uri",     "file_name", "stem",
                                           "size", "attempt", "campaign",  "stage"};
    const char *known[SPEC_VARS_MAX + SPEC_ROW_VARS_MAX + ARRAY_LEN(per_task)] = {NULL};
    size_t n = 0;
    for (int i = 0; i < r->row_vars_n; i++) {
        known[n++] = r->row_vars[i].key;
    }
    for (int i = 0; i < r->vars_n; i++) {
        known[n++] = r->vars[i].key;
    }
    for (size_t i = 0; braces == BRACES_TEMPLATE && i < ARRAY_LEN(per_task); i++) {
        known[n++] = per_task[i];
    }
    char word[65];
    (void)snprintf(word, sizeof word, STR_FMT, (int)MIN(name.n, (size_t)64), name.p);
    char guess[160];
    spec_guess(word, known, n, guess, sizeof guess);
    char hint[256];
    (void)snprintf(hint, sizeof hint, "%s; '{{' writes a brace",
                   n == 0 ? "there are no variables: add 'vars'" : guess);
    if (is_row_var(r, name)) {
        spec_fault(r, p, "unknown_variable", "write the text here in place of the variable",
                   "the value of '{%s}' is wrong, or differs from task to task", word);
    } else if (r->no_input && spec_is_task_variable(name) && braces == BRACES_TEMPLATE) {
        spec_fault(r, p, "unknown_variable", "{part:05d}",
                   "parts of fan_out: {count: ...} have no input, so '{%s}' has no value", word);
    } else if (braces == BRACES_VARS && is_task_var(r, name)) {
        spec_fault(r, p, "unknown_variable", hint,
                   "'{%s}' differs from task to task and has no value here", word);
    } else {
        spec_fault(r, p, "unknown_variable", hint, "unknown variable '{%s}'", word);
    }
    return false;
}

/* Text for a template: its braces are doubled, so that expansion restores them. */
static void add_literal(struct buf *b, struct str s, enum braces braces)
{
    for (size_t i = 0; i < s.n; i++) {
        buf_add_char(b, s.p[i]);
        if (braces == BRACES_TEMPLATE && (s.p[i] == '{' || s.p[i] == '}')) {
            buf_add_char(b, s.p[i]);
        }
    }
}

static bool expand(struct spec_reader *r, const struct spec_node *p, enum braces braces,
                   struct buf *out)
{
    const char *t = p->node->text;
    while (*t != '\0') {
        struct err err = ERR_INIT;
        struct str literal;
        struct spec_field f;
        bool has_field;
        const char *start = t;
        if (!spec_next_piece(&t, &literal, &has_field, &f, &err)) {
            spec_fault(r, p, "braces", "'{{' writes a brace", "%s", err.message);
            return false;
        }
        add_literal(out, literal, braces);
        const char *value = has_field ? var_value(r, f.name) : NULL;
        if (value != NULL && f.format.n == 0) {
            add_literal(out, str_of(value), braces);
        } else if (has_field && value == NULL &&
                   (braces != BRACES_TEMPLATE || !is_task_var(r, f.name))) {
            return unknown_var(r, p, f.name, braces);
        } else if (has_field) {
            const char *brace = start + literal.n;
            buf_add(out, brace, (size_t)(t - brace));
        }
    }
    return true;
}

/* The names of the stage's own task variables, for spec_expand_check. */
static json_t *task_vars_json(const struct spec_reader *r)
{
    json_t *o = json_object();
    for (int i = 0; i < r->task_vars_n; i++) {
        (void)json_object_set_new(o, r->task_vars[i], json_string("x"));
    }
    for (int i = 0; i < r->vars_n; i++) {
        (void)json_object_set_new(o, r->vars[i].key, json_string("x"));
    }
    for (int i = 0; i < r->row_vars_n; i++) {
        (void)json_object_set_new(o, r->row_vars[i].key, json_string("x"));
    }
    return o;
}

static bool text_of(struct spec_reader *r, const struct spec_node *p, enum braces braces,
                    size_t max, const char **ret)
{
    AUTO_BUF struct buf out = BUF_INIT(SPEC_STRING_MAX);
    if (strlen(p->node->text) != p->node->text_n) {
        spec_fault(r, p, "type", "", "text with a NUL character");
        return false;
    }
    if (!expand(r, p, braces, &out)) {
        return false;
    }
    if (out.overflow || out.n > max || r->strings_bytes + out.n > SPEC_STRINGS_MAX) {
        spec_fault(r, p, "limit", "", "longer than %zu bytes", MIN(max, (size_t)SPEC_STRING_MAX));
        return false;
    }
    if (braces == BRACES_TEMPLATE) { /* formats, and names with a format */
        AUTO_JSON json_t *vars = task_vars_json(r);
        struct err err = ERR_INIT;
        if (!spec_expand_check(buf_cstr(&out), vars, &err)) {
            spec_fault(r, p, "braces", "write {part:05d}", "%s", err.message);
            return false;
        }
    }
    r->strings_bytes += out.n;
    *ret = arena_strndup(r->a, buf_cstr(&out), out.n);
    return true;
}

bool spec_text(struct spec_reader *r, const struct spec_node *p, enum braces braces, size_t max,
               const char **ret)
{
    if (p->node->kind != YAML_STRING) {
        bool scalar =
            p->node->kind != YAML_LIST && p->node->kind != YAML_MAP && p->node->kind != YAML_NULL;
        return wrong_type(r, p, "text", scalar ? "put it in quotes" : "write one string");
    }
    if (p->node->text_n == 0) {
        spec_fault(r, p, "required", "write some text, or leave it out", "empty text");
        return false;
    }
    return text_of(r, p, braces, max, ret);
}

bool spec_scalar(struct spec_reader *r, const struct spec_node *p, enum braces braces, size_t max,
                 const char **ret)
{
    if (p->node->kind == YAML_LIST || p->node->kind == YAML_MAP || p->node->kind == YAML_NULL) {
        return wrong_type(r, p, "one value", "write one string; JSON goes in quotes");
    }
    return text_of(r, p, braces, max, ret);
}

bool spec_i64(struct spec_reader *r, const struct spec_node *p, int64_t min, int64_t max,
              int64_t *ret)
{
    char hint[96];
    (void)snprintf(hint, sizeof hint,
                   min == max ? "write %lld" : "a whole number from %lld to %lld", (long long)min,
                   (long long)max);
    if (p->node->kind != YAML_INT) {
        return wrong_type(r, p, "a whole number", hint);
    }
    if (p->node->i < min || p->node->i > max) {
        spec_fault(r, p, "range", hint, "%lld is out of range", (long long)p->node->i);
        return false;
    }
    *ret = p->node->i;
    return true;
}

bool spec_bool(struct spec_reader *r, const struct spec_node *p, bool *ret)
{
    if (p->node->kind != YAML_BOOL && !(p->node->kind == YAML_STRING && p->node->maybe_bool)) {
        return wrong_type(r, p, "a boolean", "true or false");
    }
    *ret = p->node->b;
    return true;
}

bool spec_duration(struct spec_reader *r, const struct spec_node *p, int64_t min_s, int64_t max_s,
                   int64_t *ret)
{
    static const char hint[] = "a duration with its unit: 90s, 15m, 4h, 1h30m, 2d";
    struct err err = ERR_INIT;
    bool plain = p->node->kind == YAML_INT;
    if (plain || p->node->kind != YAML_STRING) {
        return wrong_type(r, p, "a duration with its unit", hint);
    }
    if (!parse_duration_s(str_of(p->node->text), 0, INT64_MAX, ret, &err)) {
        spec_fault(r, p, "type", hint, "%s", err.message);
        return false;
    }
    if (*ret < min_s || *ret > max_s) {
        spec_fault(r, p, "range", hint, "'%.40s' is not within %lld to %lld seconds", p->node->text,
                   (long long)min_s, (long long)max_s);
        return false;
    }
    return true;
}

bool spec_money(struct spec_reader *r, const struct spec_node *p, musd_t *ret)
{
    static const char hint[] = "an amount like 900 USD or 12.50 USD";
    struct err err = ERR_INIT;
    if (p->node->kind != YAML_STRING || !str_ends(str_of(p->node->text), " USD")) {
        return wrong_type(r, p, "an amount in USD", hint);
    }
    if (!parse_usd(str_of(p->node->text), ret, &err)) {
        spec_fault(r, p, "type", hint, "%s", err.message);
        return false;
    }
    return true;
}

bool spec_percent(struct spec_reader *r, const struct spec_node *p, int64_t *ret_ppm)
{
    static const char hint[] = "a percentage from 0% to 100%, like 2% or 0.5%";
    struct str t = {p->node->text, p->node->text_n};
    struct err err = ERR_INIT;
    if (p->node->kind != YAML_STRING || !str_ends(t, "%")) {
        return wrong_type(r, p, "a percentage", hint);
    }
    t.n--;
    if (!parse_decimal(t, 4, 0, 1000000, ret_ppm, &err)) {
        spec_fault(r, p, "range", hint, "'%.40s' is no percentage", p->node->text);
        return false;
    }
    return true;
}

bool spec_choice(struct spec_reader *r, const struct spec_node *p, const char *const *words,
                 size_t n, const char *const *later, int *ret)
{
    char hint[256];
    if (p->node->kind != YAML_STRING) {
        spec_guess("", words, n, hint, sizeof hint);
        return wrong_type(r, p, "one word", hint);
    }
    for (size_t i = 0; i < n; i++) {
        if (strcmp(p->node->text, words[i]) == 0) {
            *ret = (int)i;
            return true;
        }
    }
    spec_guess(p->node->text, words, n, hint, sizeof hint);
    for (; later != NULL && *later != NULL; later++) {
        if (strcmp(p->node->text, *later) == 0) {
            spec_guess("", words, n, hint, sizeof hint);
            spec_fault(r, p, "unsupported", hint, "'%s' is not supported in this version", *later);
            return false;
        }
    }
    spec_fault(r, p, "value", hint, "'%.64s' is not known here", p->node->text);
    return false;
}

bool spec_texts(struct spec_reader *r, const struct spec_node *p, enum braces braces, size_t max_n,
                size_t max_len, const char **ret, int *ret_n)
{
    if (p->node->kind != YAML_LIST) {
        *ret_n = 0;
        if (!spec_text(r, p, braces, max_len, &ret[0])) {
            return false;
        }
        *ret_n = 1;
        return true;
    }
    if (!spec_is_list(r, p, max_n, "a shorter list")) {
        return false;
    }
    bool good = true;
    int n = 0;
    for (size_t i = 0; i < p->node->n; i++) {
        char key[24];
        struct spec_node item = spec_item(p, i, key);
        if (spec_text(r, &item, braces, max_len, &ret[n])) {
            n++;
        } else {
            good = false;
        }
    }
    *ret_n = n;
    return good;
}

bool spec_pairs(struct spec_reader *r, const struct spec_node *p, enum braces braces, size_t max_n,
                size_t key_max, size_t value_max, struct spec_pair *ret, int *ret_n)
{
    *ret_n = 0;
    if (!spec_is_map(r, p, "key: value, ...")) {
        return false;
    }
    if (p->node->n > max_n) {
        spec_fault(r, p, "limit", "", "%zu keys; at most %zu are allowed", p->node->n, max_n);
        return false;
    }
    bool good = true;
    for (size_t i = 0; i < p->node->n; i++) {
        const char *key = p->node->keys[i];
        struct spec_node at = {p, key, p->node->items[i], p->node->items[i]->pos};
        const char *value;
        if (key[0] == '\0' || strlen(key) > key_max) {
            spec_fault(r, &at, "limit", "", "a key of 1 to %zu bytes is needed", key_max);
            good = false;
        } else if (spec_scalar(r, &at, braces, value_max, &value)) {
            r->strings_bytes += strlen(key);
            ret[(*ret_n)++] = (struct spec_pair){arena_strndup(r->a, key, strlen(key)), value};
        } else {
            good = false;
        }
    }
    return good;
}
