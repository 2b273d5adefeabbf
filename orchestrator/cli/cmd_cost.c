/* drover cost. */
#include "cli.h"
#include "client.h"
#include "print.h"
#include "ref.h"
#include "table.h"
#include <stdio.h>

static void cost_table(const struct cli *cli, const json_t *rows, const char *key, const char *head)
{
    struct text_table t = {0};
    table_column(&t, head, false);
    table_column(&t, "SECONDS", true);
    table_column(&t, "USD", true);
    size_t i;
    json_t *v;
    json_array_foreach(rows, i, v)
    {
        char seconds[TEXT_N], usd[TEXT_N];
        (void)number(jint(v, "seconds"), seconds);
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
    struct client_reply r = {0};
    if (!ref_read(cli, cli->args[0], &ref, &status)) {
        return status;
    }
    AUTO_BUF struct buf query = BUF_INIT(8192);
    const char *by = cli->opt.by != NULL ? cli->opt.by : "";
    query_add(&query, "by", by);
    if (!client_get(cli, &r, &status, "/v1/campaigns/%s/cost%s", ref.campaign, buf_cstr(&query))) {
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
