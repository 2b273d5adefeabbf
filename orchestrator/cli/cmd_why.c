/* drover why: why a part is not running. */
#include "cli.h"
#include "client.h"
#include "cmd_part.h"
#include "print.h"
#include "ref.h"
#include "table.h"
#include <stdio.h>

static void why_print(const struct cli *cli, const json_t *v)
{
    char low[TEXT_N], mid[TEXT_N], high[TEXT_N];
    AUTO_FREE char *text = text_clean(jstr(v, "text"));
    AUTO_FREE char *name = part_name(v);
    const char *state = jstr(v, "state");
    bool told = str_starts(str_of(text), state); /* "failed after 2 attempts" */
    AUTO_FREE char *head =
        xasprintf("%s %s %s%s", glyph(cli, state), name, told ? "" : state, told ? "" : ": ");
    text_print(cli, head, text);
    if (!jnull(v, "place")) {
        (void)printf("  place %lld of %lld", (long long)jint(v, "place"),
                     (long long)jint(v, "place_of"));
        const json_t *s = json_object_get(v, "starts");
        if (json_is_object(s) && jnull(s, "p50_seconds")) {
            (void)printf("   does not start under the current limits");
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
    struct client_reply r = {0};
    if (!ref_read_part(cli, "why", &ref, &status)) {
        return status;
    }
    AUTO_BUF struct buf query = BUF_INIT(8192);
    query_add(&query, "stage", ref_stage(cli, &ref));
    if (!client_get(cli, &r, &status, "/v1/campaigns/%s/parts/%lld/why%s", ref.campaign,
                    (long long)ref.part, buf_cstr(&query))) {
        return status;
    }
    if (!print_machine(cli, r.json, NULL)) {
        why_print(cli, r.json);
    }
    return EXIT_OK;
}
