/* Parse an address to listen on, and open it. The socket is our own so that a second server on the
 * same address gets EADDRINUSE: the library would set SO_REUSEPORT, and both would answer in turns.
 */
#include "listen.h"
#include "common/cleanup.h"
#include "common/str.h"
#include <arpa/inet.h>
#include <errno.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 511

static bool host_parse(const char *host, bool brackets, struct listen_address *ret)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(ret->port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(ret->port)};
    const char *ip = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    if (!brackets && inet_pton(AF_INET, ip, &in.sin_addr) == 1) {
        memcpy(&ret->addr, &in, sizeof in);
        ret->addr_n = sizeof in;
        ret->loopback = (ntohl(in.sin_addr.s_addr) >> 24) == 127;
        return true;
    }
    if (brackets && inet_pton(AF_INET6, host, &in6.sin6_addr) == 1) {
        memcpy(&ret->addr, &in6, sizeof in6);
        ret->addr_n = sizeof in6;
        ret->ipv6 = true;
        ret->loopback = IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
        return true;
    }
    return false;
}

bool listen_parse(const char *text, struct listen_address *ret, struct err *err)
{
    *ret = (struct listen_address){0};
    const char *colon = strrchr(text, ':');
    int64_t port;
    if (colon == NULL || !parse_i64(str_of(colon + 1), 0, UINT16_MAX, &port, NULL)) {
        return err_set(err, ERR_INVALID, "listen '%.100s': write ADDRESS:PORT, like 127.0.0.1:8080",
                       text);
    }
    ret->port = (uint16_t)port;
    size_t n = (size_t)(colon - text);
    bool brackets = n > 2 && text[0] == '[' && text[n - 1] == ']';
    AUTO_FREE char *host = xstrndup(text + brackets, brackets ? n - 2 : n);
    return host_parse(host, brackets, ret) ||
           err_set(err, ERR_INVALID,
                   "listen '%.100s': '%.80s' is not an IP address; write 127.0.0.1:%d, "
                   "0.0.0.0:%d or [::1]:%d",
                   text, host, (int)port, (int)port, (int)port);
}

bool listen_open(const struct listen_address *a, int *ret_fd, uint16_t *ret_port, struct err *err)
{
    AUTO_FD int fd =
        socket(a->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
    const int on = 1;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } got = {0};
    socklen_t got_n = sizeof got;
    /* SO_REUSEADDR takes over connections in TIME_WAIT, never another listener. */
    bool ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
              bind(fd, (const struct sockaddr *)&a->addr, a->addr_n) == 0 &&
              listen(fd, BACKLOG) == 0 && getsockname(fd, &got.any, &got_n) == 0;
    if (!ok) {
        int why = errno;
        char ip[INET6_ADDRSTRLEN] = "";
        const void *at = a->ipv6 ? (const void *)&((const struct sockaddr_in6 *)&a->addr)->sin6_addr
                                 : &((const struct sockaddr_in *)&a->addr)->sin_addr;
        (void)inet_ntop(a->addr.ss_family, at, ip, sizeof ip);
        return err_set_os(err, ERR_IO, why, "cannot listen on %s port %u", ip, a->port);
    }
    *ret_port = ntohs(a->ipv6 ? got.v6.sin6_port : got.v4.sin_port);
    *ret_fd = fd_take(&fd);
    return true;
}

bool listen_open_path(const char *path, int *ret_fd, struct err *err)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct stat st;
    AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    AUTO_FD int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT(strlen(path) <= LISTEN_PATH_MAX && LISTEN_PATH_MAX < sizeof to.sun_path);
    memcpy(to.sun_path, path, strlen(path));
    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode)) {
        if (connect(probe, (const struct sockaddr *)&to, sizeof to) == 0) {
            return err_set(err, ERR_IO, "cannot listen at '%s': another process does", path);
        }
        (void)unlink(path);
    }
    /* nobody can connect before listen, so nobody sees other rights than these */
    bool ok = fd >= 0 && bind(fd, (const struct sockaddr *)&to, sizeof to) == 0 &&
              chmod(path, 0660) == 0 && listen(fd, BACKLOG) == 0;
    if (!ok) {
        return err_set_os(err, ERR_IO, errno, "cannot listen at '%s'", path);
    }
    *ret_fd = fd_take(&fd);
    return true;
}
