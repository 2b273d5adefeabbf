/* A transfer's life: idle -> resolving -> running -> (redirect: resolving | retry: waiting |
 * next address: running)* -> idle. All of it happens on the fetch thread; other threads only
 * release bytes and wake it. The answer of a transfer is judged in verdict.c. */
#include "fetch.h"
#include "common/clock.h"
#include "resolve.h"
#include "transfer.h"
#include <errno.h>
#include <sys/socket.h>

#define TICK_US          (50 * USEC_PER_MSEC)
#define POLL_MS          100
#define RETRY_BASE_US    (250 * USEC_PER_MSEC)
#define USER_AGENT_BYTES 400

struct fetch {
    struct run *run;
    CURLM *multi;
    struct resolver *resolver;
    struct transfer *transfers; /* transfers[transfers_n] */
    int transfers_n;
    struct transfer *free;
    int active;
    struct transfer *privileged; /* may go over the byte budget, so that one always ends */
    _Atomic size_t bytes;        /* bodies held anywhere */
    _Atomic bool idle;
    int64_t next_tick_us;
    int unreached_n;
    bool reached;        /* once somebody answered, the network is there */
    const char *ca_file; /* SSL_CERT_FILE, as OpenSSL's own programs read it; NULL: the system's */
    char user_agent[USER_AGENT_BYTES];
};

static void begin_hop(struct fetch *f, struct transfer *t, struct str raw_url);

void fetch_wake(struct fetch *f, bool always)
{
    if (always || f->idle) {
        (void)curl_multi_wakeup(f->multi);
    }
}

void fetch_release(struct fetch *f, size_t n)
{
    size_t before = atomic_fetch_sub(&f->bytes, n);
    ASSERT(before >= n);
    if (before > RUN_BODIES_BYTES_MAX / 2) {
        (void)curl_multi_wakeup(f->multi);
    }
}

bool fetch_new(struct run *run, struct fetch **ret, struct err *err)
{
    struct fetch *f = xcalloc(1, sizeof *f);
    f->run = run;
    f->multi = curl_multi_init();
    f->ca_file = getenv("SSL_CERT_FILE");
    ASSERT(f->multi != NULL);
    (void)curl_multi_setopt(f->multi, CURLMOPT_MAXCONNECTS, (long)FETCH_CONNECTIONS_KEPT);
    (void)curl_multi_setopt(f->multi, CURLMOPT_PIPELINING, 0L);
    if (!resolver_new(run->o->dns, &f->resolver, err)) {
        fetch_free(f);
        return false;
    }
    const char *token = run->o->user_agent_token;
    (void)snprintf(f->user_agent, sizeof f->user_agent,
                   "Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:72.0) Gecko/20100101 Firefox/72.0"
                   "%s%.100s%s",
                   token[0] != '\0' ? " (compatible; " : "", token,
                   token[0] != '\0' ? "; +https://github.com/rom1504/img2dataset)" : "");
    f->transfers_n = (int)run->o->thread_count;
    f->transfers = xcalloc((size_t)f->transfers_n, sizeof *f->transfers);
    for (int i = f->transfers_n - 1; i >= 0; i--) {
        struct transfer *t = &f->transfers[i];
        t->fetch = f;
        buf_init(&t->body, IMAGE_BODY_BYTES_MAX);
        t->next = f->free;
        f->free = t;
    }
    *ret = f;
    return true;
}

void fetch_free(struct fetch *f)
{
    if (f == NULL) {
        return;
    }
    for (int i = 0; i < f->transfers_n; i++) {
        curl_easy_cleanup(f->transfers[i].easy);
        curl_slist_free_all(f->transfers[i].connect_to);
        url_done(&f->transfers[i].url);
        buf_done(&f->transfers[i].body);
    }
    free(f->transfers);
    resolver_free(f->resolver);
    (void)curl_multi_cleanup(f->multi);
    free(f);
}

/* --- the end of a transfer
 * ------------------------------------------------------------------------ */

static void drop_body(struct fetch *f, struct transfer *t)
{
    atomic_fetch_sub(&f->bytes, t->body.n);
    buf_reset(&t->body);
}

