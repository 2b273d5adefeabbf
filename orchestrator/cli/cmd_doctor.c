/* drover doctor: checks the usual causes when something does not work. */
#include "cli.h"
#include "client.h"
#include "common/clock.h"
#include "core/spec/spec.h"
#include "print.h"
#include "table.h"
#include <stdio.h>
#include <sys/stat.h>

#define START_S 60 /* what droverd reads when it starts may lack for so long */

struct doctor_check {
    const struct cli *cli;
    json_t *list;
    bool bad, starting;
};

/* next: also of what is good, as advice or as a warning; "": none. */
static void tell(struct doctor_check *c, bool good, const char *what, const char *detail,
                 const char *next)
{
    json_t *v = json_object();
    (void)json_object_set_new(v, "check", json_string(what));
    (void)json_object_set_new(v, "ok", json_boolean(good));
    (void)json_object_set_new(v, "detail", json_string(detail));
    if (next[0] != '\0') {
        (void)json_object_set_new(v, "next", json_string(next));
    }
    (void)json_array_append_new(c->list, v);
    c->bad |= !good;
    if (c->cli->out == OUT_TABLE) {
        AUTO_FREE char *clean = text_clean(detail);
        AUTO_FREE char *todo = text_clean(next);
        (void)printf("%s %-11s %s\n", glyph(c->cli, good ? "done" : "failed"), what, clean);
        if (todo[0] != '\0') {
            (void)printf("  next: %s\n", todo);
        }
    }
}

static void note(struct doctor_check *c, bool good, const char *what, const char *detail,
                 const char *next)
{
    tell(c, good, what, detail, good ? "" : next);
}

static bool check_server(struct doctor_check *c, struct cli *cli)
{
    CLEANUP(reply_done)
    struct client_reply r = {0};
    struct err err = ERR_INIT;
    if (!client_try(cli, &(struct client_call){.method = "GET", .path = "/livez", .no_token = true},
                    &r, &err)) {
        AUTO_FREE char *text =
            xasprintf("%s does not answer: %s", client_url(cli->client), err.message);
        note(c, false, "server", text, "start droverd, or set DROVER_URL to where it listens");
        return false;
    }
    AUTO_FREE char *text =
        xasprintf("%s answers, version %s", client_url(cli->client), jstr(r.json, "version"));
    note(c, r.status == 200, "server", text, "another program may listen there: check DROVER_URL");
    usec_t now, start;
    if (clock_parse_rfc3339(jstr(r.json, "now"), &now, &err)) {
        c->starting = clock_parse_rfc3339(jstr(r.json, "started_at"), &start, &err) &&
                      now >= start && now - start < START_S * USEC_PER_SEC;
        int64_t skew_s = (clock_wall_us() - now) / USEC_PER_SEC;
        AUTO_FREE char *skew =
            xasprintf("%lld s apart from the server's", (long long)llabs(skew_s));
        note(c, llabs(skew_s) <= CLOCK_SKEW_S_MAX, "clock", skew,
             "set the clock: AWS rejects signatures that are 5 minutes off");
    }
    return r.status == 200;
}

static void check_token(struct doctor_check *c, struct cli *cli)
{
    const char *file = getenv("DROVER_TOKEN_FILE");
    struct stat st;
    if (file != NULL && stat(file, &st) == 0 && (st.st_mode & 077) != 0) {
        note(c, false, "token file", "other users may read it", "chmod 600 \"$DROVER_TOKEN_FILE\"");
    }
    CLEANUP(reply_done)
    struct client_reply r = {0};
    struct err err = ERR_INIT;
    bool there =
        client_try(cli, &(struct client_call){.method = "GET", .path = "/v1/session"}, &r, &err);
    AUTO_FREE char *text = there && r.status == 200
                               ? xasprintf("accepted, role %s", jstr(r.json, "role"))
                           : there ? xstrdup(jstr(r.json, "detail"))
                                   : xstrdup(err.message);
    note(c, there && r.status == 200, "token", text,
         "set DROVER_TOKEN_FILE to the file droverd made");
}

