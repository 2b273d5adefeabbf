/* drover ls, get, parts, failures, quotas, cost, ops: what there is. */
#include "cli.h"
#include <stdio.h>

static const char *number(int64_t n, char buf[static TEXT_N])
{
    (void)snprintf(buf, TEXT_N, "%lld", (long long)n);
    return buf;
}

/* "c-7" of an id list. */
static void print_names(const json_t *list, const char *key)
{
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v)
    {
        (void)puts(jstr(v, key));
    }
}

int cmd_ls(struct cli *cli)
{
    int status;
    CLEANUP(reply_done)
    struct reply r = {0};
    int64_t n = cli->opt.limit > 0 ? MIN(cli->opt.limit, 1000) : 50;
    AUTO_FREE char *state =
        cli->opt.state != NULL ? xasprintf("&state=%s", cli->opt.state) : xstrdup("");
    if (!client_get(cli, &r, &status, "/v1/campaigns?page_size=%lld%s", (long long)n, state)) {
        return status;
    }
    const json_t *list = json_object_get(r.json, "campaigns");
    if (print_machine(cli, r.json, list)) {
        return EXIT_OK;
    }
    if (cli->out == OUT_NAME) {
        print_names(list, "id");
        return EXIT_OK;
    }
    struct table t = {0};
    static const char *const heads[] = {"ID",   "STATE", "PARTS",     "DONE", "RUN",
                                        "FAIL", "USD",   "SUBMITTED", "NAME"};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        table_column(&t, heads[i], i >= 2 && i <= 6);
    }
    size_t i;
    json_t *c;
    json_array_foreach(list, i, c)
    {
        char total[TEXT_N], done[TEXT_N], run[TEXT_N], failed[TEXT_N], usd[TEXT_N], at[TEXT_N];
        const json_t *p = json_object_get(c, "parts");
        AUTO_FREE char *shown = xasprintf("%s %s", glyph(cli, jstr(c, "state")), jstr(c, "state"));
        table_row(&t, (const char *const[]){
                          jstr(c, "id"), shown, number(jint(p, "total"), total),
                          number(jint(p, "done") + jint(p, "skipped"), done),
                          number(jint(p, "active"), run), number(jint(p, "failed"), failed),
                          money(json_integer_value(jget(c, "budget", "spent_micro_usd")), usd),
                          when(jstr(c, "created_at"), at), jstr(c, "name")});
    }
    table_print(cli, &t);
    if (json_array_size(list) == 0) {
        say("no campaigns; next: drover submit FILE");
    } else if (!jnull(r.json, "next_page_token")) {
        say("there are more; next: drover ls -n 1000");
    }
    return EXIT_OK;
}

static void stage_row(const struct cli *cli, struct table *t, const json_t *s)
{
    char n[6][TEXT_N];
    static const char *const keys[] = {"total", "waiting", "active", "done", "skipped", "failed"};
    const json_t *p = json_object_get(s, "parts");
    const char *cells[9];
    AUTO_FREE char *state = xasprintf("%s %s", glyph(cli, jstr(s, "state")), jstr(s, "state"));
    cells[0] = jstr(s, "name");
    cells[1] = state;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        cells[2 + i] = number(jint(p, keys[i]), n[i]);
    }
    cells[8] = jint(p, "active") == 0 ? jstr(s, "wait_text") : "";
    table_row(t, cells);
}

static void campaign_print(const struct cli *cli, const json_t *c)
{
    char usd[TEXT_N], more[TEXT_N], limit[TEXT_N], at[TEXT_N];
    const json_t *b = json_object_get(c, "budget");
    AUTO_FREE char *name = text_clean(jstr(c, "name"));
    const char *reason = jstr(c, "reason");
    (void)printf("%s  %s  %s %s%s%s  wanted: %s\n", jstr(c, "id"), name,
                 glyph(cli, jstr(c, "state")), jstr(c, "state"), reason[0] != '\0' ? ", " : "",
                 reason, jstr(c, "wanted"));
    (void)printf("submitted %s UTC  priority %lld\n", when(jstr(c, "created_at"), at),
                 (long long)jint(c, "priority"));
    (void)printf("cost %s USD, %s reserved, budget %s\n", money(jint(b, "spent_micro_usd"), usd),
                 money(jint(b, "reserved_micro_usd"), more),
                 jnull(b, "limit_micro_usd") ? "none" : money(jint(b, "limit_micro_usd"), limit));
    struct table t = {0};
    static const char *const heads[] = {"STAGE", "STATE", "PARTS", "WAIT",     "RUN",
                                        "DONE",  "SKIP",  "FAIL",  "WAITS FOR"};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        table_column(&t, heads[i], i >= 2 && i <= 7);
    }
    size_t i;
    json_t *s;
    json_array_foreach(json_object_get(c, "stages"), i, s)
    {
        stage_row(cli, &t, s);
    }
    table_print(cli, &t);
}

