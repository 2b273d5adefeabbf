/* A transfer's states: idle -> resolving -> running -> (redirect: resolving | next address:
 * running)* -> idle. A row that waits for its host or its next attempt holds no transfer: it is
 * parked with its host or in the list `later`. Everything happens on the fetch thread; other
 * threads only release bytes and wake it. transfer.c judges the answer; fetch_rows.c decides what
 * its end means for the row. */
#include "fetch.h"
#include "common/clock.h"
#include "fetch_curl.h"
#include "fetch_rows.h"
#include "tls_context.h"

#define TICK_US     (50 * USEC_PER_MSEC)
#define LATE_US     (100 * USEC_PER_MSEC)
#define FREED_BYTES (1u << 20) /* enough bytes for a wake */
#define HANDED_LOW  (8u << 20) /* decoders may run out of work */
/* Bodies that a decoding process works on for a tenth to a fifth of a second. While so much waits
 * for it, three times as much is held at most: memory that is touched for the first time costs
 * more than to wait for a body, and what was just received is still in the cache. */
#define PLENTY_BYTES ((size_t)4 << 20)
#define HELD_FACTOR  3

void fetch_wake(struct fetch *f, bool always)
{
    if (always || f->idle) {
        loop_wake(f->io.loop);
    }
}

static size_t bytes_max(const struct fetch *f)
{
    size_t held = f->handed < f->plenty ? PIPELINE_BODIES_BYTES_MAX : HELD_FACTOR * f->plenty;
    return MIN(held, PIPELINE_BODIES_BYTES_MAX);
}

void fetch_release(struct fetch *f, size_t n)
{
    size_t before = atomic_fetch_sub(&f->bytes, n);
    size_t handed = atomic_fetch_sub(&f->handed, n);
    size_t freed = atomic_fetch_add(&f->freed, n) + n;
    ASSERT(before >= n && handed >= n);
    /* Do not wake it for each body: the next tick sees it. */
    if ((f->full || before > bytes_max(f) / 2) && (freed >= FREED_BYTES || handed < HANDED_LOW)) {
        f->freed = 0;
        loop_wake(f->io.loop);
    }
}

/* Progress of a transfer: a connection, a TLS step, bytes. */
static void on_heard(void *private)
{
    struct transfer *t = private;
    t->heard = true;
}

bool fetch_new(struct pipeline *run, int fetch_thread, struct fetch_shared *shared,
               struct fetch **ret, struct err *err)
{
    struct fetch *f = xcalloc(1, sizeof *f);
    f->run = run;
    f->ca_file = getenv("SSL_CERT_FILE");
    f->fetch_thread = fetch_thread;
    f->shared = shared;
    f->hosts = shared->hosts;
    f->own.fd = -1;
    if (!fetch_io_init(&f->io, on_heard, err) ||
        !resolver_new(f->io.loop, run->o->dns, &f->resolver, err)) {
        fetch_free(f);
        return false;
    }
    const char *token = run->o->user_agent_token;
    (void)snprintf(f->user_agent, sizeof f->user_agent,
                   "Mozilla/5.0 (compatible; drover-worker/1.0; image dataset download%s%.100s)",
                   token[0] != '\0' ? "; " : "", token);
    f->plenty = PLENTY_BYTES * (size_t)MAX(run->o->processes_count / run->fetch_threads_n, 1);
    f->active_max = run->transfers / run->fetch_threads_n +
                    (fetch_thread < run->transfers % run->fetch_threads_n ? 1 : 0);
    f->transfers_n = f->active_max * FETCH_YIELDING_FACTOR;
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
    fetch_rows_free(f);
    free(f->transfers);
    resolver_free(f->resolver);
    fetch_io_done(&f->io);
    own_time_done(&f->own);
    free(f);
}

static void fail(struct fetch *f, struct transfer *t, enum verdict_kind kind, const char *text)
{
    bool silent = kind == VERDICT_TRANSIENT;
    struct verdict v = {.kind = kind, .reach = silent ? REACH_NO : REACH_UNTRIED, .silent = silent};
    t->status = 0;
    t->retry_after_us = 0;
    (void)snprintf(v.text, sizeof v.text, "%s", text);
    bool hop = fetch_rows_act(f, t, &v);
    ASSERT(!hop);
}

/* Every address is checked before one is used: a name with a private address is refused even when
 * it also has a public one. */
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
    fetch_curl_start(f, t);
}

static void resolve(struct fetch *f, struct transfer *t)
{
    t->state = TRANSFER_RESOLVING;
    struct resolve_answer literal = {.status = RESOLVE_OK, .n = 1};
    if (addr_parse_host(t->url.host, &literal.addrs[0])) {
        on_resolved(t, &literal);
    } else {
        resolver_lookup(f->resolver, t->url.host, on_resolved, t);
    }
}

