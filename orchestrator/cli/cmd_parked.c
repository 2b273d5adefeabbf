/* drover parked, unpark: what was set aside since one of its values is refused. */
#include "cli.h"
#include "client.h"
#include "print.h"
#include "ref.h"
#include "table.h"
#include <stdio.h>

static void print_reasons(struct cli *cli, const json_t *list)
{
    size_t i;
    json_t *p;
    json_array_foreach(list, i, p)
    {
        (void)printf("\n%s %s %s: %s\n  next: %s\n", glyph(cli, "failed"), jstr(p, "kind"),
                     jstr(p, "id"), jstr(p, "reason"), jstr(p, "what_to_do"));
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
    if (!client_get(cli, &r, &status, "/v1/parked%s%s", cli->args_n > 0 ? "?campaign=" : "",
                    cli->args_n > 0 ? ref.campaign : "")) {
        return status;
    }
    const json_t *list = json_object_get(r.json, "parked");
    if (print_machine(cli, r.json, list)) {
        return EXIT_OK;
    }
    struct text_table t = {0};
    static const char *const heads[] = {"KIND", "ID",    "CAMPAIGN", "STAGE",
                                        "PART", "TRIED", "SINCE"};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        table_column(&t, heads[i], i == 4 || i == 5);
    }
    size_t i;
    json_t *p;
    json_array_foreach(list, i, p)
    {
        char part[TEXT_N], times[TEXT_N], at[TEXT_N];
        table_row(&t, (const char *const[]){jstr(p, "kind"), jstr(p, "id"), jstr(p, "campaign"),
                                            jstr(p, "stage"), number_or_dash(p, "part", part),
                                            number_or_dash(p, "times", times),
                                            when(jstr(p, "since"), at)});
    }
    table_print(cli, &t);
    print_reasons(cli, list);
    return EXIT_OK;
}

int cmd_unpark(struct cli *cli)
{
    int status = EXIT_OK;
    struct ref ref;
    if (!ref_read(cli, cli->args[0], &ref, &status)) {
        return status;
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