static void check_ready(struct doctor_check *c, struct cli *cli)
{
    CLEANUP(reply_done)
    struct client_reply r = {0};
    struct err err = ERR_INIT;
    if (!client_try(cli,
                    &(struct client_call){.method = "GET", .path = "/readyz", .no_token = true}, &r,
                    &err)) {
        note(c, false, "ready", err.message, "look at droverd's log");
        return;
    }
    bool db = json_is_true(json_object_get(r.json, "database"));
    bool aws = json_is_true(json_object_get(r.json, "aws"));
    note(c, db, "database", db ? "reached" : "droverd cannot reach PostgreSQL",
         "check DROVER_DATABASE_URL and PostgreSQL's log");
    note(c, aws, "aws", aws ? "answers droverd" : "has not answered droverd",
         "check droverd's AWS region, credentials and network");
}

/* What droverd asks of its account: credentials, clock, region, role, bucket, image; who leads. */
static void check_account(struct doctor_check *c, struct cli *cli)
{
    CLEANUP(reply_done)
    struct client_reply r = {0};
    struct err err = ERR_INIT;
    size_t i;
    json_t *v;
    if (!client_try(cli, &(struct client_call){.method = "GET", .path = "/v1/checks"}, &r, &err)) {
        note(c, false, "account", err.message, "look at droverd's log");
        return;
    }
    if (r.status != 200) {
        const char *detail = jstr(r.json, "detail");
        bool token = r.status == 401 || r.status == 403;
        AUTO_FREE char *text = xasprintf("account and leader are not known: %s (HTTP %d)",
                                         detail[0] != '\0' ? detail : "no reason", r.status);
        note(c, false, "account", text,
             token ? "set DROVER_TOKEN_FILE to a token that may read them"
                   : "look at droverd's log; is droverd as new as drover? drover version");
        return;
    }
    json_array_foreach(json_object_get(r.json, "checks"), i, v)
    {
        AUTO_FREE char *what = text_clean(jstr(v, "check"));
        tell(c, json_is_true(json_object_get(v, "ok")), what, jstr(v, "detail"), jstr(v, "next"));
    }
}

/* What droverd reads when it starts, and nothing starts without. */
static void tell_read(struct doctor_check *c, const char *what, const char *detail,
                      const char *none, const char *next)
{
    if (detail != NULL) {
        tell(c, true, what, detail, "");
    } else if (c->starting) {
        tell(c, true, what, "none is known yet: they are read since droverd started",
             "drover doctor, in a minute");
    } else {
        AUTO_FREE char *text = xasprintf("%s is known: nothing can start", none);
        tell(c, false, what, text, next);
    }
}

static void check_warm(struct doctor_check *c, size_t types, size_t warm)
{
    AUTO_FREE char *text = xasprintf("%zu of %zu instance types may be kept warm", warm, types);
    if (types > 0) {
        tell(c, true, "warm pools", text,
             warm > 0 ? ""
                      : "AWS allows none at first; \"TYPE for training warm pool usage\": "
                        "drover quotas request TYPE --value N --market warm");
    }
}

static void check_quotas(struct doctor_check *c, struct cli *cli)
{
    CLEANUP(reply_done)
    struct client_reply r = {0};
    struct err err = ERR_INIT;
    size_t i, known = 0, none = 0, warm = 0;
    json_t *q;
    if (!client_try(cli, &(struct client_call){.method = "GET", .path = "/v1/quotas"}, &r, &err) ||
        r.status != 200) {
        return; /* the check of the token reported it */
    }
    json_array_foreach(json_object_get(r.json, "quotas"), i, q)
    {
        bool is_warm = strcmp(jstr(q, "market"), quota_market_name(MARKET_ON_DEMAND, true)) == 0;
        bool usual =
            strcmp(jstr(q, "market"), market_name(MARKET_ON_DEMAND)) == 0 && !jnull(q, "limit");
        known += usual;
        none += usual && jint(q, "limit") == 0;
        warm += is_warm && jint(q, "limit") > 0;
    }
    AUTO_FREE char *text =
        none > 0 ? xasprintf("%zu instance types known, %zu of them with quota 0", known, none)
                 : xasprintf("%zu instance types known", known);
    tell_read(c, "quotas", known > 0 ? text : NULL, "none",
              "allow servicequotas:ListServiceQuotas");
    check_warm(c, known, warm);
}

