/* drover failures: failed parts by cause. */
#include "cli.h"
#include "client.h"
#include "print.h"
#include "ref.h"
#include "table.h"
#include <stdio.h>

static void failures_print(const struct cli *cli, const json_t *groups)
{
    struct text_table t = {0};
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
    struct client_reply r = {0};
    if (!ref_read(cli, cli->args[0], &ref, &status)) {
        return status;
    }
    AUTO_BUF struct buf query = BUF_INIT(8192);
    query_add(&query, "stage", ref_stage(cli, &ref));
    if (!client_get(cli, &r, &status, "/v1/campaigns/%s/failures%s", ref.campaign,
                    buf_cstr(&query))) {
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
