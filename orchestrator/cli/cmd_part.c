/* drover parts, and one part for drover get. */
#include "cmd_part.h"
#include "cli.h"
#include "client.h"
#include "print.h"
#include "ref.h"
#include "table.h"
#include <stdio.h>

/* The attempts in two tables, the runs and the results, so that both fit a narrow terminal. */
static void tries_print(const struct cli *cli, const json_t *list)
{
    struct text_table t = {0};
    struct text_table why = {0};
    static const char *const heads[] = {"TRY", "STATE", "CAUSE", "USD", "SECONDS", "JOB"};
    static const char *const why_heads[] = {"TRY", "STARTED", "REASON"};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        table_column(&t, heads[i], i == 0 || i == 3 || i == 4);
    }
    for (size_t i = 0; i < ARRAY_LEN(why_heads); i++) {
        table_column(&why, why_heads[i], i == 0);
    }
    size_t i;
    json_t *a;
    json_array_foreach(list, i, a)
    {
        char n[TEXT_N], s[TEXT_N], at[TEXT_N], usd[TEXT_N];
        (void)number(jint(a, "n"), n);
        table_row(&t, (const char *const[]){n, jstr(a, "state"), jstr(a, "cause"),
                                            money(jint(a, "cost_micro_usd"), usd),
                                            number(jint(a, "billable_seconds"), s),
                                            jstr(a, "job_name")});
        table_row(&why,
                  (const char *const[]){n, when(jstr(a, "started_at"), at), jstr(a, "reason")});
    }
    table_print(cli, &t);
    table_print(cli, &why);
}

/* How long each phase of the attempts took. */
static void phases_print(const struct cli *cli, const json_t *list)
{
    struct text_table t = {0};
    static const char *const heads[] = {"TRY",  "WAIT",     "START", "IMAGE",
                                        "DATA", "TRAINING", "UPLOAD"};
    size_t i, measured = 0;
    json_t *a;
    json_array_foreach(list, i, a)
    {
        measured += json_array_size(json_object_get(a, "phases"));
    }
    if (measured == 0) {
        return;
    }
    for (i = 0; i < ARRAY_LEN(heads); i++) {
        table_column(&t, heads[i], true);
    }
    json_array_foreach(list, i, a)
    {
        char texts[ARRAY_LEN(heads)][TEXT_N];
        const char *cells[ARRAY_LEN(heads)] = {number(jint(a, "n"), texts[0])};
        const json_t *phases = json_object_get(a, "phases");
        for (size_t k = 1; k < ARRAY_LEN(heads); k++) {
            const json_t *p = json_array_get(phases, k - 1);
            cells[k] = p == NULL ? "-" : elapsed(p, texts[k]);
        }
        table_row(&t, cells);
    }
    table_print(cli, &t);
}

void part_print(const struct cli *cli, const json_t *p)
{
    AUTO_FREE char *uri = text_clean(jstr(p, "uri"));
    (void)printf("%s  stage %s  %s %s\n", jstr(p, "id"), jstr(p, "stage"),
                 glyph(cli, jstr(p, "phase")), jstr(p, "phase"));
    if (uri[0] != '\0') {
        text_print(cli, "input: ", uri);
    }
    if (!jnull(p, "reason")) {
        AUTO_FREE char *head = xasprintf("%s: ", jstr(p, "cause"));
        text_print(cli, head, jstr(p, "reason"));
    } else if (!jnull(p, "wait_text")) {
        text_print(cli, "waits: ", jstr(p, "wait_text"));
    }
    if (json_array_size(json_object_get(p, "attempt_list")) > 0) {
        tries_print(cli, json_object_get(p, "attempt_list"));
        phases_print(cli, json_object_get(p, "attempt_list"));
        (void)printf("log: drover logs %s\n", jstr(p, "id"));
    }
}

