/* A transfer's life: idle -> resolving -> running -> (redirect: resolving | retry: waiting |
 * next address: running)* -> idle; and before each hop it waits for its host's turn, without a
 * transfer if it is the first hop (the row is parked with the host). All of it happens on the
 * fetch thread; other threads only release bytes and wake it. The answer of a transfer is judged
 * in transfer.c. */
#include "fetch.h"
#include "common/clock.h"
#include "fetch_curl.h"
#include "tls_context.h"

#define TICK_US       (50 * USEC_PER_MSEC)
#define LATE_US       (100 * USEC_PER_MSEC)
#define RETRY_BASE_US (250 * USEC_PER_MSEC)
#define FREED_BYTES   (1u << 20) /* worth a wake */
#define HANDED_LOW    (8u << 20) /* decoders might run out of work */

static void begin_hop(struct fetch *f, struct transfer *t, struct str raw_url);

void fetch_wake(struct fetch *f, bool always)
{
    if (always || f->idle) {
        loop_wake(f->io.loop);
    }
}

void fetch_release(struct fetch *f, size_t n)
{
    size_t before = atomic_fetch_sub(&f->bytes, n);
    size_t handed = atomic_fetch_sub(&f->handed, n);
    size_t freed = atomic_fetch_add(&f->freed, n) + n;
    ASSERT(before >= n && handed >= n);
    /* Not for each body: its next tick will see it anyway. */
    if ((f->full || before > PIPELINE_BODIES_BYTES_MAX / 2) &&
        (freed >= FREED_BYTES || handed < HANDED_LOW)) {
        f->freed = 0;
        loop_wake(f->io.loop);
    }
}

/* Something came for it: a connection, a step of TLS, bytes. */
static void on_heard(void *private)
{
    struct transfer *t = private;
    t->heard = true;
}

bool fetch_new(struct pipeline *run, int lane, struct fetch_shared *shared, struct fetch **ret,
               struct err *err)
{
    struct fetch *f = xcalloc(1, sizeof *f);
    f->run = run;
    f->ca_file = getenv("SSL_CERT_FILE");
    f->lane = lane;
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
    f->active_max = run->transfers / run->lanes + (lane < run->transfers % run->lanes ? 1 : 0);
    f->transfers_n = f->active_max * FETCH_STALLED_FACTOR;
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
    fetch_io_done(&f->io);
    own_time_done(&f->own);
    free(f);
}

/* --- the end of a transfer
 * ------------------------------------------------------------------------ */

static void drop_body(struct fetch *f, struct transfer *t)
{
    atomic_fetch_sub(&f->bytes, t->body.n);
    buf_reset(&t->body);
}

static void leave_host(struct fetch *f, struct transfer *t, enum host_outcome outcome)
{
    if (t->host != NULL) {
        hosts_leave(f->hosts, TAKE(t->host), outcome, clock_mono_us());
        f->unpark = true;
    }
}

