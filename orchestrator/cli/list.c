/* See list.h. */
#include "list.h"
#include "print.h"
#include "table.h"
#include <stdio.h>

#define LAST_COLUMN_MIN 12

bool list_limit_check(const struct cli *cli, int64_t max, int *ret_exit)
{
    if (cli->opt.limit > max) {
        AUTO_FREE char *next = xasprintf("write -n %lld or less", (long long)max);
        *ret_exit = fail(EXIT_USAGE, next, "--limit: an answer has at most %lld, not %lld",
                         (long long)max, (long long)cli->opt.limit);
    }
    return cli->opt.limit <= max;
}

bool list_rows(const struct cli *cli, int64_t screen, int64_t *ret, int *ret_exit)
{
    bool people = cli->out == OUT_TABLE && !cli->csv;
    *ret = cli->opt.limit > 0 ? cli->opt.limit : people ? screen : LIST_ROWS_MAX;
    return list_limit_check(cli, LIST_ROWS_MAX, ret_exit);
}

void list_more(const struct cli *cli, const json_t *rows, int64_t asked)
{
    if ((int64_t)json_array_size(rows) < asked) {
        return;
    }
    if (asked < LIST_ROWS_MAX) {
        say("there may be more; next: drover %s -o csv, which has up to %d", cli->command->verb,
            LIST_ROWS_MAX);
    } else {
        say("there may be more than these %lld, which is all that an answer has", (long long)asked);
    }
}

struct chosen {
    const struct list_column *at[TABLE_COLUMNS_MAX];
    int n;
};

char *list_instances(const struct cli *cli, const json_t *row)
{
    (void)cli;
    return xasprintf("%lld x %s", (long long)jint(row, "instances"), jstr(row, "instance_type"));
}

