/* See head_timeout.h. */
#include "head_timeout.h"
#include "common/clock.h"
#include "proxies.h"
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>

#define LOOK_EVERY_S 1

struct conn {
    int fd; /* -1: free slot */
    int64_t deadline_us;
    bool reserve;
    char address[ADDRESS_TEXT_MAX]; /* "" when it does not count */
};
struct head_timeout {
    pthread_mutex_t lock;
    pthread_cond_t stopped;
    pthread_t thread;
    bool stop;
    const struct proxies *proxies;
    size_t n, open;
    struct conn *at;
};

static void shut_late(struct head_timeout *c, int64_t now_us)
{
    for (size_t i = 0; i < c->n; i++) {
        if (c->at[i].fd >= 0 && now_us > c->at[i].deadline_us) {
            /* libmicrohttpd sees the end of the stream and closes the connection */
            (void)shutdown(c->at[i].fd, SHUT_RDWR);
            c->at[i].deadline_us = USEC_NEVER;
        }
    }
}

static void *conns_main(void *ctx)
{
    struct head_timeout *c = ctx;
    (void)pthread_mutex_lock(&c->lock);
    while (!c->stop) {
        struct timespec ts;
        (void)clock_gettime(CLOCK_REALTIME, &ts);
        ts.tv_sec += LOOK_EVERY_S;
        (void)pthread_cond_timedwait(&c->stopped, &c->lock, &ts);
        shut_late(c, clock_mono_us());
    }
    (void)pthread_mutex_unlock(&c->lock);
    return NULL;
}

bool head_timeout_new(size_t max, const struct proxies *proxies, struct head_timeout **ret,
                      struct err *err)
{
    struct head_timeout *c = xcalloc(1, sizeof *c);
    c->n = max;
    c->proxies = proxies;
    c->at = xcalloc(max, sizeof *c->at);
    for (size_t i = 0; i < max; i++) {
        c->at[i].fd = -1;
    }
    (void)pthread_mutex_init(&c->lock, NULL);
    (void)pthread_cond_init(&c->stopped, NULL);
    int rc = pthread_create(&c->thread, NULL, conns_main, c);
    if (rc != 0) {
        free(c->at);
        free(c);
        return err_set_os(err, ERR_INTERNAL, rc, "cannot start the thread of head time-outs");
    }
    *ret = c;
    return true;
}

void head_timeout_free(struct head_timeout *c)
{
    if (c == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&c->lock);
    c->stop = true;
    (void)pthread_cond_signal(&c->stopped);
    (void)pthread_mutex_unlock(&c->lock);
    (void)pthread_join(c->thread, NULL);
    (void)pthread_cond_destroy(&c->stopped);
    (void)pthread_mutex_destroy(&c->lock);
    free(c->at);
    free(c);
}

static struct conn *conn_free_slot(struct head_timeout *c)
{
    for (size_t i = 0; i < c->n; i++) {
        if (c->at[i].fd < 0) {
            return &c->at[i];
        }
    }
    return NULL; /* not watched; the library's own limit is the same number */
}

/* Fills the slot of a new connection. False: its address has too many. The lock is held. */
static bool conn_open(struct head_timeout *c, struct conn *slot, struct MHD_Connection *conn)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *peer = info != NULL ? info->client_addr : NULL;
    bool loopback = true;
    size_t same = 0;
    c->open++;
    slot->reserve = c->open > c->n - HEAD_TIMEOUT_RESERVE;
    slot->deadline_us =
        clock_mono_us() + (slot->reserve ? HEAD_TIMEOUT_RESERVE_US : HEAD_TIMEOUT_HEAD_US);
    slot->address[0] = '\0';
    if (peer != NULL && !proxies_has(c->proxies, peer)) {
        proxies_client(c->proxies, peer, "", slot->address, &loopback);
    }
    if (loopback) {
        slot->address[0] = '\0';
        return true;
    }
    for (size_t i = 0; i < c->n; i++) {
        same += c->at[i].fd >= 0 && strcmp(c->at[i].address, slot->address) == 0;
    }
    return same <= HEAD_TIMEOUT_PER_ADDRESS;
}

void head_timeout_notify(void *cls, struct MHD_Connection *conn, void **socket_context,
                         enum MHD_ConnectionNotificationCode what)
{
    struct head_timeout *c = cls;
    (void)pthread_mutex_lock(&c->lock);
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct conn *slot = info != NULL ? conn_free_slot(c) : NULL;
        if (slot != NULL) {
            slot->fd = info->connect_fd;
            if (!conn_open(c, slot, conn)) {
                (void)shutdown(slot->fd, SHUT_RDWR);
            }
        }
        *socket_context = slot;
    } else if (*socket_context != NULL) {
        /* release the slot before the descriptor number is used again */
        struct conn *slot = *socket_context;
        slot->fd = -1;
        c->open--;
        *socket_context = NULL;
    }
    (void)pthread_mutex_unlock(&c->lock);
}

static struct conn *conn_slot(struct MHD_Connection *conn)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

bool head_timeout_in_reserve(struct head_timeout *c, struct MHD_Connection *conn)
{
    const struct conn *slot = conn_slot(conn);
    (void)pthread_mutex_lock(&c->lock);
    bool reserve = slot != NULL && slot->reserve;
    (void)pthread_mutex_unlock(&c->lock);
    return reserve;
}

static void conn_until(struct head_timeout *c, struct MHD_Connection *conn, int64_t deadline_us)
{
    struct conn *slot = conn_slot(conn);
    if (slot != NULL) {
        (void)pthread_mutex_lock(&c->lock);
        slot->deadline_us = deadline_us;
        (void)pthread_mutex_unlock(&c->lock);
    }
}

void head_timeout_head_read(struct head_timeout *c, struct MHD_Connection *conn)
{
    conn_until(c, conn, USEC_NEVER);
}

void head_timeout_answered(struct head_timeout *c, struct MHD_Connection *conn)
{
    conn_until(c, conn, clock_mono_us() + HEAD_TIMEOUT_NEXT_US);
}
