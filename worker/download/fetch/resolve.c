/* The cache is a hash table of entries. An entry is pending (with waiters) or answered until it
 * expires. Pending entries beyond the limit of open queries wait in a list. */
#include "resolve.h"
#include "common/clock.h"
#include "common/hash.h"
#include <ares.h>
#include <strings.h>
#include <sys/epoll.h>

#define BUCKETS        16384u
#define TTL_MIN_US     (30 * USEC_PER_SEC)
#define TTL_MAX_US     (300 * USEC_PER_SEC)
#define TTL_FAILED_US  (20 * USEC_PER_SEC)
#define TRY_TIMEOUT_MS 1500 /* doubled for each further attempt: 10.5 s in all */
#define TRIES          3

struct waiter {
    struct waiter *next;
    resolve_fn fn;
    void *ctx;
};
struct dns_entry {
    struct dns_entry *next;       /* in the bucket */
    struct dns_entry *queue_next; /* waiting to be sent */
    struct resolver *resolver;
    struct waiter *waiters;
    bool pending;
    bool queued; /* pending and not sent yet */
    int64_t expires_us;
    struct resolve_answer answer;
    char host[];
};
struct dns_socket {
    int fd;
    struct loop_fd *in_loop;
};
struct resolver {
    struct loop *loop;
    struct loop_timer *timer;
    ares_channel channel;
    struct dns_socket watched[RESOLVE_FDS_MAX]; /* sockets of c-ares */
    int watched_n;
    struct dns_entry *buckets[BUCKETS];
    size_t entries_n;
    int open_n;
    struct dns_entry *queue_head;
    struct dns_entry **queue_tail;
};

static void on_fd(void *ctx, int fd, uint32_t events)
{
    struct resolver *r = ctx;
    bool bad = (events & (EPOLLERR | EPOLLHUP)) != 0;
    bool rd = bad || (events & EPOLLIN) != 0;
    ares_process_fd(r->channel, rd ? fd : ARES_SOCKET_BAD,
                    (events & EPOLLOUT) != 0 ? fd : ARES_SOCKET_BAD);
}

static void on_timer(void *ctx)
{
    struct resolver *r = ctx;
    ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

/* c-ares tells which events of a socket it wants; none: it is about to close the socket. */
static void on_sock_state(void *ctx, ares_socket_t fd, int rd, int wr)
{
    struct resolver *r = ctx;
    uint32_t events = (rd != 0 ? (uint32_t)EPOLLIN : 0) | (wr != 0 ? (uint32_t)EPOLLOUT : 0);
    int i = 0;
    while (i < r->watched_n && r->watched[i].fd != fd) {
        i++;
    }
    if (i < r->watched_n && events != 0) {
        loop_fd_mod(r->loop, r->watched[i].in_loop, events);
    } else if (i < r->watched_n) {
        loop_fd_del(r->loop, r->watched[i].in_loop);
        r->watched[i] = r->watched[--r->watched_n];
    } else if (events != 0 && r->watched_n < RESOLVE_FDS_MAX) {
        r->watched[r->watched_n++] =
            (struct dns_socket){fd, loop_fd_add(r->loop, fd, events, on_fd, r)};
    } /* otherwise the socket is not watched and its queries time out; never reached in practice */
}

bool resolver_new(struct loop *loop, const char *servers, struct resolver **ret, struct err *err)
{
    int rc = ares_library_init(ARES_LIB_INIT_ALL);
    if (rc != ARES_SUCCESS) {
        return err_set(err, ERR_INTERNAL, "c-ares: %s", ares_strerror(rc));
    }
    struct resolver *r = xcalloc(1, sizeof *r);
    r->loop = loop;
    r->queue_tail = &r->queue_head;
    /* No search domains: they would repeat the query for each dead host. */
    struct ares_options opts = {.flags = ARES_FLAG_NOSEARCH,
                                .timeout = TRY_TIMEOUT_MS,
                                .tries = TRIES,
                                .sock_state_cb = on_sock_state,
                                .sock_state_cb_data = r};
    rc = ares_init_options(&r->channel, &opts,
                           ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
                               ARES_OPT_SOCK_STATE_CB);
    if (rc != ARES_SUCCESS) {
        free(r);
        return err_set(err, ERR_INTERNAL, "c-ares: %s", ares_strerror(rc));
    }
    r->timer = loop_timer_new(loop, on_timer, r);
    if (servers != NULL && servers[0] != '\0') {
        rc = ares_set_servers_ports_csv(r->channel, servers);
        if (rc != ARES_SUCCESS) {
            resolver_free(r);
            return err_set(err, ERR_INVALID, "dns '%s': not ADDR:PORT: %s", servers,
                           ares_strerror(rc));
        }
    }
    *ret = r;
    return true;
}

static void entry_free(struct dns_entry *e)
{
    for (struct waiter *w = e->waiters, *next; w != NULL; w = next) {
        next = w->next;
        free(w);
    }
    free(e);
}

void resolver_free(struct resolver *r)
{
    if (r == NULL) {
        return;
    }
    r->queue_head = NULL;
    r->queue_tail = &r->queue_head;
    r->open_n = RESOLVE_LOOKUPS_MAX; /* the callbacks of ares_destroy start nothing new */
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct dns_entry *e = r->buckets[i]; e != NULL; e = e->next) {
            while (e->waiters != NULL) {
                struct waiter *w = e->waiters;
                e->waiters = w->next;
                free(w);
            }
        }
    }
    ares_destroy(r->channel);
    loop_timer_free(r->timer);
    for (size_t i = 0; i < BUCKETS; i++) {
        while (r->buckets[i] != NULL) {
            struct dns_entry *e = r->buckets[i];
            r->buckets[i] = e->next;
            entry_free(e);
        }
    }
    free(r);
    ares_library_cleanup();
}

