/* drover scale, budget, priority and deadline: a change of a limit, shown before it is made. */
#include "cli.h"
#include "client.h"
#include "cmd_campaign_state.h"
#include "common/clock.h"
#include "common/time_text.h"
#include "forecast_print.h"
#include "print.h"
#include "ref.h"
#include "table.h"
#include <stdio.h>

/* What is limited: the campaign, or a stage of it. */
static const json_t *limited(const json_t *c, const struct ref *ref)
{
    size_t i;
    json_t *s;
    const json_t *of = c;
    json_array_foreach(json_object_get(c, "stages"), i, s)
    {
        of = strcmp(jstr(s, "name"), ref->stage) == 0 ? s : of;
    }
    return of;
}

static int64_t limit_of(const json_t *o, const char *key)
{
    return jnull(o, key) ? INT64_MAX : jint(o, key);
}

/* What a change asks for, and so whether it may cost more than before. */
struct wish {
    const json_t *body; /* of PATCH; NULL: nothing, it is only shown */
    /* -1: as it is; INT64_MAX: no limit */
    int64_t parts, musd, part_musd;
    bool stops;           /* running jobs, when the budget is reached */
    const char *what_if;  /* the same for the forecast; NULL: it knows no difference */
    const char *deadline; /* it would have then; NULL: as it is */
    bool asks;            /* for the deadline: say that there is none */
};

static bool costs(const struct wish *w, const struct ref *ref, const json_t *now)
{
    const json_t *of = limited(now, ref), *budget = json_object_get(of, "budget");
    return w->parts > limit_of(json_object_get(of, "limits"), "parts") ||
           w->musd > limit_of(budget, "limit_micro_usd") ||
           w->part_musd > limit_of(budget, "per_task_micro_usd") || w->stops;
}

/* End, cost and what binds, as they are and as they would be. False: *ret_exit is the exit status.
 * That no forecast can be had hinders no change. */
static bool preview(struct cli *cli, const struct ref *ref, const struct wish *w, const json_t *now,
                    int *ret_exit)
{
    CLEANUP(reply_done)
    struct client_reply r = {0};
    bool only = cli->opt.dry_run || w->body == NULL;
    if (!only && cli->out != OUT_TABLE) {
        return true;
    }
    AUTO_BUF struct buf query = BUF_INIT(8192);
    query_add(&query, "what_if", w->what_if != NULL ? w->what_if : "");
    AUTO_FREE char *path =
        xasprintf("/v1/campaigns/%s/forecast%s", ref->campaign, buf_cstr(&query));
    struct err err = ERR_INIT;
    const struct client_call call = {.method = "GET", .path = path};
    if (only && !client_get(cli, &r, ret_exit, "%s", path)) {
        return false;
    }
    if (!only && (!client_try(cli, &call, &r, &err) || r.status != 200)) {
        if (r.status < 400 || r.status >= 500) { /* else the change is refused with the reason */
            say("there is no forecast now; see it with drover plan %s", ref->campaign);
        }
    } else if (cli->out == OUT_TABLE) {
        const char *deadline = w->deadline != NULL ? w->deadline : jstr(now, "deadline");
        forecast_preview_print(cli, r.json, deadline);
        if (only && w->asks && deadline[0] == '\0') {
            say("no deadline; next: drover deadline %s 36h", ref->campaign);
        }
    } else {
        (void)print_machine(cli, r.json, NULL);
    }
    return true;
}

/* Show what would follow, then PATCH the campaign with the ETag just read: a concurrent change is a
 * conflict. False: nothing was changed, and *ret_exit is the exit status. */
static bool change(struct cli *cli, const struct ref *ref, const struct wish *w,
                   struct client_reply *ret, int *ret_exit)
{
    CLEANUP(reply_done)
    struct client_reply now = {0};
    AUTO_FREE char *path = xasprintf("/v1/campaigns/%s", ref->campaign);
    if (!client_get(cli, &now, ret_exit, "%s", path) || !preview(cli, ref, w, now.json, ret_exit)) {
        return false;
    }
    if (cli->opt.dry_run || w->body == NULL) {
        *ret_exit = EXIT_OK;
        return false;
    }
    AUTO_FREE char *question =
        xasprintf(cli->opt.resume ? "Change %s and let the campaign go on?"
                                  : "%s may cost more than before. Change it?",
                  ref->campaign);
    if ((cli->opt.resume || costs(w, ref, now.json)) && !confirm(cli, question)) {
        *ret_exit = declined(cli, "change it", "not changed");
        return false;
    }
    char key[37];
    key_random(key); /* repeated with it when the reply is lost */
    AUTO_FREE char *text = json_text(w->body);
    const struct client_call call = {
        .method = "PATCH", .path = path, .body = str_of(text), .key = key, .if_match = now.etag};
    return client_call(cli, &call, ret, ret_exit);
}

