/* See service.h. */
#include "common/service.h"
#include "common/cleanup.h"
#include "common/str.h"
#include <stddef.h>
#include <unistd.h>

static int64_t number(const char *name)
{
    const char *text = getenv(name);
    int64_t n = 0;
    return text != NULL && parse_i64(str_of(text), 1, INT64_MAX / 2, &n, NULL) ? n : 0;
}

void service_begin(struct service_manager *ret)
{
    const char *path = getenv("NOTIFY_SOCKET");
    size_t n = path != NULL ? strlen(path) : 0;
    int64_t whose = number("WATCHDOG_PID");
    *ret = (struct service_manager){.at = {.sun_family = AF_UNIX}};
    ret->watchdog_us = whose == 0 || whose == getpid() ? number("WATCHDOG_USEC") / 2 : 0;
    if (n >= 2 && n < sizeof ret->at.sun_path && (path[0] == '/' || path[0] == '@')) {
        memcpy(ret->at.sun_path, path, n);
        if (path[0] == '@') { /* an abstract name */
            ret->at.sun_path[0] = '\0';
        }
        ret->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    }
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
}

void service_notify(const struct service_manager *s, const char *state)
{
    AUTO_FD int fd =
        s->size > 0 ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
    if (fd >= 0) {
        (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL,
                     (const struct sockaddr *)(const void *)&s->at, s->size);
    }
}
