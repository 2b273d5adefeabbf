/* See guidance.h. */
#include "guidance.h"
#include "cli.h"
#include "print.h"
#include "table.h"
#include <stdio.h>

const json_t *guidance_first(const json_t *campaign)
{
    return json_array_get(json_object_get(campaign, "guidance"), 0);
}

bool guidance_blocked(const json_t *campaign)
{
    const json_t *g = guidance_first(campaign);
    return g != NULL && strcmp(jstr(campaign, "state"), "running") == 0 &&
           json_is_false(json_object_get(g, "runs"));
}

const char *state_shown(const json_t *campaign)
{
    bool waits = !jnull(campaign, "waits_for") || guidance_blocked(campaign);
    return waits ? "waiting" : jstr(campaign, "state");
}

const char *archive_shown(const json_t *campaign)
{
    const json_t *archive = json_object_get(campaign, "archive");
    return archive == NULL || json_is_null(archive) ? ""
           : jnull(archive, "archived_at")          ? ", archiving"
                                                    : ", archived";
}

char *listing_text(const json_t *listing)
{
    char took[TEXT_N];
    AUTO_FREE char *problem = text_clean(jstr(listing, "problem"));
    int64_t again = jint(listing, "refused");
    AUTO_FREE char *asked =
        again > 0 ? xasprintf(", %lld asked for again", (long long)again) : xstrdup("");
    return xasprintf("%s: %lld objects in %lld pages%s, %s%s%s", jstr(listing, "state"),
                     (long long)jint(listing, "objects"), (long long)jint(listing, "pages"), asked,
                     span(jint(listing, "elapsed_seconds"), took), problem[0] != '\0' ? "; " : "",
                     problem);
}

char *guidance_line(const json_t *campaign)
{
    const json_t *g = guidance_first(campaign);
    if (g == NULL) {
        return NULL;
    }
    const json_t *step = json_array_get(json_object_get(g, "steps"), 0);
    AUTO_FREE char *title = text_clean(jstr(g, "title"));
    const char *command = jstr(step, "command");
    return xasprintf("%s%s%s", title, command[0] != '\0' ? "; next: " : "", command);
}

void guidance_print(const struct cli *cli, const json_t *campaign)
{
    size_t i, k;
    json_t *g, *step;
    json_array_foreach(json_object_get(campaign, "guidance"), i, g)
    {
        char at[TEXT_N];
        AUTO_FREE char *title = jnull(g, "since") ? xstrdup(jstr(g, "title"))
                                                  : xasprintf("%s (since %s UTC)", jstr(g, "title"),
                                                              when(jstr(g, "since"), at));
        text_print(cli, "! ", title);
        if (!jnull(g, "evidence")) {
            text_print(cli, "  ", jstr(g, "evidence"));
        }
        json_array_foreach(json_object_get(g, "steps"), k, step)
        {
            AUTO_FREE char *text = xasprintf("%s: %s", jstr(step, "label"), jstr(step, "command"));
            text_print(cli, "  ", text);
        }
    }
}