static struct sample *detach(struct fetch *f, struct transfer *t)
{
    struct sample *s = TAKE(t->sample);
    if (f->privileged == t) {
        f->privileged = NULL;
    }
    url_done(&t->url);
    t->state = TRANSFER_IDLE;
    t->next = f->free;
    f->free = t;
    f->active--;
    return s;
}

static void end_failed(struct fetch *f, struct transfer *t, const char *text)
{
    drop_body(f, t);
    struct sample *s = detach(f, t);
    sample_fail(s, STATUS_FAILED_TO_DOWNLOAD, "%s", text);
    if (!queue_push_now(f->run->queue_results, &s->item, sizeof *s)) {
        sample_free(s);
    }
}

static void end_ok(struct fetch *f, struct transfer *t)
{
    struct sample *s = detach(f, t);
    s->body_n = t->body.n;
    s->body = (uint8_t *)buf_take(&t->body);
    if (!queue_push_now(f->run->queue_bodies, &s->item, s->body_n)) {
        atomic_fetch_sub(&f->bytes, s->body_n);
        sample_free(s);
    }
}

/* Nothing has answered yet, and enough was tried: say so instead of writing shards of failures. */
static void judge_network(struct fetch *f, bool unreached)
{
    f->reached = f->reached || !unreached;
    if (!f->reached && ++f->unreached_n == FETCH_NETWORK_TRIED) {
        struct err err = ERR_INIT;
        (void)err_set(&err, ERR_NETWORK,
                      "not one of the first %d URLs could be connected to: no network, or no DNS",
                      FETCH_NETWORK_TRIED);
        run_fail(f->run, &err);
    }
}

static void act(struct fetch *f, struct transfer *t, const struct verdict *v)
{
    int64_t now = clock_mono_us();
    switch (v->kind) {
    case VERDICT_OK:
        judge_network(f, false);
        end_ok(f, t);
        return;
    case VERDICT_REDIRECT: {
        drop_body(f, t);
        char *next = xstrdup(v->location);
        begin_hop(f, t, str_of(next));
        free(next);
        return;
    }
    case VERDICT_TRANSIENT:
        if (t->tries < (int)f->run->o->retries) {
            drop_body(f, t);
            t->tries++;
            t->redirects = 0;
            t->wait_until_us = now + (RETRY_BASE_US << MIN(t->tries, 5));
            t->state = TRANSFER_WAITING;
            return;
        }
        judge_network(f, v->unreached);
        end_failed(f, t, v->text);
        return;
    case VERDICT_FAILED:
        judge_network(f, v->unreached);
        end_failed(f, t, v->text);
        return;
    }
}

/* --- callbacks of curl
 * ------------------------------------------------------------------------------ */

static size_t on_header(char *p, size_t size UNUSED, size_t n, void *ctx)
{
    struct transfer *t = ctx;
    transfer_header(t, (struct str){p, n}, &t->fetch->run->o->robots);
    return n;
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
    if (t->body.n + n > IMAGE_BODY_BYTES_MAX) {
        t->too_large = true;
        return 0;
    }
    if (f->bytes + n > RUN_BODIES_BYTES_MAX && f->privileged != t) {
        if (f->privileged != NULL) {
            t->paused_us = clock_mono_us();
            return CURL_WRITEFUNC_PAUSE;
        }
        f->privileged = t;
    }
    buf_add(&t->body, p, n);
    atomic_fetch_add(&f->bytes, n);
    return n;
}

/* The last word on where a socket goes: curl hands over the address it is about to connect to. */
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

/* --- starting
 * ------------------------------------------------------------------------------------- */

