/* drover cost, quotas, pools, ops: what it costs, what may run, what was asked for. */
#include "cli.h"
#include <stdio.h>

static void cost_table(const struct cli *cli, const json_t *rows, const char *key, const char *head)
{
    struct table t = {0};
    table_column(&t, head, false);
    table_column(&t, "SECONDS", true);
    table_column(&t, "USD", true);
    size_t i;
    json_t *v;
    json_array_foreach(rows, i, v)
    {
        char seconds[TEXT_N], usd[TEXT_N];
        (void)snprintf(seconds, sizeof seconds, "%lld", (long long)jint(v, "seconds"));
        const char *name = jstr(v, key);
        table_row(&t, (const char *const[]){strcmp(name, "none") == 0 ? "done" : name, seconds,
                                            money(jint(v, "micro_usd"), usd)});
    }
    table_print(cli, &t);
}

int cmd_cost(struct cli *cli)
{
    int status;
    struct ref ref;
    CLEANUP(reply_done)
    struct reply r = {0};
    if (!ref_read(cli, cli->args[0], &ref, &status)) {
        return status;
    }
    const char *by = cli->opt.by != NULL ? cli->opt.by : "";
    if (!client_get(cli, &r, &status, "/v1/campaigns/%s/cost%s%s", ref.campaign,
                    by[0] != '\0' ? "?by=" : "", by)) {
        return status;
    }
    if (print_machine(cli, r.json, NULL)) {
        return EXIT_OK;
    }
    char usd[TEXT_N], more[TEXT_N], limit[TEXT_N];
    const json_t *m = json_object_get(r.json, "metered");
    (void)printf("metered %s USD for %lld instance-seconds   reserved %s USD   budget %s\n",
                 money(jint(m, "micro_usd"), usd), (long long)jint(m, "seconds"),
                 money(jint(r.json, "reserved_micro_usd"), more),
                 jnull(r.json, "limit_micro_usd") ? "none"
                                                  : money(jint(r.json, "limit_micro_usd"), limit));
    if (strcmp(by, "cause") != 0) {
        cost_table(cli, json_object_get(r.json, "by_stage"), "stage", "STAGE");
    }
    if (strcmp(by, "stage") != 0) {
        cost_table(cli, json_object_get(r.json, "by_cause"), "cause", "CAUSE");
    }
    return EXIT_OK;
}

static const char *or_dash(const json_t *o, const char *key, char buf[static TEXT_N])
{
    if (jnull(o, key)) {
        return "-";
    }
    (void)snprintf(buf, TEXT_N, "%lld", (long long)jint(o, key));
    return buf;
}

int cmd_pools(struct cli *cli)
{
    int status;
    struct ref ref;
    CLEANUP(reply_done)
    struct reply r = {0};
    AUTO_FREE char *of = xstrdup("");
    if (cli->args_n > 0) {
        if (!ref_read(cli, cli->args[0], &ref, &status)) {
            return status;
        }
        free(of);
        of = xasprintf("&campaign=%s", ref.campaign);
    }
    int64_t n = cli->opt.limit > 0 ? cli->opt.limit : 50;
    if (!client_get(cli, &r, &status, "/v1/pools?limit=%lld%s", (long long)n, of)) {
        return status;
    }
    const json_t *list = json_object_get(r.json, "pools");
    if (print_machine(cli, r.json, list)) {
        return EXIT_OK;
    }
    struct table t = {0};
    static const char *const heads[] = {"JOB", "INSTANCES", "STATE", "IDLE S", "USD", "TO"};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        table_column(&t, heads[i], i == 3 || i == 4);
    }
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v)
    {
        char idle[TEXT_N], usd[TEXT_N], type[96];
        (void)snprintf(idle, sizeof idle, "%lld", (long long)jint(v, "idle_seconds"));
        (void)snprintf(type, sizeof type, "%lld x %s", (long long)jint(v, "instances"),
                       jstr(v, "instance_type"));
        const char *to = jnull(v, "reused_by") ? jstr(v, "end_reason") : jstr(v, "reused_by");
        table_row(&t, (const char *const[]){jstr(v, "job_name"), type, jstr(v, "state"), idle,
                                            money(jint(v, "idle_micro_usd"), usd), to});
    }
    table_print(cli, &t);
    char usd[TEXT_N];
    const json_t *sum = json_object_get(r.json, "sum");
    (void)printf("%lld pools, %lld reused, %lld open; idle %lld instance-seconds, %s USD\n",
                 (long long)jint(sum, "pools"), (long long)jint(sum, "reused"),
                 (long long)jint(sum, "open"), (long long)jint(sum, "idle_seconds"),
                 money(jint(sum, "idle_micro_usd"), usd));
    return EXIT_OK;
}