/* Stages that wait for a quota that AWS has not told: of a type that does not exist, too. */
static void check_waits(struct doctor_check *c, struct cli *cli)
{
    CLEANUP(reply_done)
    struct client_reply r = {0};
    struct err err = ERR_INIT;
    const struct client_call call = {
        .method = "GET", .path = "/v1/campaigns?state=running&page_size=500&fields=id,guidance"};
    size_t i, k;
    json_t *of, *g;
    if (!client_try(cli, &call, &r, &err) || r.status != 200) {
        return; /* the check of the token reported it */
    }
    json_array_foreach(json_object_get(r.json, "campaigns"), i, of)
    {
        json_array_foreach(json_object_get(of, "guidance"), k, g)
        {
            if (strcmp(jstr(g, "kind"), "quota_unreadable") != 0) {
                continue;
            }
            AUTO_FREE char *text = xasprintf("%s waits: stage %s has an instance type whose quota "
                                             "AWS has not told",
                                             jstr(of, "id"), jstr(g, "stage"));
            AUTO_FREE char *next = xasprintf("is its name right? drover get %s --spec; else allow "
                                             "servicequotas:ListServiceQuotas",
                                             jstr(of, "id"));
            note(c, false, "quota", text, next);
        }
    }
}

static void check_prices(struct doctor_check *c, struct cli *cli)
{
    CLEANUP(reply_done)
    struct client_reply r = {0};
    struct err err = ERR_INIT;
    size_t i, listed = 0, file = 0;
    json_t *p;
    const char *newest = "";
    if (!client_try(cli, &(struct client_call){.method = "GET", .path = "/v1/prices"}, &r, &err) ||
        r.status != 200) {
        return; /* the check of the token reported it */
    }
    const json_t *list = json_object_get(r.json, "prices");
    json_array_foreach(list, i, p)
    {
        if (strcmp(jstr(p, "use"), "training") != 0) {
            continue; /* an endpoint and a file system start no job */
        }
        if (strcmp(jstr(p, "source"), "aws_pricing") == 0) {
            listed++;
            newest = strcmp(jstr(p, "read_at"), newest) > 0 ? jstr(p, "read_at") : newest;
        } else {
            file++;
        }
    }
    AUTO_FREE char *text = listed > 0 ? xasprintf("%zu of AWS Pricing, read %.10s; %zu of the file",
                                                  listed, newest, file)
                                      : xasprintf("%zu of the file", file);
    tell_read(c, "prices", listed + file > 0 ? text : NULL,
              json_array_size(list) > 0 ? "none of training" : "none",
              "allow pricing:GetProducts, or set DROVER_PRICES_FILE");
}

static void check_parked(struct doctor_check *c, struct cli *cli)
{
    CLEANUP(reply_done)
    struct client_reply r = {0};
    struct err err = ERR_INIT;
    if (!client_try(cli, &(struct client_call){.method = "GET", .path = "/v1/parked"}, &r, &err) ||
        r.status != 200) {
        return; /* the check of the token reported it */
    }
    size_t n = json_array_size(json_object_get(r.json, "parked"));
    AUTO_FREE char *text = xasprintf("%zu set aside since one of their values is refused", n);
    note(c, n == 0, "parked", n == 0 ? "nothing is set aside" : text, "drover parked");
}

int cmd_doctor(struct cli *cli)
{
    AUTO_JSON json_t *list = json_array();
    struct doctor_check c = {.cli = cli, .list = list};
    if (check_server(&c, cli)) {
        check_token(&c, cli);
        check_account(&c, cli);
        check_ready(&c, cli);
        check_quotas(&c, cli);
        check_waits(&c, cli);
        check_prices(&c, cli);
        check_parked(&c, cli);
    }
    if (cli->out != OUT_TABLE) {
        AUTO_JSON json_t *v = json_object();
        (void)json_object_set(v, "checks", list);
        (void)json_object_set_new(v, "ok", json_boolean(!c.bad));
        (void)print_machine(cli, v, list);
    }
    return c.bad ? EXIT_FAILED : EXIT_OK;
}
