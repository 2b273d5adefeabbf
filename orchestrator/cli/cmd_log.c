/* drover logs: the log of a part's job. */
#include "cli.h"
#include "client.h"
#include "interrupt.h"
#include "list.h"
#include "print.h"
#include "ref.h"
#include "table.h"
#include <stdio.h>

#define LOG_POLL_MS   1000
#define LOG_LINES     200
#define LOG_LINES_MAX 10000

/* Whether a line is asked for; *first: none was printed yet. */
static bool wanted(const struct cli *cli, const json_t *v, bool *first)
{
    const char *shown = jnull(v, "shown") ? jstr(v, "text") : jstr(v, "shown");
    if (cli->opt.find != NULL && strcasestr(shown, cli->opt.find) == NULL) {
        return false;
    }
    if (cli->opt.from_error && *first && strcmp(jstr(v, "level"), "error") != 0) {
        return false;
    }
    *first = false;
    return true;
}

/* *first: see wanted(). */
static void log_lines(const struct cli *cli, const json_t *lines, bool *first)
{
    size_t i;
    json_t *v;
    json_array_foreach(lines, i, v)
    {
        if (!wanted(cli, v, first)) {
            continue;
        }
        if (cli->out == OUT_JSONL) {
            AUTO_FREE char *text = json_text(v);
            (void)puts(text);
            continue;
        }
        char at[TEXT_N];
        bool raw = cli->opt.raw || jnull(v, "shown");
        AUTO_FREE char *text = text_clean(jstr(v, raw ? "text" : "shown"));
        const char *host = jstr(v, "host");
        (void)printf("%s %s%s%s\n", when(jstr(v, "time"), at), host, host[0] != '\0' ? " " : "",
                     text);
    }
    (void)fflush(stdout);
}

static bool log_page(struct cli *cli, const struct ref *ref, const char *token,
                     struct client_reply *ret, int *ret_exit)
{
    int64_t attempt = cli->opt.attempt > 0 ? cli->opt.attempt : ref->attempt;
    AUTO_BUF struct buf q = BUF_INIT(8192);
    buf_addf(&q, "?limit=%lld", (long long)(cli->opt.limit > 0 ? cli->opt.limit : LOG_LINES));
    query_add(&q, "stage", ref_stage(cli, ref));
    if (attempt > 0) {
        buf_addf(&q, "&attempt=%lld", (long long)attempt);
    }
    query_add(&q, "token", token);
    return client_get(cli, ret, ret_exit, "/v1/campaigns/%s/parts/%lld/logs%s", ref->campaign,
                      (long long)ref->part, buf_cstr(&q));
}

int cmd_logs(struct cli *cli)
{
    int status = EXIT_OK;
    struct ref ref;
    if (!ref_read_part(cli, "logs", &ref, &status) ||
        !list_limit_check(cli, LOG_LINES_MAX, &status)) {
        return status;
    }
    interrupt_catch();
    bool first = true;
    AUTO_FREE char *token = xstrdup("");
    for (;;) {
        CLEANUP(reply_done)
        struct client_reply r = {0};
        if (!log_page(cli, &ref, token, &r, &status)) {
            return interrupted() ? EXIT_INTERRUPTED : status;
        }
        const json_t *lines = json_object_get(r.json, "lines");
        if (cli->out == OUT_JSON && !cli->opt.follow) {
            print_json(cli, r.json);
        } else {
            log_lines(cli, lines, &first);
        }
        if (!cli->opt.follow) {
            if (json_array_size(lines) == 0 && cli->out == OUT_TABLE) {
                say("the log of %s is empty so far", jstr(r.json, "job_name"));
            } else if (first && cli->out == OUT_TABLE) {
                say("none of its newest %zu lines matches; next: more lines with -n 10000",
                    json_array_size(lines));
            }
            return EXIT_OK;
        }
        if (interrupted()) {
            return EXIT_INTERRUPTED;
        }
        if (stdout_gone()) {
            return EXIT_OK;
        }
        free(token);
        token = xstrdup(jstr(r.json, "next"));
        pause_ms(LOG_POLL_MS);
    }
}
