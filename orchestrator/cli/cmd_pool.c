/* drover pools: warm pools, and ending one. */
#include "cli.h"
#include "client.h"
#include "list.h"
#include "print.h"
#include "ref.h"
#include <stdio.h>

static char *to_text(const struct cli *cli, const json_t *row)
{
    (void)cli;
    return xstrdup(jnull(row, "reused_by") ? jstr(row, "end_reason") : jstr(row, "reused_by"));
}

static const struct list_column columns[] = {
    {"JOB", COLUMN_TEXT, .path = "job_name"},
    {"INSTANCES", COLUMN_TEXT, .text = list_instances, .spare = 4},
    {"STATE", COLUMN_TEXT, .path = "state"},
    {"IDLE S", COLUMN_NUMBER, .path = "idle_seconds", .spare = 3},
    {"USD", COLUMN_USD, .path = "idle_micro_usd", .spare = 2},
    {"TO", COLUMN_TEXT, .text = to_text, .spare = 1},
    {"CAMPAIGN", COLUMN_TEXT, .path = "campaign", .wide = true},
    {"STAGE", COLUMN_TEXT, .path = "stage", .wide = true},
    {"AVAILABLE", COLUMN_TIME, .path = "available_at", .wide = true},
    {"EXPIRES", COLUMN_TIME, .path = "expires_at", .wide = true},
    {"ENDED", COLUMN_TIME, .path = "ended_at", .wide = true},
};
static const struct api_list pools = LIST(columns, "job_name");

static int pool_end(struct cli *cli, const char *job)
{
    int status = EXIT_OK;
    if (!confirm(cli, "End this pool? The next job of its kind starts cold.")) {
        return declined(cli, "end it", "not ended");
    }
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!client_post(cli, &r, &status, "/v1/pools/%s:end", job)) {
        return status;
    }
    if (cli->out == OUT_NAME) {
        (void)puts(job);
    } else if (!print_machine(cli, r.json, NULL)) {
        (void)printf("%s the pool of %s is being ended\n", glyph(cli, "stopping"), job);
    }
    return EXIT_OK;
}

static int pool_list(struct cli *cli)
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
    int64_t n;
    if (!list_rows(cli, 50, &n, &status) ||
        !client_get(cli, &r, &status, "/v1/pools?limit=%lld%s", (long long)n, of)) {
        return status;
    }
    const json_t *list = json_object_get(r.json, "pools");
    list_more(cli, list, n);
    if (list_machine(cli, &pools, r.json, list, &status)) {
        return status;
    }
    list_table(cli, &pools, list);
    char usd[TEXT_N];
    const json_t *sum = json_object_get(r.json, "sum");
    (void)printf("%lld pools, %lld reused, %lld open; idle %lld instance-seconds, %s USD\n",
                 (long long)jint(sum, "pools"), (long long)jint(sum, "reused"),
                 (long long)jint(sum, "open"), (long long)jint(sum, "idle_seconds"),
                 money(jint(sum, "idle_micro_usd"), usd));
    return EXIT_OK;
}

int cmd_pools(struct cli *cli)
{
    if (cli->args_n > 0 && strcmp(cli->args[0], "end") == 0) {
        return cli->args_n == 2
                   ? pool_end(cli, cli->args[1])
                   : fail(EXIT_USAGE, "drover pools --help shows examples",
                          "end which pool? JOB is in the first column of drover pools");
    }
    return pool_list(cli);
}