static int change_print(struct cli *cli, const struct ref *ref, const struct client_reply *r,
                        const char *what)
{
    if (cli->out == OUT_NAME) {
        (void)puts(ref->campaign);
    } else if (!print_machine(cli, r->json, NULL)) {
        (void)printf("%s %s: %s\n", glyph(cli, jstr(r->json, "state")), ref->campaign, what);
    }
    return EXIT_OK;
}

int cmd_scale(struct cli *cli)
{
    int status;
    int64_t n = 0;
    struct ref ref;
    struct err err = ERR_INIT;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    bool none = strcmp(cli->args[1], "none") == 0;
    if (!none && !parse_i64(str_of(cli->args[1]), 0, INT32_MAX, &n, &err)) {
        return fail(EXIT_USAGE, "drover scale c-7 24, or none for no limit",
                    "not a number of parts, 0 or more: %s", err.message);
    }
    if (!ref_read(cli, cli->args[0], &ref, &status)) {
        return status;
    }
    if (ref.part >= 0) {
        return fail(EXIT_USAGE, "drover scale c-7/download 8",
                    "'%.80s': this limit is of a campaign or a stage, not of a part", cli->args[0]);
    }
    json_t *parts = none ? json_null() : json_integer(n);
    AUTO_JSON json_t *body = ref.stage[0] == '\0'
                                 ? json_pack("{s:{s:o}}", "limits", "parts", parts)
                                 : json_pack("{s:{s:{s:o}}}", "stages", ref.stage, "parts", parts);
    AUTO_FREE char *what_if = xasprintf("%s%s%sparts=%s", ref.stage[0] != '\0' ? "stage=" : "",
                                        ref.stage, ref.stage[0] != '\0' ? "," : "", cli->args[1]);
    const struct wish w = {.body = body,
                           .parts = none ? INT64_MAX : n,
                           .musd = -1,
                           .part_musd = -1,
                           .what_if = what_if};
    if (!change(cli, &ref, &w, &r, &status)) {
        return status;
    }
    AUTO_FREE char *text =
        none ? xstrdup("parts at once: no limit of its own")
             : xasprintf("at most %lld parts at once; running parts continue", (long long)n);
    return change_print(cli, &ref, &r, text);
}

/* Adds an amount, or "none", under `key`. Returns it as struct wish has it. */
static int64_t add_money(json_t *budget, const char *key, const char *usd)
{
    int64_t musd = INT64_MAX;
    struct err ignored = ERR_INIT;
    if (usd == NULL) {
        return -1;
    }
    bool none = strcmp(usd, "none") == 0;
    (void)json_object_set_new(budget, key, none ? json_null() : json_string(usd));
    return none || parse_usd(str_of(usd), &musd, &ignored) ? musd : -1; /* refused by the server */
}

/* What a stage, or each of its parts, may cost. */
static json_t *stage_budget(const char *stage, const char *usd, const char *per_task,
                            struct wish *ret)
{
    json_t *budget = json_object();
    ret->musd = add_money(budget, "total", usd);
    ret->part_musd = add_money(budget, "per_task", per_task);
    return json_pack("{s:{s:{s:o}}}", "stages", stage, "budget", budget);
}

static json_t *campaign_budget(const char *usd, const char *at_limit, struct wish *ret)
{
    json_t *budget = json_object();
    bool none = usd != NULL && strcmp(usd, "none") == 0;
    ret->musd = add_money(budget, none ? "limit_micro_usd" : "total", usd);
    if (at_limit != NULL) {
        (void)json_object_set_new(budget, "at_limit", json_string(at_limit));
        ret->stops = strcmp(at_limit, "stop") == 0;
    }
    return json_pack("{s:o}", "budget", budget);
}

/* The reference and what is to change of it fit each other. False: *ret_exit is the exit status. */
static bool budget_read(struct cli *cli, const char *usd, struct ref *ret, int *ret_exit)
{
    const struct cli_options *o = &cli->opt;
    if (usd == NULL && o->at_limit == NULL && o->per_task == NULL) {
        AUTO_FREE char *next =
            xasprintf("drover budget %.80s 1200, or none; --at-limit drain", cli->args[0]);
        *ret_exit = fail(EXIT_USAGE, next, "nothing to change");
        return false;
    }
    if (!ref_read(cli, cli->args[0], ret, ret_exit)) {
        return false;
    }
    bool stage = ret->stage[0] != '\0';
    const char *wrong = ret->part >= 0 ? "a budget is of a campaign or a stage, not of a part"
                        : stage && o->at_limit != NULL  ? "--at-limit is the campaign's"
                        : !stage && o->per_task != NULL ? "--per-task is a stage's"
                                                        : NULL;
    if (wrong != NULL) {
        *ret_exit = fail(EXIT_USAGE, "drover budget c-7/download 900 --per-task 40", "%s", wrong);
    }
    return wrong == NULL;
}

