/* See pages.h. */
#include "pages.h"
#include "client.h"
#include "print.h"
#include "table.h"
#include <stdio.h>

#define PAGE_ROWS_MAX 1000
#define SHELL_PLAIN   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_,.:/@%+-"

char *pages_query(const char *const (*pairs)[2], size_t n)
{
    AUTO_BUF struct buf b = BUF_INIT(4096);
    for (size_t i = 0; i < n; i++) {
        if (pairs[i][1] != NULL) {
            buf_addf(&b, "&%s=", pairs[i][0]);
            str_url_encode(&b, str_of(pairs[i][1]), false);
        }
    }
    return xstrdup(b.n > 0 ? buf_cstr(&b) : "");
}

static void option_add(struct buf *b, const char *name, const char *value)
{
    if (value == NULL) {
        return;
    }
    buf_addf(b, " --%s ", name);
    if (value[0] != '\0' && value[strspn(value, SHELL_PLAIN)] == '\0') {
        buf_add_cstr(b, value);
        return;
    }
    buf_add_cstr(b, "'");
    for (const char *c = value; *c != '\0'; c++) {
        buf_addf(b, *c == '\'' ? "'\\''" : "%c", *c);
    }
    buf_add_cstr(b, "'");
}

/* The same command for more rows, as it is pasted into a shell. The caller frees it. */
static char *more_of(const struct cli *cli, const struct pages *p, const char *sort)
{
    const struct cli_options *o = &cli->opt;
    const char *const options[][2] = {{"state", o->state},     {"cause", o->cause},
                                      {"filter", o->filter},   {"campaign", o->campaign},
                                      {"who", o->who},         {"action", o->action},
                                      {"columns", o->columns}, {"sort", sort}};
    AUTO_BUF struct buf b = BUF_INIT(1 << 16);
    buf_add_cstr(&b, p->more);
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        option_add(&b, options[i][0], options[i][1]);
    }
    return xasprintf("%s -n %lld, or -o jsonl", buf_cstr(&b), (long long)p->most);
}

static bool sorted_here(const struct cli *cli, const struct pages *p)
{
    return p->sorts_here && cli->opt.sort != NULL;
}

/* A page, printed at once. False for JSON, tables and what is sorted here, which need all of them.
 */
static bool page_print(const struct cli *cli, const struct pages *p, const json_t *rows, bool first)
{
    if (sorted_here(cli, p)) {
        return false;
    }
    if (cli->out == OUT_JSONL) {
        print_lines(rows);
    } else if (cli->out == OUT_NAME) {
        list_names(cli, p->list, rows);
    } else if (cli->csv) {
        list_csv(cli, p->list, rows, first);
    } else {
        return false;
    }
    return true;
}

static void all_print(const struct cli *cli, const struct pages *p, json_t *all, const char *next,
                      const char *more)
{
    int ignored;
    if (cli->out == OUT_JSON) {
        AUTO_JSON json_t *o = json_object();
        (void)json_object_set(o, p->key, all);
        (void)json_object_set_new(o, "next_page_token",
                                  next[0] != '\0' ? json_string(next) : json_null());
        print_json(cli, o);
    } else if (cli->out == OUT_TABLE && !cli->csv) {
        if (p->above != NULL) {
            p->above(cli, all);
        }
        list_table(cli, p->list, all);
        if (json_array_size(all) == 0 && p->none != NULL) {
            say("%s", p->none);
        }
        if (next[0] != '\0') {
            say("there are more; next: %s", more);
        }
    } else if (sorted_here(cli, p)) {
        bool printed = list_machine(cli, p->list, NULL, all, &ignored);
        ASSERT(printed);
    }
}

/* "&order_by=id%20desc" of --sort, which the server orders: only it has all rows. */
static char *order_query(struct cli *cli, const struct pages *p)
{
    const char *sort = cli->opt.sort;
    if (sort == NULL || p->sorts_here) {
        return xstrdup("");
    }
    bool down = sort[0] == '-';
    AUTO_FREE char *order =
        xasprintf("%s%s", list_column_member(p->list, sort + down), down ? " desc" : "");
    cli->opt.sort = NULL;
    return pages_query((const char *const[][2]){{"order_by", order}}, 1);
}

int pages_print(struct cli *cli, const struct pages *p)
{
    int status = EXIT_OK;
    bool screen = cli->out == OUT_TABLE && !cli->csv;
    int64_t left = cli->opt.limit > 0 ? cli->opt.limit : screen ? p->screen : INT64_MAX;
    AUTO_FREE char *token = xstrdup("");
    AUTO_JSON json_t *all = json_array();
    if (!list_columns_check(cli, p->list, &status)) {
        return status;
    }
    AUTO_FREE char *more = more_of(cli, p, cli->opt.sort);
    AUTO_FREE char *order = order_query(cli, p);
    for (bool first = true; left > 0 && !ferror(stdout) && (first || token[0] != '\0');
         first = false) {
        CLEANUP(reply_done)
        struct client_reply r = {0};
        if (!client_get(cli, &r, &status, "%s?page_size=%lld%s%s%s%s", p->path,
                        (long long)MIN(left, PAGE_ROWS_MAX), p->query, order,
                        token[0] != '\0' ? "&page_token=" : "", token)) {
            return status;
        }
        json_t *rows = json_object_get(r.json, p->key);
        left -= (int64_t)json_array_size(rows);
        free(token);
        token = xstrdup(jstr(r.json, "next_page_token"));
        if (!page_print(cli, p, rows, first)) {
            (void)json_array_extend(all, rows);
        }
    }
    all_print(cli, p, all, token, more);
    return EXIT_OK;
}
