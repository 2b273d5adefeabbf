/* The cache is a hash table of entries. An entry is pending (with waiters) or answered until it
 * expires. Pending entries beyond the limit of open queries wait in a list.
 *
 * An error of a c-ares socket costs every query of its channel a try. So a truncated answer, which
 * makes c-ares turn to TCP, is used as it is; one without an address is queried over TCP in a
 * channel of its own. A query that a socket error has ended is repeated a little later. */
#include "resolve.h"
#include "common/clock.h"
#include "common/hash.h"
#include <ares.h>
#include <strings.h>
#include <sys/epoll.h>

#define DNS_BUCKETS    16384u
#define TTL_MIN_US     (30 * USEC_PER_SEC)
#define TTL_MAX_US     (300 * USEC_PER_SEC)
#define TTL_FAILED_US  (20 * USEC_PER_SEC)
#define TRY_TIMEOUT_MS 1500 /* doubled for each further attempt: 10.5 s in all */
#define TRIES          3
#define OWN_TIME_US    (10 * USEC_PER_SEC) /* a query that ends earlier has not had all its tries */
#define AGAIN_MAX      3                   /* times a query ended by a socket's error is repeated */
#define AGAIN_AFTER_US USEC_PER_SEC

struct waiter {
    struct waiter *next;
    resolve_fn fn;
    void *ctx;
};
struct dns_entry {
    struct dns_entry *next;       /* in the bucket */
    struct dns_entry *queue_next; /* waiting to be sent, or to be repeated */
    struct resolver *resolver;
    struct waiter *waiters;
    bool pending;
    bool queued; /* pending and not sent yet */
    int again_n;
    int64_t asked_us, again_us;
    int64_t expires_us;
    struct resolve_answer answer;
    char host[];
};
struct dns_channel {
    struct resolver *resolver;
    ares_channel ares;
};
struct dns_socket {
    int fd;
    struct loop_fd *in_loop;
};
struct resolver {
    struct loop *loop;
    struct loop_timer *timer;
    struct dns_channel udp, tcp;
    struct dns_socket watched[RESOLVE_FDS_MAX]; /* sockets of c-ares */
    int watched_n;
    struct dns_entry *buckets[DNS_BUCKETS];
    size_t entries_n;
    int open_n;
    struct dns_entry *queue_head;
    struct dns_entry **queue_tail;
    struct dns_entry *again_head; /* in the order of their times */
    struct dns_entry **again_tail;
};

static void ask_first(struct dns_entry *e);

static void on_fd(void *ctx, int fd, uint32_t events)
{
    struct dns_channel *c = ctx;
    bool bad = (events & (EPOLLERR | EPOLLHUP)) != 0;
    bool rd = bad || (events & EPOLLIN) != 0;
    ares_process_fd(c->ares, rd ? fd : ARES_SOCKET_BAD,
                    (events & EPOLLOUT) != 0 ? fd : ARES_SOCKET_BAD);
}

