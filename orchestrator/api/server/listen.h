/* The address that the API listens on. */
#pragma once
#include "common/err.h"
#include <sys/socket.h>

#define LISTEN_PATH_MAX 107

struct listen_address {
    struct sockaddr_storage addr;
    socklen_t addr_n;
    uint16_t port; /* 0: any free one */
    bool loopback, ipv6;
};
/* "ADDRESS:PORT" with an IPv4 address, an IPv6 address in brackets or "localhost" (127.0.0.1).
 * ERR_INVALID says what is wrong. */
bool listen_parse(const char *text, struct listen_address *ret, struct err *err) MUST_CHECK;
/* A listening socket; the caller closes it. ret_port: the port it got. ERR_IO with the system's
 * reason, for example when another process listens there. */
bool listen_open(const struct listen_address *a, int *ret_fd, uint16_t *ret_port,
                 struct err *err) MUST_CHECK;
/* A listening socket at a path, for its owner and group alone; the caller closes it and unlinks the
 * path. One that nobody listens at any more is replaced. ERR_IO. */
bool listen_open_path(const char *path, int *ret_fd, struct err *err) MUST_CHECK;
