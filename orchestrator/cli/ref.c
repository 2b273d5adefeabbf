/* Parses CAMPAIGN[/STAGE[/PART[/ATTEMPT]]]. */
#include "ref.h"
#include "cli.h"
#include "client.h"
#include "print.h"
#include <stdio.h>

#define PAGE_ROWS    1000
#define PAGES_MAX    100
#define STAGES_SHOWN 4

static bool is_number(struct str s)
{
    int64_t n;
    return s.n > 0 && s.p[0] != '-' && parse_i64(s, 0, INT64_MAX, &n, NULL);
}

/* The first of a page, which has the newest first, of this name; without a name that has not ended.
 * NULL: none. */
static const json_t *page_search(const json_t *page, struct str name)
{
    size_t i;
    json_t *c;
    json_array_foreach(page, i, c)
    {
        const char *state = jstr(c, "state");
        bool ended = strcmp(state, "succeeded") == 0 || strcmp(state, "failed") == 0 ||
                     strcmp(state, "cancelled") == 0;
        if (name.n > 0 ? str_eq_cstr(name, jstr(c, "name")) : !ended) {
            return c;
        }
    }
    return NULL;
}

/* The newest campaign of this name, or without a name the newest that has not ended, else the
 * newest. */
static bool campaign_search(struct cli *cli, struct str name, char ret[static 32], int *ret_exit)
{
    AUTO_FREE char *token = xstrdup("");
    AUTO_FREE char *newest = xstrdup("");
    const json_t *found = NULL;
    ret[0] = '\0';
    for (int page = 0; found == NULL && page < PAGES_MAX && (page == 0 || token[0] != '\0');
         page++) {
        CLEANUP(reply_done)
        struct client_reply r = {0};
        if (!client_get(cli, &r, ret_exit, "/v1/campaigns?page_size=%d&fields=id,name,state%s%s",
                        PAGE_ROWS, token[0] != '\0' ? "&page_token=" : "", token)) {
            return false;
        }
        const json_t *list = json_object_get(r.json, "campaigns");
        found = page_search(list, name);
        if (found == NULL && page == 0 && name.n == 0) {
            free(newest);
            newest = xstrdup(jstr(json_array_get(list, 0), "id"));
        }
        (void)snprintf(ret, 32, "%s", found != NULL ? jstr(found, "id") : newest);
        free(token);
        token = xstrdup(jstr(r.json, "next_page_token"));
    }
    if (ret[0] == '\0') {
        *ret_exit = name.n > 0 ? fail(EXIT_NOT_FOUND, "drover ls lists them",
                                      "there is no campaign '" STR_FMT "'", STR_ARG(name))
                               : fail(EXIT_NOT_FOUND, "drover submit FILE starts one",
                                      "there is no campaign yet");
    }
    return ret[0] != '\0';
}

static bool tail_read(struct str rest, struct ref *ret, struct err *err)
{
    struct str part = str_split(&rest, '/');
    if (part.n > 0 && !is_number(part)) {
        if (part.n >= sizeof ret->stage) {
            return err_set(err, ERR_INVALID, "the stage's name is too long");
        }
        memcpy(ret->stage, part.p, part.n);
        part = str_split(&rest, '/');
    }
    if (part.n > 0 && !parse_i64(part, 0, INT32_MAX, &ret->part, err)) {
        return false;
    }
    return rest.n == 0 || parse_i64(rest, 1, INT32_MAX, &ret->attempt, err);
}

/* A slash without a word behind it, as of a variable of a script that is not set. */
static bool has_empty_word(struct str text)
{
    bool found = text.n > 0 && text.p[text.n - 1] == '/';
    for (size_t i = 0; i + 1 < text.n; i++) {
        found |= text.p[i] == '/' && text.p[i + 1] == '/';
    }
    return found;
}