static struct dns_entry **find(struct resolver *r, const char *host)
{
    struct dns_entry **e = &r->buckets[hash_crc32(host, strlen(host)) % BUCKETS];
    while (*e != NULL && strcmp((*e)->host, host) != 0) {
        e = &(*e)->next;
    }
    return e;
}

/* Keep the table bounded: drop expired entries, and if that is not enough all answered ones. */
static void make_room(struct resolver *r)
{
    int64_t now = clock_mono_us();
    for (int round = 0; round < 2 && r->entries_n >= RESOLVE_ENTRIES_MAX; round++) {
        for (size_t i = 0; i < BUCKETS; i++) {
            for (struct dns_entry **p = &r->buckets[i]; *p != NULL;) {
                struct dns_entry *e = *p;
                if (!e->pending && (round == 1 || e->expires_us <= now)) {
                    *p = e->next;
                    entry_free(e);
                    r->entries_n--;
                } else {
                    p = &e->next;
                }
            }
        }
    }
}

static void start_next(struct resolver *r);

static void finish(struct dns_entry *e, int64_t ttl_us)
{
    struct resolver *r = e->resolver;
    e->pending = false;
    e->expires_us = clock_mono_us() + ttl_us;
    r->open_n--;
    struct resolve_answer answer = e->answer; /* a callback may change the table */
    struct waiter *w = TAKE(e->waiters);
    while (w != NULL) {
        struct waiter *next = w->next;
        w->fn(w->ctx, &answer);
        free(w);
        w = next;
    }
    start_next(r);
}

static enum resolve_status status_of(int rc)
{
    switch (rc) {
    case ARES_SUCCESS:
        return RESOLVE_OK;
    case ARES_ENOTFOUND:
    case ARES_EBADNAME:
        return RESOLVE_NO_NAME;
    case ARES_ENODATA:
        return RESOLVE_NO_ADDRESS;
    default:
        return RESOLVE_TEMPORARY;
    }
}

static int64_t take_addrs(struct dns_entry *e, const struct ares_addrinfo *info)
{
    int64_t ttl_us = TTL_MAX_US;
    e->answer.n = 0;
    for (const struct ares_addrinfo_node *n = info->nodes; n != NULL; n = n->ai_next) {
        int port;
        if (e->answer.n < RESOLVE_ADDRS_MAX &&
            addr_from_sockaddr(n->ai_addr, &e->answer.addrs[e->answer.n], &port)) {
            e->answer.n++;
            ttl_us = MIN(ttl_us, (int64_t)n->ai_ttl * USEC_PER_SEC);
        }
    }
    return MAX(ttl_us, TTL_MIN_US);
}

