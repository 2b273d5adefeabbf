/* Wait for the server; see wait.h. */
#include "wait.h"
#include "cli.h"
#include "client.h"
#include "common/clock.h"
#include "interrupt.h"
#include "print.h"
#include <stdio.h>

#define WAIT_POLL_MS 300

bool timeout_read(const struct cli *cli, int64_t *ret_us)
{
    int64_t s;
    struct err err = ERR_INIT;
    *ret_us = -1;
    if (cli->opt.timeout == NULL) {
        return true;
    }
    if (!parse_duration_s(str_of(cli->opt.timeout), 0, 365 * 86400, &s, &err)) {
        (void)fail(EXIT_USAGE, "write 90s, 15m or 2h", "--timeout: %s", err.message);
        return false;
    }
    *ret_us = s * USEC_PER_SEC;
    return true;
}

int wait_for(struct cli *cli, const char *path, bool (*done)(const json_t *v, const char *arg),
             const char *arg)
{
    int64_t timeout_us, began_us = clock_mono_us();
    int status = EXIT_OK;
    if (!timeout_read(cli, &timeout_us)) {
        return EXIT_USAGE;
    }
    interrupt_catch();
    cli->patient = true;
    for (;;) {
        CLEANUP(reply_done)
        struct client_reply r = {0};
        if (!client_get(cli, &r, &status, "%s", path)) {
            return interrupted() ? EXIT_INTERRUPTED : status;
        }
        if (done(r.json, arg)) {
            return EXIT_OK;
        }
        if (interrupted()) {
            return fail(EXIT_INTERRUPTED, "drover get shows the state",
                        "interrupted; the request continues on the server");
        }
        if (timeout_us >= 0 && clock_mono_us() - began_us > timeout_us) {
            return fail(EXIT_WAIT_TIMEOUT, "drover get shows the state",
                        "timed out after %s: %s is %s", cli->opt.timeout, jstr(r.json, "id"),
                        jstr(r.json, "state"));
        }
        pause_ms(WAIT_POLL_MS);
    }
}
