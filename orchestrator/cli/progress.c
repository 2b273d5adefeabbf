/* Follows a campaign to its end: redraws a few lines on a terminal, prints one line per change
 * elsewhere. */
#include "progress.h"
#include "cli.h"
#include "client.h"
#include "common/clock.h"
#include "guidance.h"
#include "interrupt.h"
#include "print.h"
#include "table.h"
#include "wait.h"
#include <stdio.h>

#define PROGRESS_POLL_MS 500
#define LINES_DRAWN_MAX  8

char *progress_bar(const struct cli *cli, int64_t done, int64_t total, int width)
{
    AUTO_BUF struct buf b = BUF_INIT(4096);
    int64_t full = total > 0 ? done * width / total : 0;
    for (int i = 0; i < width; i++) {
        bool on = i < full;
        buf_add_cstr(&b, cli->utf8 ? (on ? "█" : "░") : (on ? "#" : "-"));
    }
    return buf_take(&b);
}

static void count_add(const struct cli *cli, struct buf *b, const json_t *parts, const char *state)
{
    int64_t n = jint(parts, state);
    if (n > 0) {
        buf_addf(b, " %s%lld%s%s", glyph(cli, state), (long long)n, cli->utf8 ? "" : " ",
                 cli->utf8 ? "" : state);
    }
}

/* What the dashboard's progress counts, too: a part that failed may still be retried. */
static int64_t parts_through(const json_t *parts)
{
    return jint(parts, "done") + jint(parts, "skipped");
}

/* Name, state, share and counts. The caller frees it. */
static char *counts_line(const struct cli *cli, const json_t *c)
{
    const json_t *parts = json_object_get(c, "parts");
    int64_t total = jint(parts, "total"), through = parts_through(parts);
    AUTO_BUF struct buf b = BUF_INIT(4096);
    AUTO_FREE char *name = text_clean(jstr(c, "name"));
    buf_addf(&b, "%.24s %s %s %3lld %%", name, jstr(c, "id"), state_shown(c),
             (long long)(total > 0 ? through * 100 / total : 0));
    static const char *const states[] = {"done", "skipped", "active",   "failed",
                                         "held", "waiting", "cancelled"};
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        count_add(cli, &b, parts, states[i]);
    }
    return buf_take(&b);
}

char *progress_line(const struct cli *cli, const json_t *c)
{
    AUTO_FREE char *counts = counts_line(cli, c);
    AUTO_FREE char *told = guidance_line(c);
    if (told != NULL) {
        return xasprintf("%s  ! %s", counts, told);
    }
    return jnull(c, "waits_for") ? TAKE(counts)
                                 : xasprintf("%s  waits: %s", counts, jstr(c, "waits_for"));
}

struct follow {
    struct cli *cli;
    const char *campaign;
    char *shown;                    /* the last line printed when not on a terminal */
    size_t widths[LINES_DRAWN_MAX]; /* of the lines drawn on the terminal */
    int drawn;
    json_t *last; /* the campaign as it was seen last; NULL: not yet */
    bool told;    /* last is printed */
    int64_t began_us, forecast_us, blocked_since_us;
    json_t *forecast;
};

static void draw_line(struct follow *f, const char *text)
{
    char cut[1024];
    size_t width = (size_t)f->cli->width - 1, at = 0;
    (void)snprintf(cut, sizeof cut, "%s", text);
    while (text_width(cut) > width && (at = strlen(cut)) > 0) {
        do { /* do not cut a UTF-8 character */
            cut[--at] = '\0';
        } while (at > 0 && ((uint8_t)text[at] & 0xc0) == 0x80);
    }
    (void)printf("\r\033[K%s\n", cut);
    ASSERT(f->drawn < LINES_DRAWN_MAX);
    f->widths[f->drawn++] = text_width(cut);
}

/* Back to the first line drawn. A terminal that has become narrower has wrapped the lines. */
static void erase(struct follow *f)
{
    f->cli->width = terminal_width();
    size_t width = (size_t)f->cli->width, rows = 0;
    for (int i = 0; i < f->drawn; i++) {
        rows += MAX((f->widths[i] + width - 1) / width, 1);
    }
    if (rows > 0) {
        (void)printf("\033[%zuA\033[J", rows);
    }
    f->drawn = 0;
}

static void draw_cost(struct follow *f, const json_t *c)
{
    char spent[TEXT_N], reserved[TEXT_N], limit[TEXT_N];
    const json_t *b = json_object_get(c, "budget");
    AUTO_FREE char *of = jnull(b, "limit_micro_usd")
                             ? xstrdup("no budget set")
                             : xasprintf("of %s USD", money(jint(b, "limit_micro_usd"), limit));
    AUTO_FREE char *text =
        xasprintf("cost %s USD, %s more reserved, %s", money(jint(b, "spent_micro_usd"), spent),
                  money(jint(b, "reserved_micro_usd"), reserved), of);
    draw_line(f, text);
}

