/* curl says which sockets to watch and when to call it; the loop does so. */
#include "fetch_io.h"
#include "common/clock.h"
#include <sys/epoll.h>

#define DRAINED_BELOW 32 /* events per pass; fewer than this: no more are pending */

struct fetch_socket {
    struct fetch_io *io;
    struct loop_fd *in_loop;
    void *private; /* handle of the socket */
};

static void drive(struct fetch_io *io, curl_socket_t fd, int events)
{
    int running;
    (void)curl_multi_socket_action(io->multi, fd, events, &running);
}

static void on_timer(void *ctx)
{
    drive(ctx, CURL_SOCKET_TIMEOUT, 0);
}

static void on_fd(void *ctx, int fd, uint32_t events)
{
    int what = ((events & EPOLLIN) != 0 ? CURL_CSELECT_IN : 0) |
               ((events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
               ((events & (EPOLLERR | EPOLLHUP)) != 0 ? CURL_CSELECT_ERR : 0);
    struct fetch_socket *w = ctx;
    struct fetch_io *io = w->io;
    io->heard_n++;
    io->on_heard(w->private);
    drive(io, fd, what); /* w may be freed now */
}

static int on_watch(CURL *easy, curl_socket_t fd, int what, void *ctx, void *of_fd)
{
    struct fetch_io *io = ctx;
    struct fetch_socket *w = of_fd;
    if (what == CURL_POLL_REMOVE) {
        if (w != NULL) {
            loop_fd_del(io->loop, w->in_loop);
            free(w);
        }
        (void)curl_multi_assign(io->multi, fd, NULL);
        return 0;
    }
    uint32_t events = (what == CURL_POLL_IN || what == CURL_POLL_INOUT ? (uint32_t)EPOLLIN : 0) |
                      (what == CURL_POLL_OUT || what == CURL_POLL_INOUT ? (uint32_t)EPOLLOUT : 0);
    if (w != NULL) {
        loop_fd_mod(io->loop, w->in_loop, events);
    } else {
        w = xcalloc(1, sizeof *w);
        w->io = io;
        w->in_loop = loop_fd_add(io->loop, fd, events, on_fd, w);
        (void)curl_multi_assign(io->multi, fd, w);
    }
    (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &w->private);
    return 0;
}

static int on_timeout(CURLM *multi UNUSED, long ms, void *ctx)
{
    struct fetch_io *io = ctx;
    loop_timer_set(io->timer, ms < 0 ? -1 : (int64_t)ms * USEC_PER_MSEC);
    return 0;
}

bool fetch_io_init(struct fetch_io *io, void (*on_heard)(void *private), struct err *err)
{
    struct fetch_io made = {.on_heard = on_heard};
    if (!loop_new(&made.loop, err)) {
        return false;
    }
    *io = made;
    io->timer = loop_timer_new(io->loop, on_timer, io);
    io->multi = curl_multi_init();
    io->share = curl_share_init();
    ASSERT(io->multi != NULL && io->share != NULL);
    (void)curl_share_setopt(io->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
    (void)curl_multi_setopt(io->multi, CURLMOPT_SOCKETFUNCTION, on_watch);
    (void)curl_multi_setopt(io->multi, CURLMOPT_SOCKETDATA, io);
    (void)curl_multi_setopt(io->multi, CURLMOPT_TIMERFUNCTION, on_timeout);
    (void)curl_multi_setopt(io->multi, CURLMOPT_TIMERDATA, io);
    (void)curl_multi_setopt(io->multi, CURLMOPT_MAXCONNECTS, (long)FETCH_IO_CONNECTIONS_KEPT);
    (void)curl_multi_setopt(io->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    return true;
}

void fetch_io_done(struct fetch_io *io)
{
    if (io->loop == NULL) {
        return;
    }
    (void)curl_multi_cleanup(io->multi);
    (void)curl_share_cleanup(io->share);
    loop_timer_free(io->timer);
    loop_free(io->loop);
    *io = (struct fetch_io){0};
}

void fetch_io_pass(struct fetch_io *io, int64_t max_wait_us)
{
    loop_run_once(io->loop, max_wait_us);
}

void fetch_io_drain(struct fetch_io *io, int handles)
{
    int64_t before;
    int64_t end = io->heard_n + handles; /* sockets take turns, so each had one */
    do {
        before = io->heard_n;
        loop_run_once(io->loop, 0);
    } while (io->heard_n - before >= DRAINED_BELOW && io->heard_n < end);
}

void fetch_io_kick(struct fetch_io *io)
{
    drive(io, CURL_SOCKET_TIMEOUT, 0);
}
