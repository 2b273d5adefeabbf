/* drover plan: forecasts a campaign file or a running campaign. */
#include "cli.h"
#include "client.h"
#include "forecast_print.h"
#include "print.h"
#include "ref.h"
#include "table.h"
#include <stdio.h>
#include <unistd.h>

static int plan_campaign(struct cli *cli)
{
    int status;
    struct ref ref;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    AUTO_BUF struct buf query = BUF_INIT(4096);
    if (!ref_read(cli, cli->args[0], &ref, &status)) {
        return status;
    }
    if (cli->opt.what_if != NULL) {
        buf_add_cstr(&query, "?what_if=");
        str_url_encode(&query, str_of(cli->opt.what_if), false);
    }
    if (!client_get(cli, &r, &status, "/v1/campaigns/%s/forecast%s", ref.campaign,
                    buf_cstr(&query))) {
        return status;
    }
    if (print_machine(cli, r.json, NULL)) {
        return EXIT_OK;
    }
    const json_t *whole = json_object_get(r.json, "campaign");
    if (!json_is_object(whole)) {
        (void)printf("%s has ended\n", ref.campaign);
        return EXIT_OK;
    }
    (void)printf("Plan  %s   %lld parts done, %lld to go in %s\n", ref.campaign,
                 (long long)jint(r.json, "finished"), (long long)jint(r.json, "remaining"),
                 jstr(r.json, "stage"));
    if (json_is_true(json_object_get(whole, "known"))) {
        forecast_print(cli, whole, json_object_get(r.json, "what_if"));
    } else { /* the reason in the answer is of this stage */
        bool left = jint(r.json, "remaining") > 0;
        AUTO_FREE char *why = text_clean(left ? jstr(r.json, "reason") : "is not known yet");
        text_print(cli, "Forecast ", why);
    }
    return EXIT_OK;
}

/* A file if one of that name exists, else a campaign. */
int cmd_plan(struct cli *cli)
{
    const char *what = cli->args[0];
    if (strcmp(what, "-") == 0 || access(what, F_OK) == 0 || strchr(what, '.') != NULL) {
        cli->opt.dry_run = cli->opt.again = true; /* of the file alone */
        return cmd_submit(cli);
    }
    return plan_campaign(cli);
}
