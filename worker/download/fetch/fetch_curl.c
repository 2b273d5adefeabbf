/* curl's callbacks: headers are parsed, bytes counted against every limit, and each socket's
 * address checked before it is opened. */
#include "fetch_curl.h"
#include "common/clock.h"
#include <sys/socket.h>

#define RECEIVE_BYTES (32L << 10)
#define HEARD_US      (200 * USEC_PER_MSEC) /* interval between two hosts_heard */
/* of a Content-Length, for one allocation without further checks */
#define BODY_GUESS_MAX (1u << 20)

static void hear(struct transfer *t, bool drips)
{
    int64_t now = clock_mono_us();
    if (t->host == NULL || now - t->heard_us < HEARD_US) {
        return;
    }
    if (drips) {
        hosts_dripped(t->fetch->hosts, t->host, now);
    } else {
        hosts_heard(t->fetch->hosts, t->host, t->hop_us, now);
    }
    t->heard_us = now;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the type is curl's */
static size_t on_header(char *p, size_t size UNUSED, size_t n, void *ctx)
{
    struct transfer *t = ctx;
    hear(t, false);
    t->header_n += n;
    if (t->header_n > FETCH_HEADERS_MAX) {
        return 0;
    }
    transfer_header(t, (struct str){p, n}, &t->fetch->run->o->robots);
    return n;
}

bool fetch_curl_may_go_over(const struct fetch *f, const struct transfer *t)
{
    return f->privileged == t || (f->privileged == NULL && f->handed == 0);
}

static size_t on_data(char *p, size_t size UNUSED, size_t n, void *ctx)
{
    struct transfer *t = ctx;
    struct fetch *f = t->fetch;
    if (t->forbidden) {
        return 0;
    }
    if (t->status >= 300) {
        t->discarded += n;
        return t->discarded > FETCH_DISCARD_MAX ? 0 : n;
    }
    t->pieces_n++;
    if (transfer_is_crumbs(t)) {
        return 0;
    }
    if (t->body.n + n > (size_t)f->run->o->max_image_bytes) {
        t->too_large = true;
        return 0;
    }
    if (t->body.n == 0) {
        curl_off_t whole = 0;
        (void)curl_easy_getinfo(t->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &whole);
        t->first_byte_us = t->first_byte_us != 0 ? t->first_byte_us : clock_mono_us();
        (void)buf_reserve(&t->body, MIN((size_t)MAX(whole, (curl_off_t)n), BODY_GUESS_MAX));
    }
    if (f->bytes + n > PIPELINE_BODIES_BYTES_MAX) {
        if (!fetch_curl_may_go_over(f, t)) {
            t->paused_us = clock_mono_us();
            return CURL_WRITEFUNC_PAUSE;
        }
        f->privileged = t;
    }
    buf_add(&t->body, p, n);
    atomic_fetch_add(&f->bytes, n);
    f->run->progress.fetched += (int64_t)n;
    hear(t, transfer_is_stalled(t, clock_mono_us()));
    return n;
}

/* The final address check: curl passes the address it is about to connect to. */
static curl_socket_t on_socket(void *ctx, curlsocktype purpose UNUSED, struct curl_sockaddr *sa)
{
    struct transfer *t = ctx;
    struct net_addr a;
    int port;
    if (!addr_from_sockaddr(&sa->addr, &a, &port) ||
        !addr_is_allowed(&t->fetch->run->o->rules, &a, port)) {
        t->blocked = true;
        return CURL_SOCKET_BAD;
    }
    return socket(sa->family, sa->socktype | SOCK_CLOEXEC, sa->protocol);
}

static CURL *make_easy(struct fetch *f, struct transfer *t)
{
    CURL *e = curl_easy_init();
    ASSERT(e != NULL);
    (void)curl_easy_setopt(e, CURLOPT_PRIVATE, t);
    (void)curl_easy_setopt(e, CURLOPT_SHARE, f->io.share);
    (void)curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(e, CURLOPT_PROXY, "");
    (void)curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(e, CURLOPT_USERAGENT, f->user_agent);
    (void)curl_easy_setopt(e, CURLOPT_BUFFERSIZE, RECEIVE_BYTES);
    (void)curl_easy_setopt(e, CURLOPT_MAXFILESIZE_LARGE, f->run->o->max_image_bytes);
    /* Debian's curl parses the CA folder for each connection unless it is told that there is
     * none. */
    (void)curl_easy_setopt(e, CURLOPT_CAPATH, NULL);
    if (f->ca_file != NULL) {
        (void)curl_easy_setopt(e, CURLOPT_CAINFO, f->ca_file);
    }
    if (f->run->o->ignore_ssl_certificate) {
        (void)curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 0L);
        (void)curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    (void)curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(e, CURLOPT_HEADERDATA, t);
    (void)curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_data);
    (void)curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
    (void)curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, on_socket);
    (void)curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, t);
    return e;
}

void fetch_curl_start(struct fetch *f, struct transfer *t)
{
    char addr[ADDR_TEXT_BYTES];
    char to[ADDR_TEXT_BYTES + 16];
    const struct net_addr *a = &t->addrs[t->addr_i];
    addr_format(a, addr);
    (void)snprintf(to, sizeof to, a->family == AF_INET6 ? "::[%s]:%d" : "::%s:%d", addr,
                   t->url.port);
    /* Use a new handle each time (it costs a microsecond): curl before 8.1.1 frees memory twice
     * when a handle is reused and the first header of the answer begins with a space (curl issue
     * 11101). */
    curl_easy_cleanup(t->easy);
    t->easy = make_easy(f, t);
    struct curl_slist *old = t->connect_to;
    t->connect_to = curl_slist_append(NULL, to);
    transfer_reset_hop(t);
    (void)curl_easy_setopt(t->easy, CURLOPT_URL, t->url.text);
    (void)curl_easy_setopt(t->easy, CURLOPT_CONNECT_TO, t->connect_to);
    curl_slist_free_all(old);
    t->state = TRANSFER_RUNNING;
    CURLMcode rc = curl_multi_add_handle(f->io.multi, t->easy);
    ASSERT(rc == CURLM_OK);
}