/* "budget 1200.00 USD, 890.00 USD spent". */
static char *budget_text(const json_t *b)
{
    char limit[TEXT_N], spent[TEXT_N], part[TEXT_N];
    bool none = jnull(b, "limit_micro_usd"), each = !jnull(b, "per_task_micro_usd");
    return xasprintf("budget %s%s, %s USD spent%s%s%s",
                     none ? "none" : money(jint(b, "limit_micro_usd"), limit), none ? "" : " USD",
                     money(jint(b, "spent_micro_usd"), spent), each ? ", each part at most " : "",
                     each ? money(jint(b, "per_task_micro_usd"), part) : "", each ? " USD" : "");
}

int cmd_budget(struct cli *cli)
{
    int status;
    struct ref ref;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    const char *usd = cli->args_n > 1 ? cli->args[1] : NULL;
    if (!budget_read(cli, usd, &ref, &status)) {
        return status;
    }
    struct wish w = {.parts = -1, .musd = -1, .part_musd = -1};
    bool stage = ref.stage[0] != '\0';
    AUTO_JSON json_t *body = stage ? stage_budget(ref.stage, usd, cli->opt.per_task, &w)
                                   : campaign_budget(usd, cli->opt.at_limit, &w);
    AUTO_FREE char *what_if = usd != NULL ? xasprintf("%s%s%sbudget=%s", stage ? "stage=" : "",
                                                      ref.stage, stage ? "," : "", usd)
                                          : NULL;
    w.body = body;
    w.what_if = what_if;
    if (!change(cli, &ref, &w, &r, &status)) {
        return status;
    }
    if (cli->opt.resume && (status = resume_after(cli, ref.campaign)) != EXIT_OK) {
        return status;
    }
    const json_t *b = json_object_get(limited(r.json, &ref), "budget");
    AUTO_FREE char *text = budget_text(b);
    AUTO_FREE char *whole = stage ? xasprintf("stage %s: %s", ref.stage, text)
                                  : xasprintf("%s, when reached: %s", text, jstr(b, "at_limit"));
    return change_print(cli, &ref, &r, whole);
}

int cmd_priority(struct cli *cli)
{
    int status;
    int64_t n = 0;
    struct ref ref;
    struct err err = ERR_INIT;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!parse_i64(str_of(cli->args[1]), 0, 100, &n, &err)) {
        return fail(EXIT_USAGE, "drover priority c-7 80; a file without one has 50",
                    "not a priority, 0 to 100: %s", err.message);
    }
    if (!ref_read_whole(cli, "priority", &ref, &status)) {
        return status;
    }
    AUTO_JSON json_t *body = json_pack("{s:I}", "priority", (json_int_t)n);
    AUTO_FREE char *what_if = xasprintf("priority=%lld", (long long)n);
    const struct wish w = {
        .body = body, .parts = -1, .musd = -1, .part_musd = -1, .what_if = what_if};
    if (!change(cli, &ref, &w, &r, &status)) {
        return status;
    }
    AUTO_FREE char *text =
        xasprintf("priority %lld; what is free goes to the highest first", (long long)n);
    return change_print(cli, &ref, &r, text);
}

/* A time as the server takes it; of "36h" that from now on. NULL: it is neither. */
static char *deadline_text(const char *text)
{
    int64_t seconds;
    usec_t at;
    struct err ignored = ERR_INIT;
    char out[32];
    if (parse_duration_s(str_of(text), 1, INT64_C(10) * 366 * 24 * 3600, &seconds, &ignored)) {
        at = clock_wall_us() + seconds * USEC_PER_SEC;
    } else if (!clock_parse_rfc3339(text, &at, &ignored)) {
        return NULL;
    }
    clock_format_rfc3339(at, false, out);
    return xstrdup(out);
}

int cmd_deadline(struct cli *cli)
{
    int status = EXIT_OK;
    struct ref ref;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    const char *text = cli->args_n > 1 ? cli->args[1] : NULL;
    bool none = text != NULL && strcmp(text, "none") == 0;
    AUTO_FREE char *at = text != NULL && !none ? deadline_text(text) : NULL;
    if (text != NULL && !none && at == NULL) {
        return fail(EXIT_USAGE, "drover deadline c-7 2026-12-01T18:00:00Z, 36h from now, or none",
                    "'%.40s' is no time", text);
    }
    if (!ref_read_whole(cli, "deadline", &ref, &status)) {
        return status;
    }
    AUTO_JSON json_t *body = text == NULL ? NULL : json_pack("{s:s?}", "deadline", at);
    const struct wish w = {.body = body,
                           .parts = -1,
                           .musd = -1,
                           .part_musd = -1,
                           .deadline = none ? "" : at,
                           .asks = true};
    if (!change(cli, &ref, &w, &r, &status)) {
        return status;
    }
    char day[TEXT_N];
    AUTO_FREE char *what =
        none ? xstrdup("no deadline")
             : xasprintf("deadline %s UTC; nothing is stopped by it", when(at, day));
    return change_print(cli, &ref, &r, what);
}