static struct sample *detach(struct fetch *f, struct transfer *t)
{
    struct sample *s = TAKE(t->sample);
    leave_host(f, t, HOST_UNDECIDED);
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

static void row_failed(struct fetch *f, struct sample *s, const char *text)
{
    sample_fail(s, STATUS_FAILED_TO_DOWNLOAD, "%s", text);
    if (!queue_push_now(f->run->queue_results, &s->item, sizeof *s)) {
        sample_free(s);
    }
}

static void end_failed(struct fetch *f, struct transfer *t, const char *text)
{
    drop_body(f, t);
    row_failed(f, detach(f, t), text);
}

static void end_ok(struct fetch *f, struct transfer *t)
{
    struct sample *s = detach(f, t);
    s->body_n = t->body.n;
    f->mean_body = (15 * f->mean_body + s->body_n) / 16;
    s->body = (uint8_t *)buf_take(&t->body);
    atomic_fetch_add(&f->handed, s->body_n);
    if (!queue_push_now(f->run->queue_bodies, &s->item, s->body_n)) {
        atomic_fetch_sub(&f->handed, s->body_n);
        atomic_fetch_sub(&f->bytes, s->body_n);
        sample_free(s);
    }
}

/* Nothing has answered yet, and enough was tried: say so instead of writing shards of failures. */
static void judge_network(struct fetch *f, bool unreached)
{
    struct fetch_shared *s = f->shared;
    if (!unreached) {
        s->reached = true;
    }
    if (!s->reached && ++s->unreached_n == FETCH_NETWORK_TRIED) {
        struct err err = ERR_INIT;
        (void)err_set(&err, ERR_NETWORK,
                      "not one of the first %d URLs could be connected to: no network, or no DNS",
                      FETCH_NETWORK_TRIED);
        pipeline_fail(f->run, &err);
    }
}

/* Twice as long each time, and no two of them in step. */
static int64_t backoff_us(const struct transfer *t)
{
    int64_t step_us = RETRY_BASE_US << MIN(t->tries, 5);
    int64_t jitter = ((int64_t)t->sample->row_i * 7919 + t->tries * 104729) % 1000;
    return step_us / 2 + step_us * jitter / 1000;
}

/* Whoever asks for more patience than we have is not asked again. */
static bool may_retry(const struct fetch *f, const struct transfer *t)
{
    return t->tries < (int)f->run->o->retries &&
           t->retry_after_us <= MAX(f->run->o->timeout_s * USEC_PER_SEC, HOST_PAUSE_MAX_US);
}

static void act(struct fetch *f, struct transfer *t, const struct verdict *v)
{
    int64_t now = clock_mono_us();
    if (t->host != NULL && t->retry_after_us > 0) {
        hosts_pause(f->hosts, t->host, now, t->retry_after_us);
    }
    leave_host(f, t, v->silent ? HOST_FAILED : t->status > 0 ? HOST_ANSWERED : HOST_UNDECIDED);
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
        if (may_retry(f, t)) {
            drop_body(f, t);
            t->wait_until_us = now + MAX(backoff_us(t), t->retry_after_us);
            t->tries++;
            t->redirects = 0;
            t->state = TRANSFER_WAITING;
            t->again = true;
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

/* --- starting ------------------------------------------------------------------------------- */

static void fail(struct fetch *f, struct transfer *t, enum verdict_kind kind, const char *text)
{
    struct verdict v = {
        .kind = kind, .unreached = kind == VERDICT_TRANSIENT, .silent = kind == VERDICT_TRANSIENT};
    t->status = 0;
    t->retry_after_us = 0;
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

/* A row that holds nothing yet was parked by its host; a redirect or a retry keeps its transfer and
 * asks again. Our limit on a host is not its fault, the pause it asked for is. */
static void wait_turn(struct fetch *f, struct transfer *t, bool parked, bool ours, int64_t now)
{
    if (parked) {
        (void)detach(f, t); /* the row may be another thread's by now */
        return;
    }
    t->state = TRANSFER_WAITING;
    t->again = false;
    t->wait_is_ours = ours;
    t->wait_until_us = now + TICK_US;
}

/* The hop whose url is set, when its host lets it. */
static void enter(struct fetch *f, struct transfer *t)
{
    int64_t now = clock_mono_us();
    struct host *h = NULL;
    bool fresh = t->tries == 0 && t->redirects == 0;
    switch (
        hosts_enter(f->hosts, t->url.host, t->url.port, now, fresh ? &t->sample->item : NULL, &h)) {
    case HOST_GO:
        t->host = h;
        if (t->deadline_us == 0) {
            t->begun_us = now;
            t->deadline_us = now + f->run->o->timeout_s * USEC_PER_SEC;
            t->excused_us = 0;
        }
        resolve(f, t);
        return;
    case HOST_WAIT:
        wait_turn(f, t, fresh, true, now);
        return;
    case HOST_REST:
        if (!fresh && t->deadline_us != 0 && now >= t->deadline_us) {
            break;
        }
        wait_turn(f, t, fresh, false, now);
        return;
    case HOST_AWAY:
        end_failed(f, t, "host asked to be left alone (Retry-After), not tried");
        return;
    case HOST_DOWN:
        end_failed(f, t, "host has stopped answering, not tried");
        return;
    }
    fail(f, t, VERDICT_FAILED, "timed out");
}

static void begin_hop(struct fetch *f, struct transfer *t, struct str raw_url)
{
    char why[URL_WHY_BYTES];
    url_done(&t->url);
    if (!url_parse(raw_url, &t->url, why)) {
        fail(f, t, VERDICT_FAILED, why);
        return;
    }
    enter(f, t);
}

/* A try from its first hop; the deadline runs from when its host has room for it. */
static void begin(struct fetch *f, struct transfer *t)
{
    const struct cell *c = &t->sample->cells[f->run->columns->url_i];
    t->deadline_us = 0;
    begin_hop(f, t, c->kind == CELL_TEXT ? c->s : STR("None")); /* as Python calls a null */
}

static struct sample *next_row(struct fetch *f)
{
    if (f->unpark && hosts_parked(f->hosts) > 0) {
        struct sample *s = sample_of(hosts_unpark(f->hosts, clock_mono_us()));
        if (s != NULL) {
            return s;
        }
        f->unpark = false;
    }
    return hosts_parked(f->hosts) < FETCH_PARKED_MAX
               ? sample_of(queue_pop(f->run->queue_rows[f->lane], false))
               : NULL;
}

/* Those that get nothing from their hosts do not stand in the way of others. */
static bool has_slot(const struct fetch *f)
{
    return f->free != NULL && f->active - f->stalled < f->active_max;
}

/* Room for the bodies under way, half of each still to come, so that they need not pause. */
static bool has_room(const struct fetch *f)
{
    size_t coming = (size_t)(f->active - f->stalled) * (f->mean_body / 2);
    return f->bytes < PIPELINE_BODIES_BYTES_MAX &&
           (f->active == f->stalled || f->bytes + coming < PIPELINE_BODIES_BYTES_MAX);
}

static bool take_rows(struct fetch *f)
{
    bool any = false;
    while (has_slot(f) && has_room(f)) {
        struct sample *s = next_row(f);
        if (s == NULL) {
            break;
        }
        struct transfer *t = f->free;
        f->free = t->next;
        f->active++;
        s->lane = f->lane;
        t->sample = s;
        t->redirects = 0;
        t->tries = 0;
        any = true;
        begin(f, t);
    }
    f->idle = has_slot(f);
    f->full = f->idle && !has_room(f);
    return any;
}

/* --- the loop
 * --------------------------------------------------------------------------------------- */

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
    transfer_excuse(t, now - t->paused_us); /* the wait was ours */
    t->paused_us = 0;
    (void)curl_easy_pause(t->easy, CURLPAUSE_CONT);
    fetch_io_kick(&f->io);
}

static void time_out(struct fetch *f, struct transfer *t)
{
    struct verdict v;
    (void)curl_multi_remove_handle(f->io.multi, t->easy);
    transfer_judge(t, CURLE_OPERATION_TIMEDOUT, &v);
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
            resolver_cancel(f->resolver, t->url.host, t);
            fail(f, t, VERDICT_TRANSIENT, transfer_resolve_text(RESOLVE_TEMPORARY));
        }
        return;
    case TRANSFER_WAITING:
        if (now >= t->wait_until_us && t->again) {
            begin(f, t);
        } else if (now >= t->wait_until_us) {
            if (t->wait_is_ours) {
                transfer_excuse(t, now - t->wait_until_us + TICK_US);
            }
            enter(f, t);
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
            (void)curl_multi_remove_handle(f->io.multi, t->easy);
            fail(f, t, VERDICT_TRANSIENT, "timed out: less than 1 kB a second");
        }
        return;
    }
}

/* Time in which this thread got no processor is no host's fault. What it was at work may be time
 * for which an answer lay there until it was read; that is bounded, for a host can make us work. */
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
        t->deadline_us += starved_us; /* it counts as stalled all the same */
    }
    t->heard = false;
}

