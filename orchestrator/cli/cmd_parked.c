/* drover parked, unpark: what was set aside since one of its values is refused. */
#include "cli.h"
#include "client.h"
#include "list.h"
#include "print.h"
#include "ref.h"
#include "table.h"
#include <stdio.h>

static const struct list_column columns[] = {
    {"KIND", COLUMN_TEXT, .path = "kind"},
    {"ID", COLUMN_TEXT, .path = "id"},
    {"CAMPAIGN", COLUMN_TEXT, .path = "campaign"},
    {"STAGE", COLUMN_TEXT, .path = "stage"},
    {"PART", COLUMN_NUMBER, .path = "part"},
    {"TRIED", COLUMN_NUMBER, .path = "times"},
    {"SINCE", COLUMN_TIME, .path = "since"},
    {"JOB", COLUMN_TEXT, .path = "job_name", .wide = true},
    {"REASON", COLUMN_TEXT, .path = "reason", .wide = true},
    {"WHAT TO DO", COLUMN_TEXT, .path = "what_to_do", .wide = true},
};
static const struct api_list parked = LIST(columns, "id");

static void print_reasons(struct cli *cli, const json_t *list)
{
    size_t i;
    json_t *p;
    json_array_foreach(list, i, p)
    {
        AUTO_FREE char *head =
            xasprintf("%s %s %s: ", glyph(cli, "failed"), jstr(p, "kind"), jstr(p, "id"));
        (void)putchar('\n');
        text_print(cli, head, jstr(p, "reason"));
        text_print(cli, "  next: ", jstr(p, "what_to_do"));
    }
}

int cmd_parked(struct cli *cli)
{
    int status = EXIT_OK;
    struct ref ref = {.campaign = ""};
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (cli->args_n > 0 && !ref_read(cli, cli->args[0], &ref, &status)) {
        return status;
    }
    int64_t n;
    if (!list_rows(cli, 200, &n, &status) ||
        !client_get(cli, &r, &status, "/v1/parked?limit=%lld%s%s", (long long)n,
                    cli->args_n > 0 ? "&campaign=" : "", ref.campaign)) {
        return status;
    }
    const json_t *list = json_object_get(r.json, "parked");
    list_more(cli, list, n);
    if (list_machine(cli, &parked, r.json, list, &status)) {
        return status;
    }
    list_table(cli, &parked, list);
    print_reasons(cli, list);
    return EXIT_OK;
}

int cmd_unpark(struct cli *cli)
{
    int status = EXIT_OK;
    struct ref ref;
    if (!ref_read_whole(cli, "unpark", &ref, &status)) {
        return status;
    }
    AUTO_FREE char *question =
        xasprintf("Try what %s has parked again? It may start jobs that cost money.", ref.campaign);
    if (!confirm(cli, question)) {
        return declined(cli, "try it again", "not tried again");
    }
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!client_post(cli, &r, &status, "/v1/campaigns/%s:unpark", ref.campaign)) {
        return status;
    }
    if (cli->out == OUT_NAME) {
        (void)puts(ref.campaign);
    } else if (!print_machine(cli, r.json, NULL)) {
        (void)printf("%s %s: %lld unparked, tried again now\n", glyph(cli, "running"), ref.campaign,
                     (long long)jint(r.json, "unparked"));
    }
    return status;
}
