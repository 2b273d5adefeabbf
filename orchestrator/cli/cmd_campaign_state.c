/* drover pause, resume, drain, cancel, archive. */
#include "cmd_campaign_state.h"
#include "cli.h"
#include "client.h"
#include "forecast_print.h"
#include "print.h"
#include "ref.h"
#include "table.h"
#include "wait.h"
#include <stdio.h>

static bool ended(const char *state)
{
    return strcmp(state, "succeeded") == 0 || strcmp(state, "failed") == 0 ||
           strcmp(state, "cancelled") == 0;
}

static bool state_reached(const json_t *v, const char *arg)
{
    const char *state = jstr(v, "state");
    return strcmp(state, arg) == 0 || ended(state);
}

int resume_after(struct cli *cli, const char *campaign)
{
    int status = EXIT_OK;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    return client_post(cli, &r, &status, "/v1/campaigns/%s:resume", campaign) ? EXIT_OK : status;
}

/* After a wait for `wanted`: it may have ended otherwise before. What was resumed went on, also
 * when it has ended since. */
static int otherwise(const json_t *now, const char *verb, const char *wanted)
{
    const char *id = jstr(now, "id"), *state = jstr(now, "state");
    bool went_on = strcmp(verb, "resume") == 0 && ended(state) && strcmp(state, "cancelled") != 0;
    AUTO_FREE char *next = xasprintf("drover get %s shows it", id);
    return went_on || strcmp(state, wanted) == 0
               ? EXIT_OK
               : fail(EXIT_CONFLICT, next, "%s is %s, not %s", id, state, wanted);
}

static bool archive_reached(const json_t *v, const char *arg)
{
    return strcmp(jstr(json_object_get(v, "archive"), "state"), arg) == 0;
}

void archive_print(const struct cli *cli, const json_t *campaign)
{
    const json_t *archive = json_object_get(campaign, "archive");
    const json_t *to = json_object_get(archive, "export");
    if (!json_is_object(archive)) {
        return;
    }
    if (!json_is_object(to)) {
        text_print(cli, "archived    ", "without a folder: its rows are written nowhere");
        return;
    }
    AUTO_FREE char *text = xasprintf(
        "%s, %lld objects%s%s", jstr(to, "uri"), (long long)jint(to, "objects"),
        jnull(to, "problem") ? "" : "; the next one is tried again: ", jstr(to, "problem"));
    text_print(cli, "archived in ", text);
}

/* An archive may be told where to write first. */
static bool ask(struct cli *cli, const char *verb, const char *campaign, struct client_reply *ret,
                int *ret_exit)
{
    char key[37];
    AUTO_FREE char *path = xasprintf("/v1/campaigns/%s:%s", campaign, verb);
    AUTO_JSON json_t *body =
        cli->opt.to != NULL ? json_pack("{s:s}", "to", cli->opt.to) : json_object();
    AUTO_FREE char *text = json_text(body);
    key_random(key);
    const struct client_call call = {
        .method = "POST", .path = path, .key = key, .body = str_of(text)};
    return client_call(cli, &call, ret, ret_exit);
}

/* Of the campaign that was asked about: its name, looked up again, may be another's by now.
 * resumable: the command that resumes it is named. */
static int want(struct cli *cli, const char *id, const char *verb, const char *state,
                const char *text, bool resumable)
{
    bool archives = strcmp(verb, "archive") == 0;
    int status = EXIT_OK;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!ask(cli, verb, id, &r, &status)) {
        return status;
    }
    if (cli->opt.wait) {
        AUTO_FREE char *get = xasprintf("/v1/campaigns/%s", id);
        status = wait_for(cli, get, archives ? archive_reached : state_reached, state);
        if (status == EXIT_OK) {
            reply_done(&r);
            if (!client_get(cli, &r, &status, "%s", get)) {
                return status;
            }
            status = archives ? EXIT_OK : otherwise(r.json, verb, state);
        }
    }
    if (cli->out == OUT_TABLE && status != EXIT_OK) {
        return status;
    }
    if (cli->out == OUT_NAME) {
        (void)puts(id);
    } else if (!print_machine(cli, r.json, NULL)) {
        (void)printf("%s %s: %s%s", glyph(cli, state), id, text, cli->opt.wait ? " (done)" : "");
        if (resumable) {
            (void)printf("; resume: drover resume %s", id);
        }
        (void)putchar('\n');
        archive_print(cli, r.json);
    }
    return status;
}

static int64_t parts_running(const json_t *campaign)
{
    int64_t n = 0;
    size_t i;
    json_t *s;
    json_array_foreach(json_object_get(campaign, "stages"), i, s)
    {
        n += jint(json_object_get(s, "parts"), "active");
    }
    return n;
}

/* The campaign of the first argument, which a question to the person is made of, and what follows
 * it. */
static bool campaign_as_it_is(struct cli *cli, const char *verb, struct client_reply *ret,
                              int *ret_status)
{
    struct ref ref;
    return ref_read_whole(cli, verb, &ref, ret_status) &&
           client_get(cli, ret, ret_status, "/v1/campaigns/%s", ref.campaign);
}

