/* drover events: prints the event stream. */
#include "cli.h"
#include "client.h"
#include "common/clock.h"
#include "interrupt.h"
#include "print.h"
#include "ref.h"
#include "table.h"
#include "wait.h"
#include <stdio.h>

#define LINE_MAX_BYTES (1024 * 1024)

/* Parser state of a stream of server-sent events. */
struct events {
    struct cli *cli;
    struct buf line;
    int64_t until_us; /* 0: no limit */
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
    struct client_call call = {.method = "GET",
                               .path = path,
                               .on_data = on_events,
                               .ctx = &e,
                               .timeout_us =
                                   timeout_us > 0 ? timeout_us : 366 * 86400 * USEC_PER_SEC};
    CLEANUP(reply_done)
    struct client_reply r = {0};
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