static void tick(struct fetch *f)
{
    int64_t began = clock_mono_us();
    if (began < f->next_tick_us) {
        return;
    }
    /* Nobody is judged by the clock before what has come is read. */
    fetch_io_drain(&f->io, f->active);
    take_messages(f);
    int64_t now = clock_mono_us();
    int64_t past_us = now - f->last_tick_us;
    int64_t worked_us;
    int64_t starved_us;
    own_time_take(&f->own, &worked_us, &starved_us);
    worked_us = MIN(worked_us, past_us);
    /* A process that was stopped was not waiting by the kernel's account. */
    starved_us = MIN(MAX(starved_us, past_us - TICK_US - worked_us), past_us - worked_us);
    starved_us = MAX(starved_us, 0);
    f->unpark = true;
    f->stalled = 0;
    for (int i = 0; i < f->transfers_n; i++) {
        excuse(f, &f->transfers[i], starved_us, worked_us);
        tick_one(f, &f->transfers[i], now);
        f->stalled += transfer_is_stalled(&f->transfers[i], now) ? 1 : 0;
    }
    f->last_tick_us = now;
    f->next_tick_us = now + TICK_US;
}

static void cancel_all(struct fetch *f)
{
    for (int i = 0; i < f->transfers_n; i++) {
        struct transfer *t = &f->transfers[i];
        if (t->state == TRANSFER_RESOLVING) {
            resolver_cancel(f->resolver, t->url.host, t);
        } else if (t->state == TRANSFER_RUNNING) {
            (void)curl_multi_remove_handle(f->io.multi, t->easy);
        }
        if (t->state != TRANSFER_IDLE) {
            drop_body(f, t);
            sample_free(detach(f, t));
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
        if (f->active == 0 && hosts_parked(f->hosts) == 0 &&
            queue_ended(f->run->queue_rows[f->lane])) {
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
