/* drover quotas. */
#include "cli.h"
#include "client.h"
#include "print.h"
#include "table.h"
#include <stdio.h>

int cmd_quotas(struct cli *cli)
{
    int status;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!client_get(cli, &r, &status, "/v1/quotas")) {
        return status;
    }
    const json_t *list = json_object_get(r.json, "quotas");
    if (print_machine(cli, r.json, list)) {
        return EXIT_OK;
    }
    struct text_table t = {0};
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
                                            number_or_dash(q, "limit", limit),
                                            number_or_dash(q, "held", held),
                                            number_or_dash(q, "foreign", others),
                                            number_or_dash(q, "free", free_n), price});
    }
    table_print(cli, &t);
    if (json_array_size(list) == 0) {
        say("no quota is known yet; next: drover doctor");
    }
    return EXIT_OK;
}
