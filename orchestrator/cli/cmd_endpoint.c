/* drover endpoints: endpoints of stages that deploy. */
#include "cli.h"
#include "client.h"
#include "list.h"
#include "print.h"
#include <stdio.h>

static const struct list_column columns[] = {
    {"ENDPOINT", COLUMN_TEXT, .path = "name"},
    {"STATE", COLUMN_TEXT, .path = "state"},
    {"INSTANCES", COLUMN_TEXT, .text = list_instances},
    {"USD/H", COLUMN_USD, .path = "micro_usd_per_hour"},
    {"USD", COLUMN_USD, .path = "cost_micro_usd"},
    {"DELETED AFTER", COLUMN_TIME, .path = "delete_after"},
    {"REASON", COLUMN_TEXT, .path = "reason"},
    {"CAMPAIGN", COLUMN_TEXT, .path = "campaign", .wide = true},
    {"STAGE", COLUMN_TEXT, .path = "stage", .wide = true},
    {"SECONDS", COLUMN_NUMBER, .path = "seconds", .wide = true},
    {"P95 US", COLUMN_NUMBER, .path = "p95_us", .wide = true},
    {"IN SERVICE", COLUMN_TIME, .path = "in_service_at", .wide = true},
    {"ENDED", COLUMN_TIME, .path = "ended_at", .wide = true},
};
static const struct api_list endpoints = LIST(columns, "name");

static int endpoint_list(struct cli *cli)
{
    int status = EXIT_OK;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!client_get(cli, &r, &status, "/v1/endpoints")) {
        return status;
    }
    const json_t *list = json_object_get(r.json, "endpoints");
    if (!list_machine(cli, &endpoints, r.json, list, &status)) {
        list_table(cli, &endpoints, list);
    }
    return status;
}

static int endpoint_delete(struct cli *cli, const char *name)
{
    int status = EXIT_OK;
    if (!confirm(cli, "Delete this endpoint, its config and its model for good?")) {
        return fail(EXIT_USAGE, "add -y to delete it without confirmation", "not deleted");
    }
    CLEANUP(reply_done)
    struct client_reply r = {0};
    AUTO_FREE char *path = xasprintf("/v1/endpoints/%s", name);
    if (!client_call(cli, &(struct client_call){.method = "DELETE", .path = path}, &r, &status)) {
        return status;
    }
    if (cli->out == OUT_NAME) {
        (void)puts(name);
    } else if (!print_machine(cli, r.json, NULL)) {
        (void)printf("%s %s: is being deleted\n", glyph(cli, "stopping"), name);
    }
    return EXIT_OK;
}

int cmd_endpoints(struct cli *cli)
{
    if (cli->args_n == 0) {
        return endpoint_list(cli);
    }
    if (cli->args_n == 2 && strcmp(cli->args[0], "delete") == 0) {
        return endpoint_delete(cli, cli->args[1]);
    }
    return fail(EXIT_USAGE, "drover endpoints --help shows examples",
                "write nothing, or delete ENDPOINT");
}
