/* drover version. */
#include "cli.h"
#include "client.h"
#include "common/version.h"
#include "print.h"
#include <stdio.h>

int cmd_version(struct cli *cli)
{
    CLEANUP(reply_done)
    struct client_reply r = {0};
    struct err err = ERR_INIT;
    bool there = client_try(
        cli, &(struct client_call){.method = "GET", .path = "/livez", .no_token = true}, &r, &err);
    const char *server = there ? jstr(r.json, "version") : "";
    if (cli->out == OUT_JSON || cli->out == OUT_JSONL) {
        AUTO_JSON json_t *v = json_object();
        (void)json_object_set_new(v, "drover", json_string(DROVER_VERSION));
        (void)json_object_set_new(v, "droverd", there ? json_string(server) : json_null());
        (void)print_machine(cli, v, NULL);
        return EXIT_OK;
    }
    (void)printf("drover %s\n", DROVER_VERSION);
    (void)printf("droverd %s at %s\n", there ? server : "does not answer", client_url(cli->client));
    return EXIT_OK;
}