/* Jobs that it stops were paid for, and what they had not kept is lost: it asks while some run. */
int cmd_pause(struct cli *cli)
{
    int status = EXIT_OK;
    CLEANUP(reply_done)
    struct client_reply now = {0};
    if (!campaign_as_it_is(cli, "pause", &now, &status)) {
        return status;
    }
    int64_t n = parts_running(now.json);
    const char *id = jstr(now.json, "id");
    AUTO_FREE char *question =
        xasprintf("Stop %lld running part%s of %s? Work not kept is paid for and lost.",
                  (long long)n, n == 1 ? "" : "s", id);
    if (n > 0 && !confirm(cli, question)) {
        return declined(cli, "pause", "not paused");
    }
    return want(cli, id, "pause", "paused", "pausing, running parts are stopped", true);
}

static void stages_print(const json_t *campaign)
{
    size_t i;
    json_t *s;
    json_array_foreach(json_object_get(campaign, "stages"), i, s)
    {
        const json_t *p = json_object_get(s, "parts");
        if (!ended(jstr(s, "state")) && jint(p, "waiting") + jint(p, "active") > 0) {
            (void)printf("  %s: %lld wait, %lld run\n", jstr(s, "name"),
                         (long long)jint(p, "waiting"), (long long)jint(p, "active"));
        }
    }
}

/* What goes on when it is resumed: its stages, its money, its end. The forecast is made as if it
 * ran; that none can be had hinders nobody. */
static void resume_print(struct cli *cli, const json_t *campaign)
{
    char spent[TEXT_N], reserved[TEXT_N], limit[TEXT_N];
    const json_t *b = json_object_get(campaign, "budget");
    const char *id = jstr(campaign, "id");
    bool capped = !jnull(b, "limit_micro_usd");
    struct err err = ERR_INIT;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    AUTO_FREE char *path = xasprintf("/v1/campaigns/%s/forecast", id);
    const struct client_call call = {.method = "GET", .path = path};
    (void)printf("%s is %s\n", id, jstr(campaign, "state"));
    stages_print(campaign);
    (void)printf("  %s USD spent, %s reserved, %s%s\n", money(jint(b, "spent_micro_usd"), spent),
                 money(jint(b, "reserved_micro_usd"), reserved),
                 capped ? "budget " : "no budget of its own",
                 capped ? money(jint(b, "limit_micro_usd"), limit) : "");
    if (client_try(cli, &call, &r, &err) && r.status == 200) {
        forecast_preview_print(cli, r.json, jstr(campaign, "deadline"));
    } else {
        say("there is no forecast now; see it with drover plan %s", id);
    }
    (void)fflush(stdout);
}

int cmd_resume(struct cli *cli)
{
    int status = EXIT_OK;
    CLEANUP(reply_done)
    struct client_reply now = {0};
    if (!campaign_as_it_is(cli, "resume", &now, &status)) {
        return status;
    }
    bool over = ended(jstr(now.json, "state")); /* it is refused with the reason */
    if (!over && cli->out == OUT_TABLE) {
        resume_print(cli, now.json);
    }
    const char *id = jstr(now.json, "id");
    AUTO_FREE char *question = xasprintf("Let %s go on? It starts jobs that cost money.", id);
    if (!over && !confirm(cli, question)) {
        return declined(cli, "resume", "not resumed");
    }
    return want(cli, id, "resume", "running", "goes on", false);
}

int cmd_drain(struct cli *cli)
{
    int status = EXIT_OK;
    struct ref ref;
    return ref_read_whole(cli, "drain", &ref, &status)
               ? want(cli, ref.campaign, "drain", "paused",
                      "no new parts start, running parts finish", true)
               : status;
}

/* "Cancel c-7 (laion) for good?": which one it is, to whom wrote a name. With -y nothing is read:
 * the request itself waits for a server that is away. */
static bool agreed(struct cli *cli, const char *id, const char *before, const char *after,
                   int *ret_exit)
{
    CLEANUP(reply_done)
    struct client_reply now = {0};
    *ret_exit = EXIT_OK;
    if (cli->opt.yes) {
        return true;
    }
    if (!client_get(cli, &now, ret_exit, "/v1/campaigns/%s", id)) {
        return false;
    }
    AUTO_FREE char *name = text_clean(jstr(now.json, "name"));
    AUTO_FREE char *question = xasprintf("%s %s (%s) %s", before, id, name, after);
    return confirm(cli, question);
}

int cmd_cancel(struct cli *cli)
{
    int status = EXIT_OK;
    struct ref ref;
    if (!ref_read_whole(cli, "cancel", &ref, &status)) {
        return status;
    }
    if (!agreed(cli, ref.campaign, "Cancel", "for good and stop all its jobs?", &status)) {
        return status != EXIT_OK ? status : declined(cli, "cancel", "not cancelled");
    }
    return want(cli, ref.campaign, "cancel", "cancelled", "cancelling, all its jobs are stopped",
                false);
}

int cmd_archive(struct cli *cli)
{
    int status = EXIT_OK;
    struct ref ref;
    if (!ref_read_whole(cli, "archive", &ref, &status)) {
        return status;
    }
    if (!agreed(cli, ref.campaign, "Delete the parts, attempts and metrics of", "for good?",
                &status)) {
        return status != EXIT_OK ? status : declined(cli, "archive", "not archived");
    }
    return want(cli, ref.campaign, "archive", "archived",
                "archiving, its parts are deleted; counters and costs are kept", false);
}
