/* Templates of one task ({part:05d}, {uri}, {{) and the globs that name its input. Values are
 * inserted as text, once: an inserted value is not expanded again. */
#include "spec_expand.h"
#include "spec_read.h"

#define FORMAT_WIDTH_MAX 32

/* Takes the next piece of *t: literal text (possibly empty), and the field after it when
 * *ret_field. "{{" and "}}" end a literal that includes one brace. */
bool spec_next_piece(const char **t, struct str *literal, bool *ret_field, struct spec_field *field,
                     struct err *err)
{
    const char *p = *t;
    size_t n = strcspn(p, "{}");
    *ret_field = false;
    if (p[n] == '\0') {
        *literal = (struct str){p, n};
        *t = p + n;
        return true;
    }
    if (p[n] == '}' || p[n + 1] == '{') { /* "{{", "}}", or a lone "}" that stands for itself */
        *literal = (struct str){p, n + 1};
        *t = p + n + (p[n + 1] == p[n] ? 2 : 1);
        return true;
    }
    *literal = (struct str){p, n};
    const char *name = p + n + 1;
    size_t len = strcspn(name, "{}");
    if (name[len] != '}') {
        return err_set(err, ERR_INVALID, "'%.40s' opens a brace that is not closed", p + n);
    }
    struct str inside = {name, len};
    const char *colon = memchr(name, ':', len);
    field->name = colon == NULL ? inside : str_split(&inside, ':');
    field->format = colon == NULL ? (struct str){name + len, 0} : inside;
    *ret_field = true;
    *t = name + len + 1;
    return true;
}

enum builtin { B_PART, B_URI, B_FILE_NAME, B_STEM, B_SIZE, B_ATTEMPT, B_CAMPAIGN, B_STAGE, B_NONE };
static const char *const builtin_names[B_NONE] = {
    [B_PART] = "part", [B_URI] = "uri",         [B_FILE_NAME] = "file_name", [B_STEM] = "stem",
    [B_SIZE] = "size", [B_ATTEMPT] = "attempt", [B_CAMPAIGN] = "campaign",   [B_STAGE] = "stage",
};

static enum builtin builtin_of(struct str name)
{
    for (int i = 0; i < B_NONE; i++) {
        if (str_eq_cstr(name, builtin_names[i])) {
            return (enum builtin)i;
        }
    }
    return B_NONE;
}

bool spec_is_task_variable(struct str name)
{
    return builtin_of(name) != B_NONE;
}

/* True when no two files that the stage's pattern finds have one name, or one stem. Parts that are
 * sent to droverd may have any file. */
static bool tells_files_apart(const struct spec_stage *s, bool stem)
{
    const char *star = s->fan_out == FAN_OUT_S3 ? strchr(s->fan_out_from, '*') : NULL;
    if (star == NULL) {
        return true;
    }
    bool one_folder = strstr(star, "**") == NULL && strchr(star, '/') == NULL;
    return one_folder && (!stem || strchr(strrchr(star, '*'), '.') != NULL);
}

static bool tells_tasks_apart(const struct spec_stage *s, struct str name)
{
    static const char *const shared[] = {"campaign", "stage", "attempt", "size"};
    for (size_t i = 0; i < ARRAY_LEN(shared); i++) {
        if (str_eq_cstr(name, shared[i])) {
            return false;
        }
    }
    bool stem = str_eq_cstr(name, "stem");
    return (!stem && !str_eq_cstr(name, "file_name")) || tells_files_apart(s, stem);
}

bool spec_names_the_task(const struct spec_stage *s, const char *template)
{
    const char *t = template;
    while (*t != '\0') {
        struct str literal;
        struct spec_field f;
        bool has_field;
        if (!spec_next_piece(&t, &literal, &has_field, &f, NULL)) {
            return false;
        }
        if (has_field && tells_tasks_apart(s, f.name)) {
            return true;
        }
    }
    return false;
}

static bool is_number(enum builtin b)
{
    return b == B_PART || b == B_SIZE || b == B_ATTEMPT || b == B_CAMPAIGN;
}

/* "05d", "5d", "d": zero-padded or blank-padded decimal. */
static bool parse_format(struct str f, bool *ret_zero, int *ret_width)
{
    if (f.n == 0 || f.p[f.n - 1] != 'd') {
        return false;
    }
    f.n--;
    *ret_zero = f.n > 0 && f.p[0] == '0';
    int64_t width = 0;
    struct err ignored = ERR_INIT;
    if (f.n > 0 && !parse_i64(f, 0, FORMAT_WIDTH_MAX, &width, &ignored)) {
        return false;
    }
    *ret_width = (int)width;
    return true;
}

static bool add_number(struct buf *out, const struct spec_field *f, int64_t value, struct err *err)
{
    bool zero = false;
    int width = 0;
    if (f->format.n > 0 && !parse_format(f->format, &zero, &width)) {
        return err_set(err, ERR_INVALID,
                       "'{" STR_FMT ":" STR_FMT "}' has a format that is not like 05d",
                       STR_ARG(f->name), STR_ARG(f->format));
    }
    if (zero) {
        buf_addf(out, "%0*lld", width, (long long)value);
    } else {
        buf_addf(out, "%*lld", width, (long long)value);
    }
    return true;
}

