/* drover watch, logs, events: what happens. */
#include "cli.h"
#include "common/clock.h"
#include <stdio.h>

#define LOG_POLL_MS    1000
#define LINE_MAX_BYTES (1024 * 1024)

int cmd_watch(struct cli *cli)
{
    int status;
    struct ref ref;
    interrupt_catch();
    if (!ref_read(cli, cli->args[0], &ref, &status)) {
        return status;
    }
    return progress_follow(cli, ref.campaign);
}

static void log_lines(const struct cli *cli, const json_t *lines)
{
    size_t i;
    json_t *v;
    json_array_foreach(lines, i, v)
    {
        if (cli->out == OUT_JSONL) {
            AUTO_FREE char *text = json_text(v);
            (void)puts(text);
            continue;
        }
        char at[TEXT_N];
        AUTO_FREE char *text = text_clean(jstr(v, "text"));
        const char *host = jstr(v, "host");
        (void)printf("%s %s%s%s\n", when(jstr(v, "time"), at), host, host[0] != '\0' ? " " : "",
                     text);
    }
    (void)fflush(stdout);
}

static bool log_page(struct cli *cli, const struct ref *ref, const char *token, struct reply *ret,
                     int *ret_exit)
{
    const char *stage = cli->opt.stage != NULL ? cli->opt.stage : ref->stage;
    int64_t attempt = cli->opt.attempt > 0 ? cli->opt.attempt : ref->attempt;
    AUTO_BUF struct buf q = BUF_INIT(8192);
    buf_addf(&q, "?limit=%lld", (long long)(cli->opt.limit > 0 ? MIN(cli->opt.limit, 10000) : 200));
    if (stage[0] != '\0') {
        buf_add_cstr(&q, "&stage=");
        str_url_encode(&q, str_of(stage), false);
    }
    if (attempt > 0) {
        buf_addf(&q, "&attempt=%lld", (long long)attempt);
    }
    if (token[0] != '\0') {
        buf_add_cstr(&q, "&token=");
        str_url_encode(&q, str_of(token), false);
    }
    return client_get(cli, ret, ret_exit, "/v1/campaigns/%s/parts/%lld/logs%s", ref->campaign,
                      (long long)ref->part, buf_cstr(&q));
}

int cmd_logs(struct cli *cli)
{
    int status = EXIT_OK;
    struct ref ref;
    if (!ref_read(cli, cli->args[0], &ref, &status)) {
        return status;
    }
    if (ref.part < 0) {
        return fail(EXIT_USAGE, "drover parts shows them; write drover logs c-7/17",
                    "logs are of a part: %s is a campaign", ref.campaign);
    }
    interrupt_catch();
    AUTO_FREE char *token = xstrdup("");
    for (;;) {
        CLEANUP(reply_done)
        struct reply r = {0};
        if (!log_page(cli, &ref, token, &r, &status)) {
            return interrupted() ? EXIT_INTERRUPTED : status;
        }
        const json_t *lines = json_object_get(r.json, "lines");
        if (cli->out == OUT_JSON && !cli->opt.follow) {
            print_json(r.json);
        } else {
            log_lines(cli, lines);
        }
        if (!cli->opt.follow) {
            if (json_array_size(lines) == 0 && cli->out == OUT_TABLE) {
                say("the log of %s is empty so far", jstr(r.json, "job_name"));
            }
            return EXIT_OK;
        }
        if (interrupted()) {
            return EXIT_INTERRUPTED;
        }
        free(token);
        token = xstrdup(jstr(r.json, "next"));
        pause_ms(LOG_POLL_MS);
    }
}

/* A stream of server-sent events, line by line. */
struct events {
    struct cli *cli;
    struct buf line;
    int64_t until_us; /* 0: none */
};

static void event_print(const struct cli *cli, struct str data)
{
    struct err err = ERR_INIT;
    AUTO_JSON json_t *v = NULL;
    if (cli->out == OUT_JSON || cli->out == OUT_JSONL) {
        (void)printf(STR_FMT "\n", STR_ARG(data));
    } else if (json_parse(data, LINE_MAX_BYTES, &v, &err) && json_is_object(v)) {
        char at[TEXT_N];
        AUTO_FREE char *detail = json_text(json_object_get(v, "detail"));
        AUTO_FREE char *clean = text_clean(detail != NULL ? detail : "");
        (void)printf("%s  %-8s %-16s %s\n", when(jstr(v, "at"), at), jstr(v, "campaign"),
                     jstr(v, "kind"), clean);
    }
    (void)fflush(stdout);
}

static bool on_events(void *ctx, struct str data)
{
    struct events *e = ctx;
    for (size_t i = 0; i < data.n; i++) {
        if (data.p[i] != '\n') {
            buf_add_char(&e->line, data.p[i]);
            continue;
        }
        struct str line = buf_str(&e->line);
        if (str_starts(line, "data: ")) {
            event_print(e->cli, (struct str){line.p + 6, line.n - 6});
        }
        buf_reset(&e->line);
    }
    return !interrupted() && (e->until_us == 0 || clock_mono_us() < e->until_us);
}

int cmd_events(struct cli *cli)
{
    int status = EXIT_OK;
    struct ref ref = {.part = -1};
    int64_t timeout_us;
    if ((cli->args_n > 0 && !ref_read(cli, cli->args[0], &ref, &status)) ||
        !timeout_read(cli, &timeout_us)) {
        return status != EXIT_OK ? status : EXIT_USAGE;
    }
    AUTO_FREE char *path = ref.campaign[0] != '\0'
                               ? xasprintf("/v1/campaigns/%s/events", ref.campaign)
                               : xstrdup("/v1/events");
    struct events e = {.cli = cli, .line = BUF_INIT(LINE_MAX_BYTES)};
    interrupt_catch();
    struct call call = {.method = "GET",
                        .path = path,
                        .on_data = on_events,
                        .ctx = &e,
                        .timeout_us = timeout_us > 0 ? timeout_us : 366 * 86400 * USEC_PER_SEC};
    CLEANUP(reply_done)
    struct reply r = {0};
    struct err err = ERR_INIT;
    bool came = client_try(cli, &call, &r, &err);
    buf_done(&e.line);
    if (came && r.status >= 300) {
        return client_explain(cli, &r);
    }
    if (interrupted()) {
        return EXIT_INTERRUPTED;
    }
    if (!came && err.code == ERR_TIMEOUT && timeout_us > 0) {
        return EXIT_OK;
    }
    return came ? EXIT_OK
                : fail(EXIT_UNREACHABLE, "drover events again; drover doctor checks the server",
                       "the stream ended: %s", err.message);
}
