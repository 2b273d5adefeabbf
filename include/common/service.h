/* What a service tells systemd (sd_notify's protocol). Without a service manager nothing happens. */
#pragma once
#include "base.h"

/* Takes $NOTIFY_SOCKET, $WATCHDOG_USEC and $WATCHDOG_PID out of the environment, so that no child
 * speaks for us. Once, before any thread and child. */
void service_begin(void);
/* Sends the state: "READY=1", "STOPPING=1" or "WATCHDOG=1". */
void service_notify(const char *state);
/* How often WATCHDOG=1 should be sent: half of what the service manager waits, in us; 0: nobody
 * watches. */
int64_t service_watchdog_us(void);
