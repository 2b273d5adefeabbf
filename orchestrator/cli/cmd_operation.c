/* drover ops. */
#include "cli.h"
#include "client.h"
#include "print.h"
#include "table.h"
#include <stdio.h>

int cmd_ops(struct cli *cli)
{
    int status;
    CLEANUP(reply_done)
    struct client_reply r = {0};
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
    struct text_table t = {0};
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
        table_row(&t, (const char *const[]){jstr(o, "id"), jstr(o, "campaign"), jstr(o, "kind"),
                                            jstr(o, "state"), number_or_dash(o, "parts", parts),
                                            number_or_dash(o, "done", done),
                                            when(jstr(o, "created_at"), at)});
    }
    table_print(cli, &t);
    return EXIT_OK;
}