bool ref_read(struct cli *cli, const char *text, struct ref *ret, int *ret_exit)
{
    struct err err = ERR_INIT;
    struct str rest = str_of(text);
    struct str campaign = str_split(&rest, '/');
    *ret = (struct ref){.part = -1};
    if (text != NULL && campaign.n == 0) { /* a variable of a script that is not set */
        *ret_exit = fail(EXIT_USAGE, "name it, or leave the argument out",
                         "the campaign is empty, which never means the newest");
        return false;
    }
    if (has_empty_word(str_of(text))) {
        *ret_exit = fail(EXIT_USAGE, "name it, or leave the slash out",
                         "'%.80s': a stage or a part is empty, which never means all", text);
        return false;
    }
    if (!tail_read(rest, ret, &err)) {
        *ret_exit = fail(EXIT_USAGE, "write CAMPAIGN[/STAGE[/PART[/ATTEMPT]]], like c-7/17/2",
                         "'%.80s': %s", text, err.message);
        return false;
    }
    if (is_number(campaign)) {
        (void)snprintf(ret->campaign, sizeof ret->campaign, "c-%.*s", (int)MIN(campaign.n, 20),
                       campaign.p);
        return true;
    }
    struct str digits = {campaign.p + 2, campaign.n - 2};
    if (str_starts(campaign, "c-") && is_number(digits)) {
        (void)snprintf(ret->campaign, sizeof ret->campaign, "%.*s", (int)MIN(campaign.n, 30),
                       campaign.p);
        return true;
    }
    return campaign_search(cli, campaign, ret->campaign, ret_exit);
}

bool ref_read_whole(struct cli *cli, const char *verb, struct ref *ret, int *ret_exit)
{
    if (!ref_read(cli, cli->args[0], ret, ret_exit)) {
        return false;
    }
    bool whole = ret->stage[0] == '\0' && ret->part < 0;
    if (!whole) {
        AUTO_FREE char *hint =
            xasprintf("drover %s %s is for all of it; nothing was changed", verb, ret->campaign);
        *ret_exit = fail(EXIT_USAGE, hint, "'%.80s': %s takes a campaign, not a stage or a part",
                         cli->args[0], verb);
    }
    return whole;
}

bool ref_stage_find(struct cli *cli, struct ref *ref, int *ret_exit)
{
    CLEANUP(reply_done)
    struct client_reply r = {0};
    AUTO_BUF struct buf all = BUF_INIT(4096);
    size_t i, n = 0;
    json_t *s;
    if (!client_get(cli, &r, ret_exit, "/v1/campaigns/%s", ref->campaign)) {
        return false;
    }
    json_array_foreach(json_object_get(r.json, "stages"), i, s)
    {
        if (json_integer_value(jget(s, "parts", "total")) > ref->part) {
            (void)snprintf(ref->stage, sizeof ref->stage, "%s", jstr(s, "name"));
            if (n++ < STAGES_SHOWN) {
                buf_addf(&all, "%s%s/%s/%lld", n > 1 ? " or " : "", ref->campaign, ref->stage,
                         (long long)ref->part);
            }
        }
    }
    AUTO_FREE char *list = xasprintf("drover parts %s", ref->campaign);
    if (n == 0) {
        *ret_exit = fail(EXIT_NOT_FOUND, list, "no stage of %s has a part %lld", ref->campaign,
                         (long long)ref->part);
    } else if (n > 1) {
        AUTO_FREE char *next =
            xasprintf("%s%s", buf_cstr(&all), n > STAGES_SHOWN ? " or another stage's" : "");
        *ret_exit = fail(EXIT_USAGE, next, "which stage? %zu stages of %s have a part %lld", n,
                         ref->campaign, (long long)ref->part);
    }
    return n == 1;
}

bool ref_read_part(struct cli *cli, const char *verb, struct ref *ret, int *ret_exit)
{
    if (!ref_read(cli, cli->args[0], ret, ret_exit)) {
        return false;
    }
    if (ret->part < 0) {
        *ret_exit =
            fail(EXIT_USAGE, "drover parts shows the numbers", "name a part: drover %s %s%s%s/0",
                 verb, ret->campaign, ret->stage[0] != '\0' ? "/" : "", ret->stage);
        return false;
    }
    bool named = ret->stage[0] != '\0' || cli->opt.stage != NULL;
    return named || ref_stage_find(cli, ret, ret_exit);
}

const char *ref_stage(const struct cli *cli, const struct ref *ref)
{
    return cli->opt.stage != NULL ? cli->opt.stage : ref->stage;
}