static void start_curl(struct fetch *f, struct transfer *t)
{
    int64_t left_ms = (t->deadline_us - clock_mono_us()) / USEC_PER_MSEC;
    char addr[ADDR_TEXT_BYTES];
    char to[ADDR_TEXT_BYTES + 16];
    const struct net_addr *a = &t->addrs[t->addr_i];
    addr_format(a, addr);
    (void)snprintf(to, sizeof to, a->family == AF_INET6 ? "::[%s]:%d" : "::%s:%d", addr,
                   t->url.port);
    if (t->easy == NULL) {
        t->easy = curl_easy_init();
        ASSERT(t->easy != NULL);
    }
    curl_slist_free_all(t->connect_to);
    t->connect_to = curl_slist_append(NULL, to);
    transfer_reset_hop(t);
    CURL *e = t->easy;
    curl_easy_reset(e);
    (void)curl_easy_setopt(e, CURLOPT_URL, t->url.text);
    (void)curl_easy_setopt(e, CURLOPT_CONNECT_TO, t->connect_to);
    (void)curl_easy_setopt(e, CURLOPT_PRIVATE, t);
    (void)curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(e, CURLOPT_PROXY, "");
    (void)curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(e, CURLOPT_USERAGENT, f->user_agent);
    (void)curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)MAX(left_ms, 1));
    (void)curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)MAX(left_ms, 1));
    (void)curl_easy_setopt(e, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)IMAGE_BODY_BYTES_MAX);
    /* Debian's curl parses the CA folder for each connection unless it is told there is none. */
    (void)curl_easy_setopt(e, CURLOPT_CAPATH, NULL);
    if (f->ca_file != NULL) {
        (void)curl_easy_setopt(e, CURLOPT_CAINFO, f->ca_file);
    }
    (void)curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(e, CURLOPT_HEADERDATA, t);
    (void)curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_data);
    (void)curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
    (void)curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, on_socket);
    (void)curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, t);
    t->state = TRANSFER_RUNNING;
    CURLMcode rc = curl_multi_add_handle(f->multi, e);
    ASSERT(rc == CURLM_OK);
}

static void fail(struct fetch *f, struct transfer *t, enum verdict_kind kind, const char *text)
{
    struct verdict v = {.kind = kind, .unreached = kind == VERDICT_TRANSIENT};
    (void)snprintf(v.text, sizeof v.text, "%s", text);
    act(f, t, &v);
}

/* Every address is checked before one is used: a name that leads inside is refused even when it
 * has a public address too. */
static void on_resolved(void *ctx, const struct resolve_answer *answer)
{
    struct transfer *t = ctx;
    struct fetch *f = t->fetch;
    if (answer->status != RESOLVE_OK || answer->n == 0) {
        fail(f, t, answer->status == RESOLVE_TEMPORARY ? VERDICT_TRANSIENT : VERDICT_FAILED,
             transfer_resolve_text(answer->status));
        return;
    }
    for (int i = 0; i < answer->n; i++) {
        if (!addr_is_allowed(&f->run->o->rules, &answer->addrs[i], t->url.port)) {
            fail(f, t, VERDICT_FAILED, TRANSFER_BLOCKED_TEXT);
            return;
        }
    }
    memcpy(t->addrs, answer->addrs, sizeof t->addrs);
    t->addrs_n = answer->n;
    t->addr_i = 0;
    start_curl(f, t);
}

static void begin_hop(struct fetch *f, struct transfer *t, struct str raw_url)
{
    char why[URL_WHY_BYTES];
    url_done(&t->url);
    if (!url_parse(raw_url, &t->url, why)) {
        fail(f, t, VERDICT_FAILED, why);
        return;
    }
    t->state = TRANSFER_RESOLVING;
    struct resolve_answer literal = {.status = RESOLVE_OK, .n = 1};
    if (addr_parse_host(t->url.host, &literal.addrs[0])) {
        on_resolved(t, &literal);
    } else {
        resolver_lookup(f->resolver, t->url.host, on_resolved, t);
    }
}

static void begin(struct fetch *f, struct transfer *t)
{
    const struct cell *c = &t->sample->cells[f->run->columns->url_i];
    t->deadline_us = clock_mono_us() + f->run->o->timeout_s * USEC_PER_SEC;
    begin_hop(f, t, c->kind == CELL_TEXT ? c->s : STR(""));
}

