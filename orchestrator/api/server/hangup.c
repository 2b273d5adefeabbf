/* See hangup.h. */
#include "hangup.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

#define UNACKNOWLEDGED_MS 30000

static int conn_fd(struct MHD_Connection *conn)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info != NULL ? info->connect_fd : -1;
}

bool hangup_new(int *ret_set, struct err *err)
{
    *ret_set = epoll_create1(EPOLL_CLOEXEC);
    return *ret_set >= 0 ||
           err_set_os(err, ERR_INTERNAL, errno, "cannot watch the clients of event streams");
}

void hangup_watch(int set, struct MHD_Connection *conn, void *owner)
{
    const unsigned limit_ms = UNACKNOWLEDGED_MS;
    struct epoll_event e = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = owner};
    int fd = conn_fd(conn);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof limit_ms);
    (void)epoll_ctl(set, EPOLL_CTL_ADD, fd, &e);
}

void hangup_forget(int set, struct MHD_Connection *conn)
{
    (void)epoll_ctl(set, EPOLL_CTL_DEL, conn_fd(conn), NULL);
}

void *hangup_take(int set, bool *ret_gone)
{
    struct epoll_event e;
    if (epoll_wait(set, &e, 1, 0) != 1) {
        return NULL;
    }
    *ret_gone = (e.events & (EPOLLERR | EPOLLHUP)) != 0;
    return e.data.ptr;
}