static bool head_is(const char *head, struct str name)
{
    bool same = strlen(head) == name.n;
    for (size_t i = 0; same && i < name.n; i++) {
        char c = name.p[i] == '_' ? ' ' : name.p[i];
        same = head[i] == (c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    }
    return same;
}

static const struct list_column *column_find(const struct api_list *l, struct str name)
{
    for (size_t i = 0; i < l->columns_n; i++) {
        if (head_is(l->columns[i].head, name)) {
            return &l->columns[i];
        }
    }
    return NULL;
}

static bool column_unknown(const struct api_list *l, const char *option, struct str name,
                           int *ret_exit)
{
    AUTO_BUF struct buf all = BUF_INIT(1024);
    size_t line = strlen("  next: choose from ");
    buf_add_cstr(&all, "choose from ");
    for (size_t i = 0; i < l->columns_n; i++) {
        bool wrap = line + strlen(l->columns[i].head) + 2 > 78;
        line = (wrap ? 2 : line) + strlen(l->columns[i].head) + 2;
        buf_addf(&all, "%s%s%s", wrap ? "\n  " : "", l->columns[i].head,
                 i + 1 < l->columns_n ? ", " : "");
    }
    *ret_exit = fail(EXIT_USAGE, buf_cstr(&all), "%s: there is no column '%.*s'", option,
                     (int)MIN(name.n, 40), name.p);
    return false;
}

/* The columns of --columns in its order; else those of the output. */
static bool choose(const struct cli *cli, const struct api_list *l, struct chosen *ret,
                   int *ret_exit)
{
    *ret = (struct chosen){0};
    struct str rest = str_of(cli->opt.columns != NULL ? cli->opt.columns : "");
    ASSERT(l->columns_n <= TABLE_COLUMNS_MAX);
    for (int late = 0; cli->opt.columns == NULL && late < 2; late++) {
        for (size_t i = 0; i < l->columns_n; i++) {
            const struct list_column *c = &l->columns[i];
            if ((cli->csv && c->csv_last) == (late == 1) && (!c->wide || cli->wide || cli->csv)) {
                ret->at[ret->n++] = c;
            }
        }
    }
    while (cli->opt.columns != NULL && (rest.n > 0 || ret->n == 0)) {
        struct str name = str_trim(str_split(&rest, ','));
        const struct list_column *c = column_find(l, name);
        if (c == NULL) {
            return column_unknown(l, "--columns", name, ret_exit);
        }
        if (ret->n == TABLE_COLUMNS_MAX) {
            *ret_exit = fail(EXIT_USAGE, "name each column once", "--columns: at most %d columns",
                             TABLE_COLUMNS_MAX);
            return false;
        }
        ret->at[ret->n++] = c;
    }
    return true;
}

/* The column of --sort without its minus; NULL: there is none of that name. */
static const struct list_column *sort_column(const struct cli *cli, const struct api_list *l)
{
    const char *name = cli->opt.sort;
    return column_find(l, str_of(name[0] == '-' ? name + 1 : name));
}

const char *list_column_member(const struct api_list *l, const char *column)
{
    const struct list_column *c = column_find(l, str_of(column));
    return c != NULL && c->path != NULL ? c->path : column;
}

bool list_columns_check(const struct cli *cli, const struct api_list *l, int *ret_exit)
{
    struct chosen ignored;
    return choose(cli, l, &ignored, ret_exit) &&
           (cli->opt.sort == NULL || sort_column(cli, l) != NULL ||
            column_unknown(l, "--sort", str_of(cli->opt.sort), ret_exit));
}

static const json_t *value_at(const json_t *row, const char *path)
{
    struct str rest = str_of(path);
    while (rest.n > 0 && row != NULL) {
        struct str key = str_split(&rest, '.');
        row = json_object_getn(row, key.p, key.n);
    }
    return row;
}

static bool is_figure(const struct list_column *c)
{
    return c->kind >= COLUMN_NUMBER;
}

/* For people. The caller frees it. */
static char *cell_shown(const struct cli *cli, const struct list_column *c, const json_t *row)
{
    if (c->text != NULL) {
        return c->text(cli, row);
    }
    char buf[TEXT_N];
    const json_t *v = value_at(row, c->path);
    const char *s = json_string_value(v);
    if (is_figure(c) && !json_is_number(v)) {
        return xstrdup("-");
    }
    switch (c->kind) {
    case COLUMN_TEXT:
        break;
    case COLUMN_STATE:
        return s != NULL ? xasprintf("%s %s", glyph(cli, s), s) : xstrdup("");
    case COLUMN_TIME:
        return xstrdup(when(s != NULL ? s : "", buf));
    case COLUMN_NUMBER:
        return xstrdup(number(json_integer_value(v), buf));
    case COLUMN_REAL:
        return xasprintf("%.6g", json_number_value(v));
    case COLUMN_RATIO:
        return xasprintf("%.1f %%", 100 * json_number_value(v));
    case COLUMN_SPAN:
        return xstrdup(duration(json_number_value(v), buf));
    case COLUMN_USD:
        return xstrdup(money(json_integer_value(v), buf));
    }
    return xstrdup(s != NULL ? s : "");
}

struct sorted_row {
    json_t *row;
    const json_t *value; /* NULL: text */
    char *text;
    size_t i; /* ties keep the order of the answer */
    bool down;
};

static int value_cmp(const struct sorted_row *a, const struct sorted_row *b)
{
    const char *x = a->text != NULL ? a->text : json_string_value(a->value);
    const char *y = b->text != NULL ? b->text : json_string_value(b->value);
    if (x != NULL && y != NULL) {
        return strcmp(x, y);
    }
    double p = json_number_value(a->value), q = json_number_value(b->value);
    return (p > q) - (p < q);
}

/* Rows without a value are the last ones, up or down. */
static int sorted_cmp(const void *a, const void *b)
{
    const struct sorted_row *x = a, *y = b;
    bool no_x = x->text == NULL && (x->value == NULL || json_is_null(x->value));
    bool no_y = y->text == NULL && (y->value == NULL || json_is_null(y->value));
    int cmp = no_x || no_y ? no_x - no_y : x->down ? -value_cmp(x, y) : value_cmp(x, y);
    return cmp != 0 ? cmp : (x->i > y->i) - (x->i < y->i);
}

/* The rows in the order of --sort. The caller decrefs them. */
static json_t *sorted(const struct cli *cli, const struct api_list *l, const json_t *rows)
{
    size_t i, n = json_array_size(rows);
    json_t *row, *ret = json_array();
    const struct list_column *c = cli->opt.sort != NULL ? sort_column(cli, l) : NULL;
    struct sorted_row *at = xcalloc(n + 1, sizeof *at);
    json_array_foreach(rows, i, row)
    {
        bool by_text = c != NULL && c->path == NULL;
        at[i] = (struct sorted_row){.row = row,
                                    .value = c != NULL && !by_text ? value_at(row, c->path) : NULL,
                                    .text = by_text ? c->text(cli, row) : NULL,
                                    .i = i,
                                    .down = c != NULL && cli->opt.sort[0] == '-'};
    }
    qsort(at, n, sizeof *at, sorted_cmp);
    for (i = 0; i < n; i++) {
        (void)json_array_append(ret, at[i].row);
        free(at[i].text);
    }
    free(at);
    return ret;
}

static void widths_of(const struct cli *cli, const struct chosen *c, const json_t *rows,
                      size_t widths[static TABLE_COLUMNS_MAX])
{
    size_t i;
    json_t *row;
    for (int k = 0; k < c->n; k++) {
        widths[k] = text_width(c->at[k]->head);
        json_array_foreach(rows, i, row)
        {
            AUTO_FREE char *cell = cell_shown(cli, c->at[k], row);
            widths[k] = MAX(widths[k], text_width(cell));
        }
    }
}

/* The last column is cut where the terminal ends, but not to less than this. */
static bool has_room(const struct cli *cli, const size_t *widths, int n)
{
    size_t sum = 0;
    for (int k = 0; k < n; k++) {
        sum += k + 1 < n ? widths[k] + 2 : MIN(widths[k], LAST_COLUMN_MIN);
    }
    return sum <= (size_t)cli->width;
}

/* Leaves out what a narrow terminal has no room for; -o wide and --columns show it. */
static void narrow(const struct cli *cli, const json_t *rows, struct chosen *c)
{
    size_t widths[TABLE_COLUMNS_MAX];
    if (!cli->out_tty || cli->wide || cli->opt.columns != NULL) {
        return;
    }
    widths_of(cli, c, rows, widths);
    while (!has_room(cli, widths, c->n)) {
        ASSERT(c->n > 0);
        int worst = 0;
        for (int k = 1; k < c->n; k++) {
            worst = c->at[k]->spare > c->at[worst]->spare ? k : worst;
        }
        if (c->at[worst]->spare == 0) {
            return;
        }
        c->n--;
        for (int k = worst; k < c->n; k++) {
            c->at[k] = c->at[k + 1];
            widths[k] = widths[k + 1];
        }
    }
}

void list_table(const struct cli *cli, const struct api_list *l, const json_t *answer)
{
    int ignored;
    size_t i;
    json_t *row;
    struct chosen c;
    struct text_table t = {0};
    AUTO_JSON json_t *rows = sorted(cli, l, answer);
    if (!choose(cli, l, &c, &ignored)) {
        return;
    }
    narrow(cli, rows, &c);
    for (int k = 0; k < c.n; k++) {
        table_column(&t, c.at[k]->head, is_figure(c.at[k]));
    }
    json_array_foreach(rows, i, row)
    {
        char *cells[TABLE_COLUMNS_MAX] = {0};
        for (int k = 0; k < c.n; k++) {
            cells[k] = cell_shown(cli, c.at[k], row);
        }
        table_row(&t, (const char *const *)cells);
        for (int k = 0; k < c.n; k++) {
            free(cells[k]);
        }
    }
    table_print(cli, &t);
}

/* A spreadsheet calculates a cell that begins like this, also behind blanks and as the wide forms
 * of these characters (U+FF1D, U+FF0B, U+FF0D, U+FF20). */
static bool is_formula(const char *s)
{
    static const char *const wide[] = {"\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d",
                                       "\xef\xbc\xa0"};
    s += strspn(s, " ");
    bool found = s[0] != '\0' && strchr("=+-@", s[0]) != NULL;
    for (size_t i = 0; i < ARRAY_LEN(wide); i++) {
        found |= strncmp(s, wide[i], 3) == 0;
    }
    return found;
}

/* RFC 4180. Text that a spreadsheet would calculate gets an apostrophe in front; figures are
 * printed here from numbers and stay numbers. Control characters are gone (text_clean). */
static void csv_text(const char *text)
{
    AUTO_FREE char *clean = text_clean(text);
    bool formula = is_formula(clean);
    bool quoted = formula || strpbrk(clean, ",;\"") != NULL;
    (void)fputs(quoted ? "\"" : "", stdout);
    (void)fputs(formula ? "'" : "", stdout);
    for (const char *s = clean; *s != '\0'; s++) {
        (void)fputs(*s == '"' ? "\"" : "", stdout);
        (void)putchar(*s);
    }
    (void)fputs(quoted ? "\"" : "", stdout);
}

static void csv_digits(const char *text)
{
    (void)fputs(text, stdout);
}

static void csv_cell(const struct cli *cli, const struct list_column *c, const json_t *row)
{
    const json_t *v = c->path != NULL ? value_at(row, c->path) : NULL;
    if (c->text != NULL && c->path == NULL) {
        AUTO_FREE char *text = c->text(cli, row);
        (is_figure(c) ? csv_digits : csv_text)(text);
    } else if (!is_figure(c)) {
        csv_text(json_is_string(v) ? json_string_value(v) : "");
    } else if (c->kind == COLUMN_USD && json_is_integer(v)) {
        int64_t musd = json_integer_value(v);
        (void)printf("%s%lld.%06lld", musd < 0 ? "-" : "", llabs(musd / MUSD_PER_USD),
                     llabs(musd % MUSD_PER_USD));
    } else if (json_is_integer(v)) {
        int64_t more = c->csv_with != NULL ? json_integer_value(value_at(row, c->csv_with)) : 0;
        (void)printf("%lld", (long long)(json_integer_value(v) + more));
    } else if (json_is_real(v)) {
        (void)printf("%.15g", json_real_value(v));
    }
}

void list_csv(const struct cli *cli, const struct api_list *l, const json_t *rows, bool first)
{
    int ignored;
    size_t i;
    json_t *row;
    struct chosen c;
    if (!choose(cli, l, &c, &ignored)) {
        return;
    }
    for (int k = 0; first && k < c.n; k++) {
        (void)fputs(k > 0 ? "," : "", stdout);
        csv_text(c.at[k]->head);
    }
    (void)fputs(first ? "\r\n" : "", stdout);
    json_array_foreach(rows, i, row)
    {
        for (int k = 0; k < c.n; k++) {
            (void)fputs(k > 0 ? "," : "", stdout);
            csv_cell(cli, c.at[k], row);
        }
        (void)fputs("\r\n", stdout);
    }
}

void list_names(const struct cli *cli, const struct api_list *l, const json_t *rows)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        const char *s = json_string_value(value_at(row, l->name));
        AUTO_FREE char *text =
            l->name_text != NULL ? l->name_text(cli, row) : xstrdup(s != NULL ? s : "");
        AUTO_FREE char *name = text_clean(text);
        (void)puts(name);
    }
}

bool list_machine(const struct cli *cli, const struct api_list *l, const json_t *answer,
                  const json_t *rows, int *ret_exit)
{
    *ret_exit = EXIT_OK;
    if (!list_columns_check(cli, l, ret_exit)) {
        return true;
    }
    if (print_machine(cli, answer, rows)) {
        return true;
    }
    AUTO_JSON json_t *in_order = sorted(cli, l, rows);
    if (cli->out == OUT_NAME) {
        list_names(cli, l, in_order);
        return true;
    }
    if (cli->csv) {
        list_csv(cli, l, in_order, true);
    }
    return cli->csv;
}