/* Of the whole campaign: its first stage may have ended long ago. */
static void draw_forecast(struct follow *f, const json_t *c)
{
    char mid[TEXT_N], low[TEXT_N], high[TEXT_N];
    const json_t *v = json_object_get(f->forecast, "campaign");
    const json_t *end = json_object_get(v, "end");
    bool stands = strcmp(jstr(c, "state"), "running") != 0 || guidance_blocked(c);
    if (!json_is_object(v) || !jnull(c, "ended_at") || !jnull(c, "waits_for") || stands) {
        return;
    }
    /* The reason in the answer is of one stage: when it has ended, none of the others. */
    bool told = jint(f->forecast, "remaining") > 0 && !jnull(f->forecast, "reason");
    bool known = json_is_true(json_object_get(v, "known"));
    AUTO_FREE char *why = text_clean(told    ? jstr(f->forecast, "reason")
                                     : known ? "not under the current limits"
                                             : "not known yet");
    AUTO_FREE char *text =
        jnull(end, "p50_seconds")
            ? xasprintf("end: %s", why)
            : xasprintf("ends in %s (%s to %s)", span(jint(end, "p50_seconds"), mid),
                        span(jint(end, "p10_seconds"), low),
                        span_or_never(end, "p90_seconds", high));
    draw_line(f, text);
}

static void draw(struct follow *f, const json_t *c)
{
    char took[TEXT_N];
    const json_t *parts = json_object_get(c, "parts");
    erase(f);
    const json_t *told = guidance_first(c);
    AUTO_FREE char *told_line = guidance_line(c);
    if (told != NULL) {
        AUTO_FREE char *text = xasprintf("! %s", told_line);
        draw_line(f, text);
    }
    AUTO_FREE char *line = counts_line(f->cli, c);
    draw_line(f, line);
    AUTO_FREE char *bar = progress_bar(f->cli, parts_through(parts), jint(parts, "total"),
                                       MIN(f->cli->width - 16, 60));
    AUTO_FREE char *second =
        xasprintf("%s %s", bar, span((clock_mono_us() - f->began_us) / USEC_PER_SEC, took));
    draw_line(f, second);
    draw_cost(f, c);
    draw_forecast(f, c);
    bool why = told == NULL && !jnull(c, "waits_for");
    AUTO_FREE char *waits = text_clean(jstr(c, "waits_for"));
    AUTO_FREE char *last = jint(parts, "failed") > 0
                               ? xasprintf("! %lld failed: drover failures %s",
                                           (long long)jint(parts, "failed"), jstr(c, "id"))
                           : why ? xasprintf("waits: %s", waits)
                                 : xstrdup("");
    draw_line(f, last);
    (void)fflush(stdout);
}

static void show(struct follow *f, const json_t *c)
{
    const struct cli *cli = f->cli;
    if (cli->out == OUT_JSON || cli->out == OUT_NAME || cli->opt.quiet) {
        return; /* printed once at the end */
    }
    if (cli->out == OUT_TABLE && cli->draws) {
        draw(f, c);
        return;
    }
    char *line = cli->out == OUT_JSONL ? json_text(c) : progress_line(cli, c);
    if (f->shown == NULL || strcmp(f->shown, line) != 0) {
        (void)puts(line);
        (void)fflush(stdout);
    }
    free(f->shown);
    f->shown = line;
}

/* Without it there is no line of it: that it cannot be had (archived, or busy) is no news. */
static void forecast_refresh(struct follow *f)
{
    struct err ignored = ERR_INIT;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (f->cli->out != OUT_TABLE || !f->cli->draws ||
        clock_mono_us() - f->forecast_us < 2 * USEC_PER_SEC) {
        return;
    }
    f->forecast_us = clock_mono_us();
    AUTO_FREE char *path = xasprintf("/v1/campaigns/%s/forecast", f->campaign);
    const struct client_call call = {.method = "GET", .path = path};
    if (client_try(f->cli, &call, &r, &ignored) && r.status == 200) {
        json_decref(f->forecast);
        f->forecast = json_incref(r.json);
    }
}

/* What has succeeded was planned and running on the way, seen or not. */
static bool until_reached(const char *until, const char *state)
{
    bool passed = strcmp(until, "planned") == 0 || strcmp(until, "running") == 0;
    return strcmp(state, until) == 0 || (passed && strcmp(state, "succeeded") == 0);
}

/* The exit status of an ended campaign, or of one in the state of --until; -1 while it runs. */
static int end_status(const struct cli *cli, const json_t *c)
{
    const char *state = jstr(c, "state"), *until = cli->opt.until;
    int64_t failed = json_integer_value(jget(c, "parts", "failed"));
    bool cancelled = strcmp(state, "cancelled") == 0, good = strcmp(state, "succeeded") == 0;
    bool bad = strcmp(state, "failed") == 0;
    if (until != NULL && until_reached(until, state)) {
        return EXIT_OK;
    }
    if (until != NULL && strcmp(until, "succeeded") != 0 && (cancelled || good || bad)) {
        return EXIT_CONFLICT; /* the end without it */
    }
    if (cancelled) {
        return EXIT_CANCELLED;
    }
    if (good) {
        return EXIT_OK;
    }
    return bad || (cli->opt.fail_fast && failed > 0) ? EXIT_PARTS_FAILED : -1;
}