static struct str file_name_of(struct str uri)
{
    size_t start = uri.n;
    while (start > 0 && uri.p[start - 1] != '/') {
        start--;
    }
    return (struct str){uri.p + start, uri.n - start};
}

static struct str stem_of(struct str file_name)
{
    for (size_t i = file_name.n; i > 1; i--) {
        if (file_name.p[i - 1] == '.') {
            return (struct str){file_name.p, i - 1};
        }
    }
    return file_name;
}

static bool add_builtin(struct buf *out, enum builtin b, const struct spec_field *f,
                        const struct spec_task *t, struct err *err)
{
    if (!is_number(b) && f->format.n > 0) {
        return err_set(err, ERR_INVALID, "'" STR_FMT "' is text and takes no format",
                       STR_ARG(f->name));
    }
    struct str uri = str_of(t->uri == NULL ? "" : t->uri);
    switch (b) {
    case B_PART:
        return add_number(out, f, t->seq, err);
    case B_SIZE:
        return add_number(out, f, t->size, err);
    case B_ATTEMPT:
        return add_number(out, f, t->attempt_n, err);
    case B_CAMPAIGN:
        return add_number(out, f, t->campaign_id, err);
    case B_URI:
        buf_add_str(out, uri);
        return true;
    case B_FILE_NAME:
        buf_add_str(out, file_name_of(uri));
        return true;
    case B_STEM:
        buf_add_str(out, stem_of(file_name_of(uri)));
        return true;
    case B_STAGE:
        buf_add_cstr(out, t->stage_name);
        return true;
    case B_NONE:
        break;
    }
    return err_set(err, ERR_INVALID, "unknown variable");
}

static const char *var_of(const json_t *vars, struct str name)
{
    char key[128];
    if (vars == NULL || name.n >= sizeof key) {
        return NULL;
    }
    memcpy(key, name.p, name.n);
    key[name.n] = '\0';
    return json_string_value(json_object_get(vars, key));
}

static bool unknown_variable(struct str name, struct err *err)
{
    return err_set(err, ERR_INVALID,
                   "'{" STR_FMT "}' is no known variable; known are part, uri, file_name, stem, "
                   "size, attempt, campaign and stage",
                   (int)MIN(name.n, (size_t)64), name.p);
}

bool spec_expand(const char *template, const struct spec_task *t, struct buf *out, struct err *err)
{
    const char *p = template;
    while (*p != '\0') {
        struct str literal;
        struct spec_field f;
        bool has_field;
        if (!spec_next_piece(&p, &literal, &has_field, &f, err)) {
            return false;
        }
        buf_add_str(out, literal);
        if (!has_field) {
            continue;
        }
        enum builtin b = builtin_of(f.name);
        const char *var = b == B_NONE ? var_of(t->vars, f.name) : NULL;
        if (b == B_NONE && var == NULL) {
            return unknown_variable(f.name, err);
        }
        if (b != B_NONE && !add_builtin(out, b, &f, t, err)) {
            return false;
        }
        if (var != NULL && f.format.n > 0) {
            return err_set(err, ERR_INVALID, "'" STR_FMT "' is text and takes no format",
                           STR_ARG(f.name));
        }
        buf_add_cstr(out, var == NULL ? "" : var);
    }
    if (out->overflow) {
        return err_set(err, ERR_LIMIT, "'%.60s' grows too long", template);
    }
    return true;
}

bool spec_expand_check(const char *template, const json_t *vars, struct err *err)
{
    const struct spec_task probe = {.stage_name = "x", .uri = "s3://x/x", .vars = vars};
    AUTO_BUF struct buf out = BUF_INIT(SPEC_TEXT_MAX);
    return spec_expand(template, &probe, &out, err);
}

/* Backtracks to the last '*' only: linear in practice, quadratic at worst. '**' is tried where '*'
 * would have to cross a '/'. */
static bool glob_at(const char *g, const char *k)
{
    const char *star_g = NULL;
    const char *star_k = NULL;
    const char *wide_g = NULL;
    const char *wide_k = NULL;
    for (;;) {
        if (g[0] == '*' && g[1] == '*') {
            g += strspn(g, "*");
            wide_g = g;
            wide_k = k;
            star_g = NULL;
        } else if (*g == '*') {
            star_g = ++g;
            star_k = k;
        } else if (*g == *k) {
            if (*g == '\0') {
                return true;
            }
            g++;
            k++;
        } else if (star_g != NULL && *star_k != '\0' && *star_k != '/') {
            g = star_g;
            k = ++star_k;
        } else if (wide_g != NULL && *wide_k != '\0') {
            g = wide_g;
            k = ++wide_k;
            star_g = NULL;
        } else {
            return false;
        }
    }
}

static bool ends_in_slash(const char *s)
{
    size_t n = strlen(s);
    return n > 0 && s[n - 1] == '/';
}

bool spec_glob_match(const char *glob, const char *key)
{
    if (ends_in_slash(key) && !ends_in_slash(glob)) {
        return false;
    }
    if (strncmp(glob, "s3://", 5) == 0 && strncmp(key, "s3://", 5) != 0) {
        const char *slash = strchr(glob + 5, '/');
        if (slash == NULL) {
            return false;
        }
        glob = slash + 1;
    }
    return glob_at(glob, key);
}