/* Start the hop in t->url if its host has room; else park its row and free the transfer. */
static void enter(struct fetch *f, struct transfer *t)
{
    int64_t now = clock_mono_us();
    struct fetch_place *place = &t->sample->place;
    struct host *h = NULL;
    if (t->deadline_us != 0) {
        place->left_us = MAX(t->deadline_us - now, (int64_t)1);
    }
    switch (hosts_enter(f->hosts, t->url.host, t->url.port, now, &t->sample->item, &h)) {
    case HOST_GO:
        t->host = h;
        t->hop_us = now;
        t->begun_us = now;
        if (t->deadline_us == 0) {
            int64_t whole_us = f->run->o->timeout_s * USEC_PER_SEC;
            t->deadline_us = now + (place->left_us != 0 ? place->left_us : whole_us);
            t->excused_us = 0;
        }
        resolve(f, t);
        return;
    case HOST_WAIT:
    case HOST_REST:
        (void)fetch_rows_detach(f, t); /* the row may belong to another thread now */
        return;
    case HOST_AWAY:
        fetch_rows_fail(f, t, "host asked to be left alone (Retry-After), not tried");
        return;
    case HOST_DOWN:
        fetch_rows_fail(f, t, FETCH_DOWN_TEXT);
        return;
    }
}

/* Start or continue the transfer of t->sample. */
static void begin(struct fetch *f, struct transfer *t)
{
    char why[URL_WHY_BYTES];
    const struct sample *s = t->sample;
    const struct cell *c = &s->cells[f->run->columns->url_i];
    /* the text Python's urllib has for a null URL */
    struct str own = c->kind == CELL_TEXT ? c->s : STR("None");
    url_done(&t->url);
    if (!url_parse(s->place.hop != NULL ? str_of(s->place.hop) : own, &t->url, why)) {
        fail(f, t, VERDICT_FAILED, why);
        return;
    }
    enter(f, t);
}

static void act(struct fetch *f, struct transfer *t, const struct verdict *v)
{
    if (fetch_rows_act(f, t, v)) {
        begin(f, t);
    }
}

/* A stalled transfer counts as open, unless it yields (hosts_stalled). */
static bool has_slot(const struct fetch *f)
{
    return f->free != NULL && f->active - f->yielding < f->active_max;
}

/* True when there is room for the bodies in progress (half of each still to come), so that they
 * need not pause. */
static bool has_room(const struct fetch *f)
{
    size_t coming = (size_t)(f->active - f->yielding) * (f->mean_body / 2);
    size_t most = bytes_max(f);
    return f->bytes < most && (f->active == f->yielding || f->bytes + coming < most);
}

static bool take_rows(struct fetch *f)
{
    bool any = false;
    bool away = hosts_network_is_away(f->hosts);
    while (has_slot(f) && has_room(f) && !(away && any)) {
        if (away && !hosts_may_begin(f->hosts, clock_mono_us())) {
            break;
        }
        struct sample *s = fetch_rows_next(f);
        if (s == NULL) {
            break;
        }
        struct transfer *t = f->free;
        f->free = t->next;
        f->active++;
        s->fetch_thread = f->fetch_thread;
        t->sample = s;
        t->deadline_us = 0;
        any = true;
        begin(f, t);
    }
    f->idle = has_slot(f);
    f->full = f->idle && !has_room(f);
    return any;
}

static void take_messages(struct fetch *f)
{
    int left;
    for (CURLMsg *m = curl_multi_info_read(f->io.multi, &left); m != NULL;
         m = curl_multi_info_read(f->io.multi, &left)) {
        if (m->msg != CURLMSG_DONE) {
            continue;
        }
        CURL *e = m->easy_handle;
        CURLcode rc = m->data.result;
        void *p = NULL;
        (void)curl_easy_getinfo(e, CURLINFO_PRIVATE, &p);
        struct transfer *t = p;
        (void)curl_multi_remove_handle(f->io.multi, e);
        if (rc == CURLE_COULDNT_CONNECT && !t->blocked && t->addr_i + 1 < t->addrs_n) {
            t->addr_i++;
            fetch_curl_start(f, t);
            continue;
        }
        struct verdict v;
        transfer_judge(t, rc, &v);
        act(f, t, &v);
    }
}

static void unpause(struct fetch *f, struct transfer *t, int64_t now)
{
    transfer_excuse(t, now - t->paused_us); /* we paused it ourselves */
    t->paused_us = 0;
    (void)curl_easy_pause(t->easy, CURLPAUSE_CONT);
    fetch_io_kick(&f->io);
}

/* Remove t from curl and the resolver. */
static void cancel(struct fetch *f, struct transfer *t)
{
    if (t->state == TRANSFER_RESOLVING) {
        resolver_cancel(f->resolver, t->url.host, t);
    } else {
        (void)curl_multi_remove_handle(f->io.multi, t->easy);
    }
}

static void time_out(struct fetch *f, struct transfer *t)
{
    struct verdict v;
    cancel(f, t);
    if (t->state == TRANSFER_RESOLVING) {
        fail(f, t, VERDICT_TRANSIENT, transfer_resolve_text(RESOLVE_TEMPORARY));
        return;
    }
    transfer_judge(t, CURLE_OPERATION_TIMEDOUT, &v);
    act(f, t, &v);
}

