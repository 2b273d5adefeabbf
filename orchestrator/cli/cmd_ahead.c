/* drover plan, why, scale, budget: what is to come, and what would change it. */
#include "cli.h"
#include <stdio.h>
#include <unistd.h>

static const char *span_or_never(const json_t *v, const char *key, char buf[static TEXT_N])
{
    return jnull(v, key) ? "never" : span(jint(v, key), buf);
}

/* "HEAD ends in 1 h 22 m (1 h 13 m to 1 h 36 m)", and the cost below it. */
static void band_print(const char *head, const json_t *f)
{
    char mid[TEXT_N], low[TEXT_N], high[TEXT_N];
    const json_t *end = json_object_get(f, "end");
    const json_t *cost = json_object_get(f, "cost");
    if (jnull(end, "p50_seconds")) {
        (void)printf("%s never ends as things are: a cap, quota or price holds it\n", head);
    } else {
        (void)printf("%s ends in %s (%s to %s)\n", head, span(jint(end, "p50_seconds"), mid),
                     span(jint(end, "p10_seconds"), low), span_or_never(end, "p90_seconds", high));
    }
    int indent = (int)text_width(head);
    if (json_is_object(cost)) {
        (void)printf(
            "%*s costs %s USD (%s to %s)\n", indent, "", money(jint(cost, "p50_micro_usd"), mid),
            money(jint(cost, "p10_micro_usd"), low), money(jint(cost, "p90_micro_usd"), high));
    } else {
        (void)printf("%*s cost unknown: no price is known\n", indent, "");
    }
}

static void advice_print(const json_t *f)
{
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(f, "advice"), i, v)
    {
        char sooner[TEXT_N], usd[TEXT_N];
        int64_t dearer = jint(v, "dearer_micro_usd");
        bool quota = !jnull(v, "instance_type");
        (void)printf("  +%lld %s%s: %s sooner, %s%s USD\n", (long long)jint(v, "more"),
                     quota ? "x " : "", quota ? jstr(v, "instance_type") : "parts at once",
                     span(jint(v, "sooner_seconds"), sooner), dearer < 0 ? "-" : "+",
                     money(dearer < 0 ? -dearer : dearer, usd));
    }
}

static void stages_print(const json_t *f)
{
    const json_t *stages = json_object_get(f, "stages");
    size_t i;
    json_t *v;
    json_array_foreach(stages, i, v)
    {
        AUTO_FREE char *head = xasprintf("  %-12s", jstr(v, "name"));
        if (json_array_size(stages) > 1) {
            band_print(head, v);
        }
    }
}

void forecast_print(const struct cli *cli, const json_t *forecast, const json_t *what_if)
{
    if (!json_is_object(forecast)) {
        return;
    }
    if (!json_is_true(json_object_get(forecast, "known"))) {
        const char *why = jstr(forecast, "reason");
        AUTO_FREE char *text = text_clean(why);
        text_print(cli, "Forecast ", text);
        return;
    }
    band_print("Forecast ", forecast);
    stages_print(forecast);
    double fits = json_number_value(json_object_get(forecast, "fits_budget"));
    if (fits < 0.995) {
        (void)printf("  ! the budget is enough in %.0f of 100 cases\n", fits * 100);
    }
    advice_print(forecast);
    if (json_is_object(what_if)) {
        AUTO_FREE char *head = xasprintf("if %s:", jstr(what_if, "text"));
        band_print(head, what_if);
    }
}

static int plan_campaign(struct cli *cli)
{
    int status;
    struct ref ref;
    CLEANUP(reply_done)
    struct reply r = {0};
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
    forecast_print(cli, whole, json_object_get(r.json, "what_if"));
    return EXIT_OK;
}

/* A file when there is one of that name, else a campaign. */
int cmd_plan(struct cli *cli)
{
    const char *what = cli->args[0];
    if (strcmp(what, "-") == 0 || access(what, F_OK) == 0 || strchr(what, '.') != NULL) {
        cli->opt.dry_run = true;
        return cmd_submit(cli);
    }
    return plan_campaign(cli);
}

static void why_print(const struct cli *cli, const json_t *v)
{
    char low[TEXT_N], mid[TEXT_N], high[TEXT_N];
    AUTO_FREE char *text = text_clean(jstr(v, "text"));
    AUTO_FREE char *head =
        xasprintf("%s %s %s: ", glyph(cli, jstr(v, "state")), jstr(v, "id"), jstr(v, "state"));
    text_print(cli, head, text);
    if (!jnull(v, "place")) {
        (void)printf("  place %lld of %lld", (long long)jint(v, "place"),
                     (long long)jint(v, "place_of"));
        const json_t *s = json_object_get(v, "starts");
        if (json_is_object(s) && jnull(s, "p50_seconds")) {
            (void)printf("   never starts as things are");
        } else if (json_is_object(s)) {
            (void)printf("   starts in %s (%s to %s)", span(jint(s, "p50_seconds"), mid),
                         span(jint(s, "p10_seconds"), low), span_or_never(s, "p90_seconds", high));
        }
        (void)putchar('\n');
    }
    if (!jnull(v, "starts_unknown")) {
        AUTO_FREE char *unknown = text_clean(jstr(v, "starts_unknown"));
        text_print(cli, "  start not known: ", unknown);
    }
    if (!jnull(v, "not_before")) {
        char at[TEXT_N];
        (void)printf("  not before %s UTC\n", when(jstr(v, "not_before"), at));
    }
    size_t i;
    json_t *c;
    json_array_foreach(json_object_get(v, "changes"), i, c)
    {
        (void)printf("  %s: starts in %s\n", jstr(c, "command"),
                     span(json_integer_value(jget(c, "starts", "p50_seconds")), mid));
    }
    if (jstr(v, "next")[0] != '\0') {
        (void)printf("  next: %s\n", jstr(v, "next"));
    }
}