static void parts_rows(const struct cli *cli, struct text_table *t, const json_t *list)
{
    size_t i;
    json_t *p;
    json_array_foreach(list, i, p)
    {
        char tries[TEXT_N], usd[TEXT_N];
        AUTO_FREE char *state = xasprintf("%s %s", glyph(cli, jstr(p, "phase")), jstr(p, "phase"));
        const char *why = !jnull(p, "reason")      ? jstr(p, "reason")
                          : !jnull(p, "wait_text") ? jstr(p, "wait_text")
                                                   : jstr(p, "uri");
        AUTO_FREE char *brief = text_short(cli, why);
        table_row(t, (const char *const[]){jstr(p, "id"), jstr(p, "stage"), state, jstr(p, "cause"),
                                           number(jint(p, "attempts"), tries),
                                           money(jint(p, "cost_micro_usd"), usd), brief});
    }
}

static void parts_table(struct text_table *t)
{
    static const char *const heads[] = {"PART",  "STAGE", "STATE",          "CAUSE",
                                        "TRIES", "USD",   "REASON OR INPUT"};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        table_column(t, heads[i], i == 4 || i == 5);
    }
}

static char *parts_query(const struct cli *cli, const struct ref *ref)
{
    AUTO_BUF struct buf b = BUF_INIT(4096);
    const char *const pairs[][2] = {{"stage", cli->opt.stage != NULL  ? cli->opt.stage
                                              : ref->stage[0] != '\0' ? ref->stage
                                                                      : NULL},
                                    {"state", cli->opt.state},
                                    {"cause", cli->opt.cause}};
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        if (pairs[i][1] != NULL) {
            buf_addf(&b, "&%s=", pairs[i][0]);
            str_url_encode(&b, str_of(pairs[i][1]), false);
        }
    }
    buf_add_cstr(&b, "");
    return b.n > 0 ? buf_take(&b) : xstrdup("");
}

/* Reads pages up to the limit. Each page is printed at once, except in table format. */
int cmd_parts(struct cli *cli)
{
    int status = EXIT_OK;
    struct ref ref;
    if (!ref_read(cli, cli->args[0], &ref, &status)) {
        return status;
    }
    int64_t left = cli->opt.limit > 0 ? cli->opt.limit : cli->out == OUT_TABLE ? 200 : INT64_MAX;
    AUTO_FREE char *query = parts_query(cli, &ref), *token = xstrdup("");
    AUTO_JSON json_t *all = json_array();
    bool more = true;
    while (more && left > 0) {
        CLEANUP(reply_done)
        struct client_reply r = {0};
        if (!client_get(cli, &r, &status, "/v1/campaigns/%s/parts?page_size=%lld%s%s%s",
                        ref.campaign, (long long)MIN(left, 1000), query,
                        token[0] != '\0' ? "&page_token=" : "", token)) {
            return status;
        }
        const json_t *list = json_object_get(r.json, "parts");
        left -= (int64_t)json_array_size(list);
        more = !jnull(r.json, "next_page_token");
        free(token);
        token = xstrdup(jstr(r.json, "next_page_token"));
        if (cli->out == OUT_JSONL) {
            print_lines(list);
        } else if (cli->out == OUT_NAME) {
            print_names(list, "id");
        } else {
            (void)json_array_extend(all, (json_t *)(uintptr_t)list);
        }
    }
    if (cli->out == OUT_JSON) {
        AUTO_JSON json_t *o = json_object();
        (void)json_object_set(o, "parts", all);
        (void)json_object_set_new(o, "next_page_token", more ? json_string(token) : json_null());
        print_json(cli, o);
    } else if (cli->out == OUT_TABLE) {
        struct text_table t = {0};
        parts_table(&t);
        parts_rows(cli, &t, all);
        table_print(cli, &t);
        if (more) {
            say("there are more; next: drover parts %s -n 10000, or -o jsonl", ref.campaign);
        }
    }
    return EXIT_OK;
}