static void ask(struct dns_entry *e, int family, ares_addrinfo_callback cb)
{
    struct ares_addrinfo_hints hints = {.ai_family = family,
                                        .ai_flags = ARES_AI_NOSORT | ARES_AI_NUMERICSERV};
    ares_getaddrinfo(e->resolver->channel, e->host, NULL, &hints, cb, e);
}

static void answered6(void *arg, int rc, int timeouts UNUSED, struct ares_addrinfo *info)
{
    struct dns_entry *e = arg;
    int64_t ttl_us = TTL_FAILED_US;
    e->answer.status = status_of(rc);
    if (rc == ARES_SUCCESS) {
        ttl_us = take_addrs(e, info);
    }
    if (info != NULL) {
        ares_freeaddrinfo(info);
    }
    finish(e, ttl_us);
}

static void answered4(void *arg, int rc, int timeouts UNUSED, struct ares_addrinfo *info)
{
    struct dns_entry *e = arg;
    if (rc == ARES_ENODATA) {
        if (info != NULL) {
            ares_freeaddrinfo(info);
        }
        ask(e, AF_INET6, answered6);
        return;
    }
    answered6(arg, rc, 0, info);
}

static void start_next(struct resolver *r)
{
    while (r->queue_head != NULL && r->open_n < RESOLVE_LOOKUPS_MAX) {
        struct dns_entry *e = r->queue_head;
        r->queue_head = e->queue_next;
        if (r->queue_head == NULL) {
            r->queue_tail = &r->queue_head;
        }
        e->queued = false;
        if (e->waiters == NULL) { /* no waiter left */
            e->pending = false;
            e->expires_us = 0;
            continue;
        }
        r->open_n++;
        ask(e, AF_INET, answered4);
    }
}

void resolver_lookup(struct resolver *r, const char *host, resolve_fn fn, void *ctx)
{
    struct dns_entry **at = find(r, host);
    if (*at != NULL && !(*at)->pending && (*at)->expires_us > clock_mono_us()) {
        struct resolve_answer answer = (*at)->answer;
        fn(ctx, &answer);
        return;
    }
    struct dns_entry *e = *at;
    bool ask_now = e == NULL || !e->pending;
    if (e == NULL) {
        if (r->entries_n >= RESOLVE_ENTRIES_MAX) {
            make_room(r);
            at = find(r, host);
        }
        size_t n = strlen(host) + 1;
        e = xcalloc(1, sizeof *e + n);
        memcpy(e->host, host, n);
        e->resolver = r;
        e->next = *at;
        *at = e;
        r->entries_n++;
    }
    struct waiter *w = xmalloc(sizeof *w);
    *w = (struct waiter){e->waiters, fn, ctx};
    e->waiters = w;
    if (ask_now) {
        e->pending = e->queued = true;
        e->queue_next = NULL;
        *r->queue_tail = e;
        r->queue_tail = &e->queue_next;
        start_next(r);
    }
}

void resolver_cancel(struct resolver *r, const char *host, void *ctx)
{
    struct dns_entry *e = *find(r, host);
    if (e == NULL) {
        return;
    }
    for (struct waiter **p = &e->waiters; *p != NULL;) {
        struct waiter *w = *p;
        if (w->ctx == ctx) {
            *p = w->next;
            free(w);
        } else {
            p = &w->next;
        }
    }
}

bool resolver_is_queued(struct resolver *r, const char *host)
{
    const struct dns_entry *e = *find(r, host);
    return e != NULL && e->queued;
}

void resolver_arm(struct resolver *r)
{
    struct timeval tv;
    struct timeval *left = ares_timeout(r->channel, NULL, &tv);
    if (left != NULL) {
        loop_timer_set(r->timer, (int64_t)left->tv_sec * USEC_PER_SEC + left->tv_usec);
    }
}
