/* drover pools. */
#include "cli.h"
#include "client.h"
#include "print.h"
#include "ref.h"
#include "table.h"
#include <stdio.h>

int cmd_pools(struct cli *cli)
{
    int status;
    struct ref ref;
    CLEANUP(reply_done)
    struct client_reply r = {0};
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
    struct text_table t = {0};
    static const char *const heads[] = {"JOB", "INSTANCES", "STATE", "IDLE S", "USD", "TO"};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        table_column(&t, heads[i], i == 3 || i == 4);
    }
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v)
    {
        char idle[TEXT_N], usd[TEXT_N], type[96];
        (void)number(jint(v, "idle_seconds"), idle);
        (void)snprintf(type, sizeof type, "%lld x %s", (long long)jint(v, "instances"),
                       jstr(v, "instance_type"));
        const char *to = jnull(v, "reused_by") ? jstr(v, "end_reason") : jstr(v, "reused_by");
        table_row(&t, (const char *const[]){jstr(v, "job_name"), type, jstr(v, "state"), idle,
                                            money(jint(v, "idle_micro_usd"), usd), to});
    }
    table_print(cli, &t);
    char usd[TEXT_N];
    const json_t *sum = json_object_get(r.json, "sum");
    if (cli->csv) {
        return EXIT_OK;
    }
    (void)printf("%lld pools, %lld reused, %lld open; idle %lld instance-seconds, %s USD\n",
                 (long long)jint(sum, "pools"), (long long)jint(sum, "reused"),
                 (long long)jint(sum, "open"), (long long)jint(sum, "idle_seconds"),
                 money(jint(sum, "idle_micro_usd"), usd));
    return EXIT_OK;
}