/* Every try, then what became of each: two tables, so that both fit a narrow terminal. */
static void tries_print(const struct cli *cli, const json_t *list)
{
    struct table t = {0};
    struct table why = {0};
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

static void part_print(const struct cli *cli, const json_t *p)
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
        (void)printf("log: drover logs %s\n", jstr(p, "id"));
    }
}

int cmd_get(struct cli *cli)
{
    int status;
    struct ref ref;
    CLEANUP(reply_done)
    struct reply r = {0};
    if (!ref_read(cli, cli->args[0], &ref, &status)) {
        return status;
    }
    bool ok = ref.part >= 0 ? client_get(cli, &r, &status, "/v1/parts/%s/%lld%s%s", ref.campaign,
                                         (long long)ref.part, ref.stage[0] != '\0' ? "?stage=" : "",
                                         ref.stage)
                            : client_get(cli, &r, &status, "/v1/campaigns/%s%s", ref.campaign,
                                         cli->opt.spec ? "/spec" : "");
    if (!ok) {
        return status;
    }
    if (cli->opt.spec && cli->out == OUT_TABLE) {
        (void)fputs(jstr(r.json, "text"), stdout);
    } else if (cli->out == OUT_NAME) {
        (void)puts(jstr(r.json, "id"));
    } else if (!print_machine(cli, r.json, NULL)) {
        if (ref.part >= 0) {
            part_print(cli, r.json);
        } else {
            campaign_print(cli, r.json);
        }
    }
    return EXIT_OK;
}

static void parts_rows(const struct cli *cli, struct table *t, const json_t *list)
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

static void parts_table(struct table *t)
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

/* Page after page up to the limit; what a page brings is printed at once but for the table. */
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
        struct reply r = {0};
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
        print_json(o);
    } else if (cli->out == OUT_TABLE) {
        struct table t = {0};
        parts_table(&t);
        parts_rows(cli, &t, all);
        table_print(cli, &t);
        if (more) {
            say("there are more; next: drover parts %s -n 10000, or -o jsonl", ref.campaign);
        }
    }
    return EXIT_OK;
}

static void failures_print(const struct cli *cli, const json_t *groups)
{
    struct table t = {0};
    static const char *const heads[] = {"CAUSE",    "PARTS",        "FIRST",
                                        "LOST USD", "PART NUMBERS", "EVIDENCE"};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        table_column(&t, heads[i], i == 1 || i == 3);
    }
    size_t i, j;
    json_t *g, *n;
    json_array_foreach(groups, i, g)
    {
        char parts[TEXT_N], at[TEXT_N], usd[TEXT_N];
        AUTO_BUF struct buf numbers = BUF_INIT(512);
        json_array_foreach(json_object_get(g, "sample"), j, n)
        {
            buf_addf(&numbers, "%s%lld", j > 0 ? "," : "", (long long)json_integer_value(n));
        }
        if ((int64_t)j < jint(g, "parts")) {
            buf_add_cstr(&numbers, ",...");
        }
        AUTO_FREE char *evidence = text_short(cli, jstr(g, "message"));
        table_row(&t, (const char *const[]){jstr(g, "cause"), number(jint(g, "parts"), parts),
                                            when(jstr(g, "first_at"), at) + 11,
                                            money(jint(g, "lost_micro_usd"), usd),
                                            buf_cstr(&numbers), evidence});
    }
    table_print(cli, &t);
}

int cmd_failures(struct cli *cli)
{
    int status;
    struct ref ref;
    CLEANUP(reply_done)
    struct reply r = {0};
    if (!ref_read(cli, cli->args[0], &ref, &status)) {
        return status;
    }
    const char *stage = cli->opt.stage != NULL ? cli->opt.stage : ref.stage;
    if (!client_get(cli, &r, &status, "/v1/campaigns/%s/failures%s%s", ref.campaign,
                    stage[0] != '\0' ? "?stage=" : "", stage)) {
        return status;
    }
    const json_t *groups = json_object_get(r.json, "groups");
    if (print_machine(cli, r.json, groups)) {
        return EXIT_OK;
    }
    if (cli->out == OUT_NAME) {
        print_names(groups, "cause");
        return EXIT_OK;
    }
    if (json_array_size(groups) == 0) {
        (void)printf("%s has no failed parts\n", ref.campaign);
        return EXIT_OK;
    }
    failures_print(cli, groups);
    size_t i;
    json_t *g;
    json_array_foreach(groups, i, g)
    {
        (void)printf("%s: %s\n", jstr(g, "cause"), jstr(g, "remedy"));
    }
    const json_t *first = json_array_get(json_object_get(json_array_get(groups, 0), "sample"), 0);
    (void)printf("log: drover logs %s/%lld   retry: drover retry %s --cause %s\n", ref.campaign,
                 (long long)json_integer_value(first), ref.campaign,
                 jstr(json_array_get(groups, 0), "cause"));
    return EXIT_OK;
}