int cmd_why(struct cli *cli)
{
    int status;
    struct ref ref;
    CLEANUP(reply_done)
    struct reply r = {0};
    if (!ref_read(cli, cli->args[0], &ref, &status)) {
        return status;
    }
    if (ref.part < 0) {
        return fail(EXIT_USAGE, "drover parts shows the numbers", "name a part: drover why %s/0",
                    ref.campaign);
    }
    const char *stage = cli->opt.stage != NULL ? cli->opt.stage : ref.stage;
    AUTO_BUF struct buf query = BUF_INIT(1024);
    if (stage[0] != '\0') {
        buf_add_cstr(&query, "?stage=");
        str_url_encode(&query, str_of(stage), false);
    }
    if (!client_get(cli, &r, &status, "/v1/campaigns/%s/parts/%lld/why%s", ref.campaign,
                    (long long)ref.part, buf_cstr(&query))) {
        return status;
    }
    if (!print_machine(cli, r.json, NULL)) {
        why_print(cli, r.json);
    }
    return EXIT_OK;
}

/* PATCH of the campaign as it is now; somebody else's change in between is a conflict. */
static int change(struct cli *cli, const struct ref *ref, const json_t *body, struct reply *ret)
{
    int status = EXIT_OK;
    CLEANUP(reply_done)
    struct reply now = {0};
    AUTO_FREE char *path = xasprintf("/v1/campaigns/%s", ref->campaign);
    AUTO_FREE char *text = json_text(body);
    if (!client_get(cli, &now, &status, "%s", path)) {
        return status;
    }
    const struct call call = {
        .method = "PATCH", .path = path, .body = str_of(text), .if_match = now.etag};
    return client_call(cli, &call, ret, &status) ? EXIT_OK : status;
}

static int change_print(struct cli *cli, const struct ref *ref, const struct reply *r,
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
    struct reply r = {0};
    bool none = strcmp(cli->args[1], "none") == 0;
    if (!none && !parse_i64(str_of(cli->args[1]), 0, INT32_MAX, &n, &err)) {
        return fail(EXIT_USAGE, "drover scale c-7 24, or none for no limit",
                    "a number of parts from 0 on: %s", err.message);
    }
    if (!ref_read(cli, cli->args[0], &ref, &status)) {
        return status;
    }
    json_t *parts = none ? json_null() : json_integer(n);
    AUTO_JSON json_t *body = ref.stage[0] == '\0'
                                 ? json_pack("{s:{s:o}}", "limits", "parts", parts)
                                 : json_pack("{s:{s:{s:o}}}", "stages", ref.stage, "parts", parts);
    status = change(cli, &ref, body, &r);
    if (status != EXIT_OK) {
        return status;
    }
    AUTO_FREE char *text =
        none ? xstrdup("no limit of its own on parts at once")
             : xasprintf("at most %lld parts at once; what runs now goes on", (long long)n);
    return change_print(cli, &ref, &r, text);
}

int cmd_budget(struct cli *cli)
{
    int status;
    struct ref ref;
    CLEANUP(reply_done)
    struct reply r = {0};
    const char *usd = cli->args_n > 1 ? cli->args[1] : NULL;
    if (usd == NULL && cli->opt.at_limit == NULL) {
        return fail(EXIT_USAGE, "drover budget c-7 1200, or none; --at-limit drain",
                    "say what to change");
    }
    if (!ref_read(cli, cli->args[0], &ref, &status)) {
        return status;
    }
    AUTO_JSON json_t *budget = json_object();
    if (usd != NULL && strcmp(usd, "none") == 0) {
        (void)json_object_set_new(budget, "limit_micro_usd", json_null());
    } else if (usd != NULL) {
        (void)json_object_set_new(budget, "total", json_string(usd));
    }
    if (cli->opt.at_limit != NULL) {
        (void)json_object_set_new(budget, "at_limit", json_string(cli->opt.at_limit));
    }
    AUTO_JSON json_t *body = json_pack("{s:O}", "budget", budget);
    status = change(cli, &ref, body, &r);
    if (status != EXIT_OK) {
        return status;
    }
    char limit[TEXT_N], spent[TEXT_N];
    const json_t *b = json_object_get(r.json, "budget");
    AUTO_FREE char *text =
        xasprintf("budget %s%s, %s USD spent, at it: %s",
                  jnull(b, "limit_micro_usd") ? "none" : money(jint(b, "limit_micro_usd"), limit),
                  jnull(b, "limit_micro_usd") ? "" : " USD",
                  money(jint(b, "spent_micro_usd"), spent), jstr(b, "at_limit"));
    return change_print(cli, &ref, &r, text);
}
