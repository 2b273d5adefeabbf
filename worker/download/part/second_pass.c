/* Settings that name the input or its columns give way to the output's: sidecars have the columns
 * url and caption, and all additional ones under their own names. */
#include "second_pass.h"
#include "common/cleanup.h"
#include "duck.h"
#include "job/settings.h"

#define SUFFIX "-retry"

/* Texts of failures that another attempt would not change. Plain text, also in SQL. */
static const char *const final_begins[] = {"HTTP Error 404:", "HTTP Error 410:"};
static const char *const final_contains[] = {"X-Robots-Tag", "unknown url type",
                                             "address not allowed", "user name in url"};

bool second_pass_is_final(const char *error_message)
{
    bool is = false;
    for (size_t i = 0; i < ARRAY_LEN(final_begins); i++) {
        is = is || str_starts(str_of(error_message), final_begins[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(final_contains); i++) {
        is = is || strstr(error_message, final_contains[i]) != NULL;
    }
    return is;
}

void second_pass_final_sql(struct buf *sql, const char *column)
{
    buf_add_cstr(sql, "(false");
    for (size_t i = 0; i < ARRAY_LEN(final_begins) + ARRAY_LEN(final_contains); i++) {
        bool begins = i < ARRAY_LEN(final_begins);
        buf_addf(sql, " OR %s(coalesce(", begins ? "starts_with" : "contains");
        duck_quote_identifier(sql, column);
        buf_addf(sql, ", ''), '%s')",
                 begins ? final_begins[i] : final_contains[i - ARRAY_LEN(final_begins)]);
    }
    buf_add_cstr(sql, ")");
}

struct shell_line {
    struct buf *out;
    size_t column, columns;
};

static bool is_plain(const char *s)
{
    const char *safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    return s[0] != '\0' && strspn(s, safe) == strlen(s);
}

/* In single quotes unless plain. */
static void add_quoted(struct buf *b, const char *s)
{
    if (is_plain(s)) {
        buf_add_cstr(b, s);
        return;
    }
    buf_add_char(b, '\'');
    for (const char *p = s; *p != '\0'; p++) {
        if (*p == '\'') {
            buf_add_cstr(b, "'\\''");
        } else {
            buf_add_char(b, *p);
        }
    }
    buf_add_char(b, '\'');
}

/* Add "--name value" (value NULL: the name alone), on a new line when it does not fit with " \". */
static void add_option(struct shell_line *c, const char *name, const char *value)
{
    AUTO_BUF struct buf word = BUF_INIT(SECOND_PASS_BYTES_MAX);
    buf_addf(&word, "--%s", name);
    if (value != NULL) {
        buf_add_char(&word, ' ');
        add_quoted(&word, value);
    }
    if (c->columns > 0 && c->column + 1 + word.n + 2 > c->columns) {
        buf_add_cstr(c->out, " \\\n     ");
        c->column = 5;
    }
    buf_addf(c->out, " %s", buf_cstr(&word));
    c->column += 1 + word.n;
}

/* The default of caption_col finds the sidecars' caption, unless another name goes before it. */
static const char *caption_col(const struct download_options *o)
{
    if (o->caption_col[0] == '\0') {
        return "None";
    }
    for (int i = 0; i < o->extra_columns_n; i++) {
        if (strcmp(o->extra_columns[i], "TEXT") == 0 || strcmp(o->extra_columns[i], "text") == 0) {
            return "caption";
        }
    }
    return NULL;
}

bool second_pass_drops_hash(const struct download_options *o)
{
    bool saved = o->verify_col == NULL;
    for (int i = 0; i < o->extra_columns_n; i++) {
        saved = saved || strcmp(o->extra_columns[i], o->verify_col) == 0;
    }
    return !saved;
}

char *second_pass_folder(const char *output)
{
    struct str s = str_of(output);
    bool is_s3 = str_starts(s, "s3://");
    while (s.n > (is_s3 ? strlen("s3://") : 1) && s.p[s.n - 1] == '/') {
        s.n--;
    }
    bool bucket = is_s3 && memchr(s.p + 5, '/', s.n - 5) == NULL;
    bool dots =
        str_eq_cstr(s, ".") || str_eq_cstr(s, "/") || str_ends(s, "..") || str_ends(s, "/.");
    if (bucket || dots) {
        return xasprintf("%.*s%sretry", (int)s.n, s.p, str_ends(s, "/") ? "" : "/");
    }
    size_t digits = 0;
    while (digits < 3 && digits < s.n && s.p[s.n - digits - 1] >= '0' &&
           s.p[s.n - digits - 1] <= '9') {
        digits++;
    }
    struct str name = {s.p, s.n - digits};
    if (!str_ends(name, SUFFIX)) {
        return xasprintf("%.*s" SUFFIX, (int)s.n, s.p);
    }
    int64_t pass = 1;
    for (size_t i = name.n; i < s.n; i++) {
        pass = (i == name.n ? 0 : pass * 10) + (s.p[i] - '0');
    }
    return xasprintf("%.*s%lld", (int)name.n, name.p, (long long)pass + 1);
}

bool second_pass_command(const struct download_options *o, const char *program, size_t columns,
                         struct buf *out)
{
    static const char *const replaced[] = {
        "url_list",    "output_folder",    "input_format", "url_col",      "caption_col",
        "verify_hash", "incremental_mode", "retry_failed", "enable_wandb", "wandb_project"};
    size_t n;
    const struct setting *rows = options_rows(&n);
    size_t begin = out->n;
    AUTO_FREE char *folder = second_pass_folder(o->output_folder);
    if (o->output == OUTPUT_DUMMY) {
        return false;
    }
    add_quoted(out, program);
    buf_add_cstr(out, " download");
    struct shell_line c = {out, out->n - begin, columns};
    add_option(&c, "url_list", o->output_folder);
    add_option(&c, "output_folder", folder);
    add_option(&c, "retry_failed", NULL);
    if (caption_col(o) != NULL) {
        add_option(&c, "caption_col", caption_col(o));
    }
    if (o->verify_col != NULL && !second_pass_drops_hash(o)) {
        add_option(&c, "verify_hash", o->verify_hash);
    }
    for (size_t i = 0; i < n; i++) {
        bool skip = settings_is_default(&rows[i], o);
        for (size_t k = 0; k < ARRAY_LEN(replaced); k++) {
            skip = skip || strcmp(rows[i].name, replaced[k]) == 0;
        }
        if (!skip) {
            char number[64];
            const char *v = settings_text(&rows[i], o, number);
            add_option(&c, rows[i].name, v[0] != '\0' ? v : "None");
        }
    }
    return true;
}
