/* drover strays: jobs of this installation that run without an attempt. */
#include "cli.h"
#include "client.h"
#include "print.h"
#include "table.h"
#include <stdio.h>

static int stray_list(struct cli *cli)
{
    int status = EXIT_OK;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!client_get(cli, &r, &status, "/v1/strays")) {
        return status;
    }
    const json_t *list = json_object_get(r.json, "strays");
    if (print_machine(cli, r.json, list)) {
        return EXIT_OK;
    }
    if (cli->out == OUT_NAME) {
        print_names(list, "job_name");
        return EXIT_OK;
    }
    struct text_table t = {0};
    static const char *const heads[] = {"JOB", "WHY", "STATUS", "INSTANCES", "USD", "FOUND"};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        table_column(&t, heads[i], i == 3 || i == 4);
    }
    size_t i;
    json_t *p;
    json_array_foreach(list, i, p)
    {
        char usd[TEXT_N], at[TEXT_N];
        AUTO_FREE char *instances =
            xasprintf("%lld x %s", (long long)jint(p, "instances"), jstr(p, "instance_type"));
        table_row(&t, (const char *const[]){jstr(p, "job_name"), jstr(p, "why"), jstr(p, "status"),
                                            instances, money(jint(p, "cost_micro_usd"), usd),
                                            when(jstr(p, "found_at"), at)});
    }
    table_print(cli, &t);
    const json_t *sum = json_object_get(r.json, "sum");
    if (jint(sum, "running") > 0) {
        say("next: drover strays stop JOB");
    }
    return EXIT_OK;
}

static int stray_stop(struct cli *cli, const char *name)
{
    int status = EXIT_OK;
    if (!confirm(cli, "Stop this job for good?")) {
        return fail(EXIT_USAGE, "add -y to stop it without confirmation", "not stopped");
    }
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!client_post(cli, &r, &status, "/v1/strays/%s:stop", name)) {
        return status;
    }
    if (cli->out == OUT_NAME) {
        (void)puts(name);
    } else if (!print_machine(cli, r.json, NULL)) {
        (void)printf("%s %s: is being stopped\n", glyph(cli, "stopping"), name);
    }
    return EXIT_OK;
}

int cmd_strays(struct cli *cli)
{
    if (cli->args_n == 0) {
        return stray_list(cli);
    }
    if (cli->args_n == 2 && strcmp(cli->args[0], "stop") == 0) {
        return stray_stop(cli, cli->args[1]);
    }
    return fail(EXIT_USAGE, "drover strays --help shows examples", "write nothing, or stop JOB");
}
