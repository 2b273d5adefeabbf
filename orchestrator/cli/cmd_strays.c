/* drover strays: jobs, endpoints and file systems of this installation that no row stands for. */
#include "cli.h"
#include "client.h"
#include "list.h"
#include "print.h"
#include <stdio.h>

/* A file system has none. */
static char *instances(const struct cli *cli, const json_t *row)
{
    return jint(row, "instances") > 0 ? list_instances(cli, row)
                                      : xasprintf("%s", jstr(row, "instance_type"));
}

static const struct list_column columns[] = {
    {"NAME", COLUMN_TEXT, .path = "job_name"},
    {"KIND", COLUMN_TEXT, .path = "kind", .spare = 3},
    {"WHY", COLUMN_TEXT, .path = "why", .spare = 4},
    {"STATUS", COLUMN_TEXT, .path = "status"},
    {"INSTANCES", COLUMN_TEXT, .text = instances, .spare = 5},
    {"USD", COLUMN_USD, .path = "cost_micro_usd", .spare = 2},
    {"FOUND", COLUMN_TIME, .path = "found_at", .spare = 1},
    {"CAMPAIGN", COLUMN_TEXT, .path = "campaign", .wide = true},
    {"SECONDS", COLUMN_NUMBER, .path = "seconds", .wide = true},
    {"STARTED", COLUMN_TIME, .path = "started_at", .wide = true},
    {"ENDED", COLUMN_TIME, .path = "ended_at", .wide = true},
};
static const struct api_list strays = LIST(columns, "job_name");

static int stray_list(struct cli *cli)
{
    int status = EXIT_OK;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    int64_t n;
    if (!list_rows(cli, 200, &n, &status) ||
        !client_get(cli, &r, &status, "/v1/strays?limit=%lld", (long long)n)) {
        return status;
    }
    const json_t *list = json_object_get(r.json, "strays");
    list_more(cli, list, n);
    if (list_machine(cli, &strays, r.json, list, &status)) {
        return status;
    }
    list_table(cli, &strays, list);
    const json_t *sum = json_object_get(r.json, "sum");
    if (jint(sum, "running") > 0) {
        say("next: drover strays stop NAME");
    }
    return EXIT_OK;
}

static int stray_stop(struct cli *cli, const char *name)
{
    int status = EXIT_OK;
    if (!confirm(cli, "End this for good? A file system goes with its data.")) {
        return declined(cli, "stop it", "not stopped");
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
    return fail(EXIT_USAGE, "drover strays --help shows examples", "write nothing, or stop NAME");
}
