/* What a service tells systemd, by sd_notify's protocol. Without a service manager nothing
 * happens. */
#pragma once
#include "base.h"
#include <sys/socket.h>
#include <sys/un.h>

struct service_manager {
    struct sockaddr_un at; /* where the service manager listens */
    socklen_t size;        /* of at; 0: there is none */
    int64_t watchdog_us;   /* how often to send WATCHDOG=1: half of what it waits; 0: never */
};
/* Takes $NOTIFY_SOCKET, $WATCHDOG_USEC and $WATCHDOG_PID out of the environment, so that no child
 * speaks for us. Before any thread and child. */
void service_begin(struct service_manager *ret);
/* Sends the state: "READY=1", "STOPPING=1" or "WATCHDOG=1". */
void service_notify(const struct service_manager *s, const char *state);