int cmd_quotas(struct cli *cli)
{
    int status;
    CLEANUP(reply_done)
    struct reply r = {0};
    if (!client_get(cli, &r, &status, "/v1/quotas")) {
        return status;
    }
    const json_t *list = json_object_get(r.json, "quotas");
    if (print_machine(cli, r.json, list)) {
        return EXIT_OK;
    }
    struct table t = {0};
    static const char *const heads[] = {"INSTANCE TYPE", "MARKET", "QUOTA", "OURS",
                                        "OTHERS",        "FREE",   "USD/H"};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        table_column(&t, heads[i], i >= 2);
    }
    size_t i;
    json_t *q;
    json_array_foreach(list, i, q)
    {
        char limit[TEXT_N], held[TEXT_N], others[TEXT_N], free_n[TEXT_N], usd[TEXT_N];
        const char *price = jnull(q, "price_micro_usd_per_hour")
                                ? "-"
                                : money(jint(q, "price_micro_usd_per_hour"), usd);
        table_row(&t, (const char *const[]){jstr(q, "instance_type"), jstr(q, "market"),
                                            or_dash(q, "limit", limit), or_dash(q, "held", held),
                                            or_dash(q, "foreign", others),
                                            or_dash(q, "free", free_n), price});
    }
    table_print(cli, &t);
    if (json_array_size(list) == 0) {
        say("no quota was read yet; next: drover doctor");
    }
    return EXIT_OK;
}

int cmd_ops(struct cli *cli)
{
    int status;
    CLEANUP(reply_done)
    struct reply r = {0};
    int64_t n = cli->opt.limit > 0 ? MIN(cli->opt.limit, 1000) : 50;
    if (cli->args_n > 0) {
        if (!client_get(cli, &r, &status, "/v1/operations/%s", cli->args[0])) {
            return status;
        }
        AUTO_JSON json_t *list = json_array(), *page = json_object();
        (void)json_array_append(list, r.json);
        (void)json_object_set(page, "operations", list);
        json_t *one = r.json;
        r.json = json_incref(cli->out == OUT_JSON ? one : page);
        json_decref(one);
    } else if (!client_get(cli, &r, &status, "/v1/operations?page_size=%lld", (long long)n)) {
        return status;
    }
    const json_t *list = json_object_get(r.json, "operations");
    if (print_machine(cli, r.json, list)) {
        return EXIT_OK;
    }
    struct table t = {0};
    static const char *const heads[] = {"OPERATION", "CAMPAIGN", "WHAT",     "STATE",
                                        "PARTS",     "DONE",     "ASKED FOR"};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        table_column(&t, heads[i], i == 4 || i == 5);
    }
    size_t i;
    json_t *o;
    json_array_foreach(list, i, o)
    {
        char parts[TEXT_N], done[TEXT_N], at[TEXT_N];
        table_row(&t,
                  (const char *const[]){jstr(o, "id"), jstr(o, "campaign"), jstr(o, "kind"),
                                        jstr(o, "state"), or_dash(o, "parts", parts),
                                        or_dash(o, "done", done), when(jstr(o, "created_at"), at)});
    }
    table_print(cli, &t);
    return EXIT_OK;
}