static bool take_rows(struct fetch *f)
{
    bool any = false;
    while (f->free != NULL && f->bytes < RUN_BODIES_BYTES_MAX) {
        struct sample *s = sample_of(queue_pop(f->run->queue_rows, false));
        if (s == NULL) {
            break;
        }
        struct transfer *t = f->free;
        f->free = t->next;
        f->active++;
        t->sample = s;
        t->redirects = 0;
        t->tries = 0;
        any = true;
        begin(f, t);
    }
    f->idle = f->free != NULL;
    return any;
}

/* --- the loop
 * --------------------------------------------------------------------------------------- */

static void take_messages(struct fetch *f)
{
    int left;
    for (CURLMsg *m = curl_multi_info_read(f->multi, &left); m != NULL;
         m = curl_multi_info_read(f->multi, &left)) {
        if (m->msg != CURLMSG_DONE) {
            continue;
        }
        CURL *e = m->easy_handle;
        CURLcode rc = m->data.result;
        void *p = NULL;
        (void)curl_easy_getinfo(e, CURLINFO_PRIVATE, &p);
        struct transfer *t = p;
        (void)curl_multi_remove_handle(f->multi, e);
        if (rc == CURLE_COULDNT_CONNECT && !t->blocked && t->addr_i + 1 < t->addrs_n) {
            t->addr_i++;
            start_curl(f, t);
            continue;
        }
        struct verdict v;
        transfer_judge(t, rc, &v);
        act(f, t, &v);
    }
}

static void tick(struct fetch *f)
{
    int64_t now = clock_mono_us();
    if (now < f->next_tick_us) {
        return;
    }
    f->next_tick_us = now + TICK_US;
    bool room = f->bytes < RUN_BODIES_BYTES_MAX;
    for (int i = 0; i < f->transfers_n; i++) {
        struct transfer *t = &f->transfers[i];
        if (t->state == TRANSFER_RESOLVING && now >= t->deadline_us) {
            resolver_cancel(f->resolver, t->url.host, t);
            fail(f, t, VERDICT_TRANSIENT, transfer_resolve_text(RESOLVE_TEMPORARY));
        } else if (t->state == TRANSFER_WAITING && now >= t->wait_until_us) {
            begin(f, t);
        } else if (t->state == TRANSFER_RUNNING && t->paused_us != 0 &&
                   (room || f->privileged == NULL)) {
            int64_t left_ms = (t->deadline_us - now) / USEC_PER_MSEC;
            t->deadline_us += now - t->paused_us; /* the wait was ours */
            left_ms += (now - t->paused_us) / USEC_PER_MSEC;
            t->paused_us = 0;
            (void)curl_easy_setopt(t->easy, CURLOPT_TIMEOUT_MS,
                                   (long)MAX(left_ms, 1) + transfer_age_ms(t, now));
            (void)curl_easy_pause(t->easy, CURLPAUSE_CONT);
        }
    }
}

static void cancel_all(struct fetch *f)
{
    for (int i = 0; i < f->transfers_n; i++) {
        struct transfer *t = &f->transfers[i];
        if (t->state == TRANSFER_RESOLVING) {
            resolver_cancel(f->resolver, t->url.host, t);
        } else if (t->state == TRANSFER_RUNNING) {
            (void)curl_multi_remove_handle(f->multi, t->easy);
        }
        if (t->state != TRANSFER_IDLE) {
            drop_body(f, t);
            sample_free(detach(f, t));
        }
    }
}

void *fetch_main(void *arg)
{
    struct fetch *f = arg;
    for (;;) {
        int running;
        int timeout_ms = POLL_MS;
        struct curl_waitfd fds[RESOLVE_FDS_MAX];
        if (run_stopping(f->run)) {
            cancel_all(f);
            break;
        }
        resolver_process(f->resolver);
        (void)curl_multi_perform(f->multi, &running);
        take_messages(f);
        tick(f);
        if (take_rows(f)) {
            continue; /* curl starts them in the next perform */
        }
        if (f->active == 0 && queue_ended(f->run->queue_rows)) {
            break;
        }
        unsigned n = resolver_fds(f->resolver, fds, &timeout_ms);
        (void)curl_multi_poll(f->multi, fds, n, timeout_ms, NULL);
    }
    queue_close(f->run->queue_bodies);
    return NULL;
}
