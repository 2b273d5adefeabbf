/* drover filesystems: file systems of stages of kind lustre, and the end of one. */
#include "cli.h"
#include "client.h"
#include "list.h"
#include "print.h"
#include "table.h"
#include <stdio.h>

static const struct list_column columns[] = {
    {"FILE SYSTEM", COLUMN_TEXT, .path = "name"},
    {"STATE", COLUMN_TEXT, .path = "state"},
    {"GIB", COLUMN_NUMBER, .path = "size_gib", .spare = 5},
    {"USD/H", COLUMN_USD, .path = "micro_usd_per_hour", .spare = 4},
    {"USD", COLUMN_USD, .path = "cost_micro_usd", .spare = 2},
    {"DELETED AFTER", COLUMN_TIME, .path = "delete_after", .spare = 3},
    {"REASON", COLUMN_TEXT, .path = "reason", .spare = 1},
    {"CAMPAIGN", COLUMN_TEXT, .path = "campaign", .wide = true},
    {"STAGE", COLUMN_TEXT, .path = "stage", .wide = true},
    {"AWS", COLUMN_TEXT, .path = "filesystem", .wide = true},
    {"HOURS", COLUMN_NUMBER, .path = "hours", .wide = true},
    {"IMPORT", COLUMN_TEXT, .path = "import", .wide = true},
    {"ENDED", COLUMN_TIME, .path = "ended_at", .wide = true},
};
static const struct api_list filesystems = LIST(columns, "name");

static int filesystem_list(struct cli *cli)
{
    int status = EXIT_OK;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    int64_t n;
    if (!list_rows(cli, 200, &n, &status) ||
        !client_get(cli, &r, &status, "/v1/filesystems?limit=%lld", (long long)n)) {
        return status;
    }
    const json_t *list = json_object_get(r.json, "filesystems");
    list_more(cli, list, n);
    if (!list_machine(cli, &filesystems, r.json, list, &status)) {
        list_table(cli, &filesystems, list);
    }
    return status;
}

static int filesystem_delete(struct cli *cli, const char *name)
{
    int status = EXIT_OK;
    if (!confirm(cli, "Delete this file system and all that is on it for good?")) {
        return declined(cli, "delete it", "not deleted");
    }
    CLEANUP(reply_done)
    struct client_reply r = {0};
    AUTO_FREE char *path = xasprintf("/v1/filesystems/%s", name);
    if (!client_call(cli, &(struct client_call){.method = "DELETE", .path = path}, &r, &status)) {
        return status;
    }
    if (cli->out == OUT_NAME) {
        (void)puts(name);
    } else if (!print_machine(cli, r.json, NULL)) {
        (void)printf("%s %s: is being deleted, after its export\n", glyph(cli, "stopping"), name);
    }
    return EXIT_OK;
}

int cmd_filesystems(struct cli *cli)
{
    if (cli->args_n == 0) {
        return filesystem_list(cli);
    }
    if (cli->args_n == 2 && strcmp(cli->args[0], "delete") == 0) {
        return filesystem_delete(cli, cli->args[1]);
    }
    return fail(EXIT_USAGE, "drover filesystems --help shows examples",
                "write nothing, or delete FILESYSTEM");
}