void progress_begin(struct cli *cli, const json_t *c)
{
    const char *id = jstr(c, "id");
    cli->begun = true;
    if (cli->out == OUT_NAME) {
        (void)puts(id);
    } else if (cli->yaml) {
        (void)printf("id: %s\n", id);
    } else if (cli->out == OUT_JSON) {
        (void)printf("{\n  \"id\": \"%s\",\n", id);
    } else if (cli->out == OUT_JSONL) {
        AUTO_FREE char *text = json_text(c);
        (void)puts(text);
    }
    (void)fflush(stdout);
}

/* The campaign at the end, or behind progress_begin what follows its id. */
static void last_print(const struct cli *cli, const json_t *c)
{
    AUTO_JSON json_t *rest = cli->begun ? json_copy((json_t *)(uintptr_t)c) : NULL;
    if (cli->out == OUT_NAME && !cli->begun) {
        (void)puts(jstr(c, "id"));
    } else if (cli->out == OUT_JSON && !cli->begun) {
        print_json(cli, c);
    } else if (cli->out == OUT_JSON) {
        (void)json_object_del(rest, "id");
        AUTO_FREE char *text = json_dumps(rest, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        if (cli->yaml) {
            print_json(cli, rest);
        } else {
            (void)puts(text + strlen("{\n"));
        }
    }
}

static int follow_end(struct follow *f, const json_t *c, int status)
{
    last_print(f->cli, c);
    f->told = true;
    if (status == EXIT_CONFLICT) {
        AUTO_FREE char *next = xasprintf("drover get %s", f->campaign);
        return fail(EXIT_CONFLICT, next, "%s is %s, not %s", f->campaign, jstr(c, "state"),
                    f->cli->opt.until);
    }
    if (status == EXIT_PARTS_FAILED && !f->cli->opt.quiet) {
        int64_t n = json_integer_value(jget(c, "parts", "failed"));
        AUTO_FREE char *reason = text_clean(jstr(c, "reason"));
        if (n == 0 && reason[0] != '\0') { /* its input could not be listed */
            say("%s failed: %s", f->campaign, reason);
            return status;
        }
        say("%lld part%s failed; drover failures %s", (long long)n, n == 1 ? "" : "s", f->campaign);
    }
    return status;
}

/* Nothing of it runs or can start, and it was so for as long as is waited. */
static bool is_blocked(struct follow *f, const json_t *c)
{
    bool blocked = guidance_blocked(c) || strcmp(jstr(c, "state"), "held") == 0;
    f->blocked_since_us = !blocked                   ? 0
                          : f->blocked_since_us == 0 ? clock_mono_us()
                                                     : f->blocked_since_us;
    return blocked && f->cli->blocked_us > 0 &&
           clock_mono_us() - f->blocked_since_us > f->cli->blocked_us;
}

static int follow(struct follow *f)
{
    int64_t timeout_us;
    int status = EXIT_OK;
    if (!timeout_read(f->cli, &timeout_us)) {
        return EXIT_USAGE;
    }
    for (;;) {
        CLEANUP(reply_done)
        struct client_reply r = {0};
        if (interrupted()) {
            AUTO_FREE char *next = xasprintf("drover watch %s", f->campaign);
            return fail(EXIT_INTERRUPTED, next, "interrupted; the campaign continues");
        }
        if (!client_get(f->cli, &r, &status, "/v1/campaigns/%s", f->campaign)) {
            return interrupted() ? EXIT_INTERRUPTED : status;
        }
        json_decref(f->last);
        f->last = json_incref(r.json);
        forecast_refresh(f);
        show(f, r.json);
        status = end_status(f->cli, r.json);
        if (status >= 0) {
            return follow_end(f, r.json, status);
        }
        if (f->cli->for_readers && stdout_gone()) {
            return EXIT_OK;
        }
        if (is_blocked(f, r.json)) {
            return EXIT_REFUSED;
        }
        if (timeout_us >= 0 && clock_mono_us() - f->began_us > timeout_us) {
            AUTO_FREE char *next = xasprintf("drover watch %s continues waiting", f->campaign);
            return fail(EXIT_WAIT_TIMEOUT, next, "%s is still %s after %s", f->campaign,
                        state_shown(r.json), f->cli->opt.timeout);
        }
        pause_ms(PROGRESS_POLL_MS);
    }
}

int progress_follow(struct cli *cli, const char *campaign)
{
    struct follow f = {.cli = cli, .campaign = campaign, .began_us = clock_mono_us()};
    interrupt_catch();
    cli->patient = true;
    int status = follow(&f);
    if (cli->begun && !f.told) { /* what was begun becomes a whole document */
        AUTO_JSON json_t *unknown = json_pack("{s:n}", "state");
        last_print(cli, f.last != NULL ? f.last : unknown);
    }
    json_decref(f.last);
    free(f.shown);
    json_decref(f.forecast);
    return status;
}