static void on_timer(void *ctx)
{
    struct resolver *r = ctx;
    ares_process_fd(r->udp.ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    ares_process_fd(r->tcp.ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    while (r->again_head != NULL && r->again_head->again_us <= clock_mono_us()) {
        struct dns_entry *e = r->again_head;
        r->again_head = e->queue_next;
        if (r->again_head == NULL) {
            r->again_tail = &r->again_head;
        }
        ask_first(e);
    }
}

/* c-ares tells which events of a socket it wants; none: it is about to close the socket. */
static void on_sock_state(void *ctx, ares_socket_t fd, int rd, int wr)
{
    struct dns_channel *c = ctx;
    struct resolver *r = c->resolver;
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
            (struct dns_socket){fd, loop_fd_add(r->loop, fd, events, on_fd, c)};
    } /* otherwise the socket is not watched and its queries time out; never reached in practice */
}

static bool channel_open(struct resolver *r, const char *servers, int flags,
                         struct dns_channel *ret, struct err *err)
{
    ret->resolver = r;
    /* No search domains: they would repeat the query for each dead host. */
    struct ares_options opts = {.flags = ARES_FLAG_NOSEARCH | flags,
                                .timeout = TRY_TIMEOUT_MS,
                                .tries = TRIES,
                                .sock_state_cb = on_sock_state,
                                .sock_state_cb_data = ret};
    int rc = ares_init_options(&ret->ares, &opts,
                               ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
                                   ARES_OPT_SOCK_STATE_CB);
    if (rc != ARES_SUCCESS) {
        ret->ares = NULL;
        return err_set(err, ERR_INTERNAL, "c-ares: %s", ares_strerror(rc));
    }
    if (servers != NULL && servers[0] != '\0') {
        rc = ares_set_servers_ports_csv(ret->ares, servers);
        if (rc != ARES_SUCCESS) {
            return err_set(err, ERR_INVALID, "dns '%s': not ADDR:PORT: %s", servers,
                           ares_strerror(rc));
        }
    }
    return true;
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
    r->again_tail = &r->again_head;
    r->timer = loop_timer_new(loop, on_timer, r);
    if (!channel_open(r, servers, ARES_FLAG_IGNTC, &r->udp, err) ||
        !channel_open(r, servers, ARES_FLAG_USEVC, &r->tcp, err)) {
        resolver_free(r);
        return false;
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
    for (size_t i = 0; i < DNS_BUCKETS; i++) {
        for (struct dns_entry *e = r->buckets[i]; e != NULL; e = e->next) {
            while (e->waiters != NULL) {
                struct waiter *w = e->waiters;
                e->waiters = w->next;
                free(w);
            }
        }
    }
    for (int i = 0; i < 2; i++) {
        ares_channel c = i == 0 ? r->udp.ares : r->tcp.ares;
        if (c != NULL) {
            ares_destroy(c);
        }
    }
    loop_timer_free(r->timer);
    for (size_t i = 0; i < DNS_BUCKETS; i++) {
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
    struct dns_entry **e = &r->buckets[hash_crc32(host, strlen(host)) % DNS_BUCKETS];
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
        for (size_t i = 0; i < DNS_BUCKETS; i++) {
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

static void ask(struct dns_entry *e, struct dns_channel *c, int family, ares_addrinfo_callback cb)
{
    struct ares_addrinfo_hints hints = {.ai_family = family,
                                        .ai_flags = ARES_AI_NOSORT | ARES_AI_NUMERICSERV};
    ares_getaddrinfo(c->ares, e->host, NULL, &hints, cb, e);
}

static bool must_ask_again(const struct dns_entry *e, int rc)
{
    bool early = clock_mono_us() - e->asked_us < OWN_TIME_US;
    return e->again_n < AGAIN_MAX && (rc == ARES_ECONNREFUSED || (rc == ARES_ETIMEOUT && early));
}

static void ask_again(struct dns_entry *e)
{
    struct resolver *r = e->resolver;
    e->again_n++;
    e->again_us = clock_mono_us() + AGAIN_AFTER_US;
    e->queue_next = NULL;
    *r->again_tail = e;
    r->again_tail = &e->queue_next;
}

static void answered(void *arg, int rc, int timeouts UNUSED, struct ares_addrinfo *info)
{
    struct dns_entry *e = arg;
    int64_t ttl_us = TTL_FAILED_US;
    e->answer.status = status_of(rc);
    if (rc == ARES_SUCCESS && info != NULL) {
        ttl_us = take_addrs(e, info);
    }
    if (info != NULL) {
        ares_freeaddrinfo(info);
    }
    if (must_ask_again(e, rc)) {
        ask_again(e);
    } else {
        finish(e, ttl_us);
    }
}

/* True when there is an answer without an address, which is released. */
static bool is_empty(int rc, struct ares_addrinfo *info)
{
    bool empty = rc == ARES_ENODATA || rc == ARES_EBADRESP;
    if (empty && info != NULL) {
        ares_freeaddrinfo(info);
    }
    return empty;
}

static void answered_tcp(void *arg, int rc, int timeouts UNUSED, struct ares_addrinfo *info)
{
    struct dns_entry *e = arg;
    if (is_empty(rc, info)) {
        ask(e, &e->resolver->udp, AF_INET6, answered);
    } else {
        answered(arg, rc, 0, info);
    }
}

/* The answer without an address once more, to see whether it was truncated. */
/* NOLINTNEXTLINE(readability-non-const-parameter): the type is c-ares' */
static void answered_raw(void *arg, int rc, int timeouts UNUSED, unsigned char *bytes, int n)
{
    struct dns_entry *e = arg;
    if (bytes != NULL && n > 2 && (bytes[2] & 0x02) != 0) {
        ask(e, &e->resolver->tcp, AF_INET, answered_tcp);
    } else if (rc == ARES_ENODATA) {
        ask(e, &e->resolver->udp, AF_INET6, answered);
    } else {
        answered(arg, rc == ARES_SUCCESS ? ARES_EBADRESP : rc, 0, NULL);
    }
}

static void answered4(void *arg, int rc, int timeouts UNUSED, struct ares_addrinfo *info)
{
    struct dns_entry *e = arg;
    if (is_empty(rc, info)) {
        ares_query(e->resolver->udp.ares, e->host, 1 /* IN */, 1 /* A */, answered_raw, e);
    } else {
        answered(arg, rc, 0, info);
    }
}

static void ask_first(struct dns_entry *e)
{
    e->asked_us = clock_mono_us();
    ask(e, &e->resolver->udp, AF_INET, answered4);
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
        ask_first(e);
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
        e->again_n = 0;
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
    int64_t wait_us = INT64_MAX;
    const ares_channel channels[] = {r->udp.ares, r->tcp.ares};
    for (size_t i = 0; i < ARRAY_LEN(channels); i++) {
        struct timeval tv;
        struct timeval *left = ares_timeout(channels[i], NULL, &tv);
        if (left != NULL) {
            wait_us = MIN(wait_us, (int64_t)left->tv_sec * USEC_PER_SEC + left->tv_usec);
        }
    }
    if (r->again_head != NULL) {
        wait_us = MIN(wait_us, MAX(r->again_head->again_us - clock_mono_us(), 0));
    }
    if (wait_us != INT64_MAX) {
        loop_timer_set(r->timer, wait_us);
    }
}
