/* Prints a forecast; see forecast_print.h. */
#include "forecast_print.h"
#include "cli.h"
#include "common/clock.h"
#include "common/time_text.h"
#include "print.h"
#include "table.h"
#include <stdio.h>

/* "HEAD ends in 1 h 22 m (1 h 13 m to 1 h 36 m)" and the cost on the next line. */
static void band_print(const char *head, const json_t *f)
{
    char mid[TEXT_N], low[TEXT_N], high[TEXT_N];
    const json_t *end = json_object_get(f, "end");
    const json_t *cost = json_object_get(f, "cost");
    if (jnull(end, "p50_seconds")) {
        (void)printf("%s does not end under the current limits: a cap, quota or price blocks it\n",
                     head);
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

static void fits_print(const char *indent, const json_t *f)
{
    double fits = json_number_value(json_object_get(f, "fits_budget"));
    if (fits < 0.995) {
        (void)printf("%s! the budget suffices in %.0f of 100 cases\n", indent, fits * 100);
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
    fits_print("  ", forecast);
    advice_print(forecast);
    if (json_is_object(what_if)) {
        AUTO_FREE char *head = xasprintf("if %s:", jstr(what_if, "text"));
        band_print(head, what_if);
    }
}

static void deadline_print(const struct cli *cli, const char *deadline, const json_t *forecast)
{
    usec_t at;
    struct err err = ERR_INIT;
    char day[TEXT_N], left[TEXT_N], by[TEXT_N];
    const json_t *end = json_object_get(forecast, "end");
    AUTO_FREE char *what = NULL;
    if (!clock_parse_rfc3339(deadline, &at, &err)) {
        return;
    }
    int64_t left_s = (at - clock_wall_us()) / USEC_PER_SEC;
    int64_t late_s = jint(end, "p50_seconds") - left_s;
    if (!json_is_true(json_object_get(forecast, "known"))) {
        what = xstrdup("when it ends is not known yet");
    } else if (jnull(end, "p50_seconds")) {
        what = xstrdup("it is not met: nothing ends under the current limits");
    } else if (late_s > 0) {
        what = xasprintf("late by %s", span(late_s, by));
    } else {
        bool sure = !jnull(end, "p90_seconds") && jint(end, "p90_seconds") <= left_s;
        what = xasprintf("%s, %s to spare", sure ? "met" : "at risk", span(-late_s, by));
    }
    AUTO_FREE char *line =
        xasprintf("%s UTC, %s%s%s: %s", when(deadline, day), left_s < 0 ? "" : "in ",
                  span(left_s < 0 ? -left_s : left_s, left), left_s < 0 ? " ago" : "", what);
    text_print(cli, "Deadline ", line);
}

static void binds_print(const char *indent, const json_t *f)
{
    const char *binding = jstr(f, "binding");
    AUTO_FREE char *type = text_clean(jstr(f, "binding_instance_type"));
    if (binding[0] != '\0' && strcmp(binding, "none") != 0) {
        (void)printf("%sbinds: %s%s%s\n", indent, binding, type[0] != '\0' ? " of " : "", type);
    }
}

static void side_print(const char *head, const json_t *f)
{
    band_print(head, f);
    binds_print("     ", f);
    fits_print("     ", f);
}

void forecast_preview_print(const struct cli *cli, const json_t *answer, const char *deadline)
{
    const json_t *now = json_object_get(answer, "campaign");
    const json_t *then = json_object_get(answer, "what_if");
    bool both =
        json_is_true(json_object_get(now, "known")) && json_is_true(json_object_get(then, "known"));
    if (both) {
        side_print("Now ", now);
        side_print("Then", then);
    } else if (json_is_true(json_object_get(now, "known"))) {
        forecast_print(cli, now, NULL);
    } else {
        AUTO_FREE char *why = text_clean(jstr(answer, "reason"));
        text_print(cli, "Forecast ", why);
    }
    if (jint(now, "campaigns_left_out") > 0) {
        (void)printf("  without %lld other campaigns, of lower priority or unreadable\n",
                     (long long)jint(now, "campaigns_left_out"));
    }
    deadline_print(cli, deadline, both ? then : now);
    if (!both) {
        binds_print("  ", now);
    }
}
