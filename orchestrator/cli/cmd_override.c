/* drover override: the gate that holds a stage. */
#include "cli.h"
#include "client.h"
#include "print.h"
#include "ref.h"
#include "table.h"
#include <stdio.h>

static const json_t *stage_of(const json_t *campaign, const char *name)
{
    size_t i;
    json_t *s;
    json_array_foreach(json_object_get(campaign, "stages"), i, s)
    {
        if (strcmp(jstr(s, "name"), name) == 0) {
            return s;
        }
    }
    return NULL;
}

static bool agrees(const struct cli *cli, const char *campaign, const json_t *stage)
{
    AUTO_FREE char *question = xasprintf("Let the stages that need %s of %s start all the same?",
                                         jstr(stage, "name"), campaign);
    text_print(cli, "held: ", jstr(stage, "reason"));
    return confirm(cli, question);
}

int cmd_override(struct cli *cli)
{
    int status = EXIT_OK;
    struct ref ref;
    char key[37];
    CLEANUP(reply_done)
    struct client_reply now = {0};
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!ref_read(cli, cli->args[0], &ref, &status)) {
        return status;
    }
    if (ref.stage[0] == '\0') {
        AUTO_FREE char *next = xasprintf("drover get %s shows its stages", ref.campaign);
        return fail(EXIT_USAGE, next, "name the stage of the gate: drover override %s/STAGE",
                    ref.campaign);
    }
    if (!client_get(cli, &now, &status, "/v1/campaigns/%s", ref.campaign)) {
        return status;
    }
    const json_t *stage = stage_of(now.json, ref.stage);
    if (stage != NULL && strcmp(jstr(stage, "state"), "held") == 0 &&
        !agrees(cli, ref.campaign, stage)) {
        return declined(cli, "override", "nothing was changed");
    }
    AUTO_FREE char *path = xasprintf("/v1/campaigns/%s:override", ref.campaign);
    AUTO_JSON json_t *body = json_pack("{s:s}", "stage", ref.stage);
    AUTO_FREE char *text = json_text(body);
    key_random(key);
    const struct client_call call = {
        .method = "POST", .path = path, .key = key, .body = str_of(text)};
    if (!client_call(cli, &call, &r, &status)) {
        return status;
    }
    if (cli->out == OUT_NAME) {
        (void)puts(ref.campaign);
    } else if (!print_machine(cli, r.json, NULL)) {
        (void)printf("%s %s: the gate of %s is overridden\n", glyph(cli, "running"), ref.campaign,
                     ref.stage);
    }
    return EXIT_OK;
}
