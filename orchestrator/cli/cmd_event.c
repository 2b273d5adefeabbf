/* drover events: prints the event stream, and goes on with the next when it ends. */
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
#define AWAY_MAX_US    (60 * USEC_PER_SEC) /* without a stream until it gives up */
#define AGAIN_MS       1000
#define HEARD_US       (2 * USEC_PER_SEC) /* so long after a line --timeout is no failure */

/* Parser state of a stream of server-sent events. */
struct events {
    struct cli *cli;
    struct buf line;
    int64_t until_us; /* of --timeout */
    int64_t heard_us; /* when a line came last; 0: never */
    bool resync;      /* the next data is of no event */
    char id[24];      /* of the last event; "": none came */
};

static void event_print(const struct cli *cli, struct str data)
{
    struct err err = ERR_INIT;
    AUTO_JSON json_t *v = NULL;
    if (cli->out == OUT_JSON || cli->out == OUT_JSONL) {
        (void)printf(STR_FMT "\n", STR_ARG(data));
    } else if (json_parse(data, LINE_MAX_BYTES, &v, &err) && json_is_object(v)) {
        char at[TEXT_N];
        const json_t *more = json_object_get(v, "detail");
        AUTO_FREE char *detail = more != NULL ? json_text(more) : xstrdup("");
        AUTO_FREE char *clean = text_clean(detail);
        (void)printf("%s  %-8s %-16s %s\n", when(jstr(v, "at"), at), jstr(v, "campaign"),
                     jstr(v, "kind"), clean);
    }
    (void)fflush(stdout);
}

static void on_line(struct events *e, struct str line)
{
    e->heard_us = clock_mono_us();
    if (str_starts(line, "id: ")) {
        (void)snprintf(e->id, sizeof e->id, "%.*s", (int)MIN(line.n - 4, sizeof e->id - 1),
                       line.p + 4);
    } else if (str_starts(line, "event: ")) {
        e->resync = str_eq_cstr(line, "event: resync");
    } else if (str_starts(line, "data: ") && e->resync) {
        say("events are missing here: they were deleted before they were read");
    } else if (str_starts(line, "data: ")) {
        event_print(e->cli, (struct str){line.p + 6, line.n - 6});
    }
}

static bool on_events(void *ctx, struct str data)
{
    struct events *e = ctx;
    for (size_t i = 0; i < data.n; i++) {
        if (data.p[i] != '\n') {
            buf_add_char(&e->line, data.p[i]);
            continue;
        }
        on_line(e, buf_str(&e->line));
        buf_reset(&e->line);
    }
    return !interrupted() && !stdout_gone() && clock_mono_us() < e->until_us;
}

/* The server ended the stream, or it cannot be reached: for a while another one is asked for. */
static int follow(struct events *e, const char *path)
{
    for (bool told = false;; told = true) {
        CLEANUP(reply_done)
        struct client_reply r = {0};
        struct err err = ERR_INIT;
        int64_t began = clock_mono_us();
        const struct client_call call = {.method = "GET",
                                         .path = path,
                                         .on_data = on_events,
                                         .ctx = e,
                                         .last_event = e->id[0] != '\0' ? e->id : NULL,
                                         .timeout_us = MAX(e->until_us - began, 1)};
        bool came = client_try(e->cli, &call, &r, &err), refused = came && r.status >= 300;
        int64_t now = clock_mono_us();
        bool busy = refused && (r.status == 503 || r.status == 429);
        buf_reset(&e->line);
        e->resync = false;
        if (refused && (!busy || e->heard_us == 0)) {
            return client_explain(e->cli, &r);
        }
        if (interrupted()) {
            return EXIT_INTERRUPTED;
        }
        if (stdout_gone()) {
            return EXIT_OK;
        }
        if (now >= e->until_us && e->heard_us > 0 &&
            (e->heard_us >= began || now - e->heard_us < HEARD_US)) {
            return EXIT_OK;
        }
        if (e->heard_us == 0 || now >= e->until_us || now - e->heard_us > AWAY_MAX_US) {
            return fail(EXIT_UNREACHABLE, "drover events again; drover doctor checks the server",
                        "the stream ended%s%s", came ? "" : ": ", came ? "" : err.message);
        }
        if (!told) {
            say("the stream ended; going on after the last event when the server answers");
        }
        pause_ms(AGAIN_MS);
    }
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
    e.until_us = clock_mono_us() + (timeout_us > 0 ? timeout_us : 366 * 86400 * USEC_PER_SEC);
    interrupt_catch();
    status = follow(&e, path);
    buf_done(&e.line);
    return status;
}