/* The body dripped. */
static void give_up_slow(struct fetch *f, struct transfer *t)
{
    struct verdict v = {.kind = VERDICT_TRANSIENT, .reach = REACH_YES, .drips = true};
    cancel(f, t);
    (void)snprintf(v.text, sizeof v.text, "timed out: less than 1 kB a second");
    act(f, t, &v);
}

static void tick_one(struct fetch *f, struct transfer *t, int64_t now)
{
    switch (t->state) {
    case TRANSFER_IDLE:
        return;
    case TRANSFER_RESOLVING:
        if (resolver_is_queued(f->resolver, t->url.host)) {
            transfer_excuse(t, now - f->last_tick_us);
        } else if (now >= t->deadline_us) {
            time_out(f, t);
        }
        return;
    case TRANSFER_RUNNING:
        if (t->paused_us != 0) {
            if (f->bytes < PIPELINE_BODIES_BYTES_MAX || fetch_curl_may_go_over(f, t)) {
                unpause(f, t, now);
            }
        } else if (now >= t->deadline_us) {
            time_out(f, t);
        } else if (transfer_is_slow(t, now)) {
            give_up_slow(f, t);
        }
        return;
    }
}

/* True when t receives nothing and another may begin meanwhile. Only the one transfer of a host
 * that never answered yields: however many hosts fall silent at once, no more transfers wait for
 * them than are allowed. Once a host is known to be silent, all but one give up their place. */
static bool yields(struct fetch *f, struct transfer *t, int64_t now)
{
    if (!transfer_is_stalled(t, now)) {
        return false;
    }
    switch (hosts_stalled(f->hosts, t->host, t->hop_us)) {
    case HOST_STALL_YIELDS:
        return true;
    case HOST_STALL_COUNTS:
        return false;
    case HOST_STALL_GIVE:
        cancel(f, t);
        fetch_rows_park(f, t, "host has stopped answering");
        return false;
    case HOST_STALL_OVER:
        time_out(f, t);
        return false;
    }
    return false;
}

/* Time without a processor is not the host's fault. While the thread works, an answer may lie
 * unread; that time is bounded, because a host can make us work. */
static void excuse(struct fetch *f, struct transfer *t, int64_t starved_us, int64_t worked_us)
{
    int64_t most_us = FETCH_EXCUSED_FACTOR * f->run->o->timeout_s * USEC_PER_SEC - t->excused_us;
    if (t->heard) {
        worked_us = MIN(worked_us, MAX(most_us, 0));
        t->excused_us += worked_us;
        transfer_excuse(t, starved_us + worked_us);
    } else if (starved_us > LATE_US) {
        transfer_excuse(t, starved_us);
    } else if (t->deadline_us != 0) {
        t->deadline_us += starved_us; /* still counted as stalled */
    }
    t->heard = false;
}

static void tick(struct fetch *f)
{
    int64_t began = clock_mono_us();
    if (began < f->next_tick_us) {
        return;
    }
    /* Read everything that has arrived before any deadline is checked. */
    fetch_io_drain(&f->io, f->active);
    take_messages(f);
    int64_t now = clock_mono_us();
    int64_t past_us = now - f->last_tick_us;
    int64_t worked_us;
    int64_t starved_us;
    own_time_take(&f->own, &worked_us, &starved_us);
    worked_us = MIN(worked_us, past_us);
    /* The kernel does not count the time of a stopped process as waiting. */
    starved_us = MIN(MAX(starved_us, past_us - TICK_US - worked_us), past_us - worked_us);
    starved_us = MAX(starved_us, 0);
    f->unpark = true;
    f->yielding = 0;
    fetch_rows_tick(f, now);
    for (int i = 0; i < f->transfers_n; i++) {
        excuse(f, &f->transfers[i], starved_us, worked_us);
        tick_one(f, &f->transfers[i], now);
        f->yielding += yields(f, &f->transfers[i], now) ? 1 : 0;
    }
    f->last_tick_us = now;
    f->next_tick_us = now + TICK_US;
}

static void cancel_all(struct fetch *f)
{
    for (int i = 0; i < f->transfers_n; i++) {
        struct transfer *t = &f->transfers[i];
        if (t->state != TRANSFER_IDLE) {
            cancel(f, t);
            sample_free(fetch_rows_detach(f, t));
        }
    }
}

static void show_transfers(struct fetch *f, int n)
{
    f->run->progress.transfers += n - f->shown;
    f->shown = n;
}

void *fetch_main(void *arg)
{
    struct fetch *f = arg;
    own_time_init(&f->own);
    tls_context_begin();
    f->last_tick_us = clock_mono_us();
    for (;;) {
        if (pipeline_stopping(f->run)) {
            cancel_all(f);
            break;
        }
        take_messages(f);
        tick(f);
        bool begun = take_rows(f);
        show_transfers(f, f->active);
        if (f->active == 0 && fetch_rows_ended(f)) {
            break;
        }
        resolver_arm(f->resolver);
        fetch_io_pass(&f->io, begun ? 0 : MAX(f->next_tick_us - clock_mono_us(), 0));
    }
    show_transfers(f, 0);
    tls_context_end();
    if (--f->shared->running == 0) {
        queue_close(f->run->queue_bodies);
    }
    return NULL;
}
