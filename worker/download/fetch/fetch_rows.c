/* Where a row goes when it leaves its transfer. An attempt that failed while its host was silent to
 * everybody does not count: the row waits for the host, and hosts.h bounds that wait. */
#include "fetch_rows.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/retry.h"

#define RETRY_BASE_US (250 * USEC_PER_MSEC)
#define RETRY_CAP_US  (8 * USEC_PER_SEC)
#define COUNT_US      (1 * USEC_PER_SEC) /* between two log lines about waiting rows */
#define SAY_US        (60 * USEC_PER_SEC)
#define SAY_ROWS      1000 /* rows of one host that are worth a log line */

static void drop_body(struct fetch *f, struct transfer *t)
{
    atomic_fetch_sub(&f->bytes, t->body.n);
    buf_reset(&t->body);
}

static void leave_host(struct fetch *f, struct transfer *t, bool answered)
{
    if (t->host != NULL) {
        hosts_leave(f->hosts, TAKE(t->host), answered, NULL, clock_mono_us());
        f->unpark = true;
    }
}

struct sample *fetch_rows_detach(struct fetch *f, struct transfer *t)
{
    struct sample *s = TAKE(t->sample);
    drop_body(f, t);
    leave_host(f, t, false);
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
    char words[SAMPLE_ERROR_BYTES_MAX];
    (void)snprintf(words, sizeof words, "%s", text);
    sample_fail(s, STATUS_FAILED_TO_DOWNLOAD, "%s", words);
    if (!queue_push_now(f->run->queue_results, &s->item, sizeof *s)) {
        sample_free(s);
    }
}

void fetch_rows_fail(struct fetch *f, struct transfer *t, const char *text)
{
    struct sample *s = fetch_rows_detach(f, t);
    row_failed(f, s, s->error[0] != '\0' ? s->error : text);
}

static void end_ok(struct fetch *f, struct transfer *t)
{
    size_t n = t->body.n;
    uint8_t *body = (uint8_t *)buf_take(&t->body);
    struct sample *s = fetch_rows_detach(f, t);
    s->body = body;
    s->body_n = n;
    s->error[0] = '\0';
    f->mean_body = (15 * f->mean_body + n) / 16;
    atomic_fetch_add(&f->handed, n);
    if (!queue_push_now(f->run->queue_bodies, &s->item, n)) {
        atomic_fetch_sub(&f->handed, n);
        atomic_fetch_sub(&f->bytes, n);
        sample_free(s);
    }
}

/* Nothing has answered and enough was tried: stop instead of writing shards of failures. */
static void judge_network(struct fetch *f)
{
    struct fetch_shared *s = f->shared;
    if (!s->reached && ++s->unreached_n == FETCH_NETWORK_TRIED) {
        struct err err = ERR_INIT;
        (void)err_set(&err, ERR_NETWORK,
                      "not one of the first %d URLs could be connected to: no network, or no DNS",
                      FETCH_NETWORK_TRIED);
        pipeline_fail(f->run, &err);
    }
}

/* Doubled each time, with jitter. */
static int64_t backoff_us(const struct sample *s)
{
    int64_t step_us = retry_step_us(RETRY_BASE_US, RETRY_CAP_US, s->place.tries);
    int64_t jitter = ((int64_t)s->row_i * 7919 + s->place.tries * 104729) % 1000;
    return step_us / 2 + step_us * jitter / 1000;
}

/* Do not wait for a host that asks for a longer pause than our limit. */
static bool take_retry(const struct fetch *f, struct transfer *t)
{
    return t->retry_after_us <= MAX(f->run->o->timeout_s * USEC_PER_SEC, HOST_PAUSE_MAX_US) &&
           transfer_take_retry(t, f->run->o->retries);
}

static void set_hop(struct sample *s, const char *url)
{
    char *hop = url != NULL ? xstrdup(url) : NULL;
    free(s->place.hop);
    s->place.hop = hop;
}

static void wait_until(struct fetch *f, struct transfer *t, int64_t at_us)
{
    struct sample *s = fetch_rows_detach(f, t);
    s->place.left_us = 0;
    s->place.not_before_us = at_us;
    s->item.next = f->later;
    f->later = &s->item;
}

void fetch_rows_park(struct fetch *f, struct transfer *t, const char *text)
{
    struct host *h = TAKE(t->host);
    struct sample *s = fetch_rows_detach(f, t);
    (void)snprintf(s->error, sizeof s->error, "%s", text);
    s->place.left_us = 0;
    hosts_leave(f->hosts, h, false, &s->item, clock_mono_us());
    f->unpark = true;
}

/* An attempt failed: retry, or fail once the network is known to be up. */
static void act_on_failure(struct fetch *f, struct transfer *t, const struct verdict *v)
{
    int64_t now = clock_mono_us();
    struct sample *s = t->sample;
    int64_t wait_us = MAX(backoff_us(s), t->retry_after_us);
    if (v->kind == VERDICT_TRANSIENT && take_retry(f, t)) {
        s->place.redirects = 0;
        set_hop(s, NULL);
        wait_until(f, t, now + wait_us);
        return;
    }
    if (v->reach == REACH_NO) {
        judge_network(f);
    }
    (void)snprintf(s->error, sizeof s->error, "%s", v->text);
    int64_t judged_us = MIN(f->run->o->timeout_s * USEC_PER_SEC / 2, HOST_NETWORK_QUIET_MAX);
    if (v->silent && now - t->hop_us < judged_us && hosts_is_still(f->hosts, now)) {
        s->place.last = true;
        wait_until(f, t, now + judged_us);
        return;
    }
    fetch_rows_fail(f, t, v->text);
}

/* An attempt that does not count. */
static bool is_excused(struct fetch *f, struct transfer *t, const struct verdict *v, int64_t now)
{
    if (t->host == NULL || !(v->silent || v->drips)) {
        return false;
    }
    switch (hosts_failed(f->hosts, t->host, v->drips, t->hop_us, now)) {
    case HOST_FAULT_URL:
        return false;
    case HOST_FAULT_HOST:
        return t->sample->place.tries < (int)f->run->o->retries;
    case HOST_FAULT_NETWORK:
        return true;
    }
    return false;
}

bool fetch_rows_act(struct fetch *f, struct transfer *t, const struct verdict *v)
{
    int64_t now = clock_mono_us();
    struct sample *s = t->sample;
    if (v->reach == REACH_YES) {
        f->shared->reached = true;
    }
    if (t->host != NULL && t->retry_after_us > 0) {
        hosts_pause(f->hosts, t->host, now, t->retry_after_us);
    }
    if (t->host != NULL && v->refused) {
        hosts_refused(f->hosts, t->host, now);
    }
    if (is_excused(f, t, v, now)) {
        fetch_rows_park(f, t, v->text);
        return false;
    }
    leave_host(f, t, t->status > 0 && !v->silent && !v->drips);
    switch (v->kind) {
    case VERDICT_OK:
        end_ok(f, t);
        return false;
    case VERDICT_REDIRECT:
        drop_body(f, t);
        set_hop(s, v->location);
        return true;
    case VERDICT_TRANSIENT:
    case VERDICT_FAILED:
        act_on_failure(f, t, v);
        return false;
    }
    return false;
}

struct sample *fetch_rows_next(struct fetch *f)
{
    if (f->due != NULL) {
        struct sample *s = sample_of(f->due);
        f->due = s->item.next;
        return s;
    }
    if (f->unpark && hosts_parked(f->hosts) > 0) {
        struct sample *s = sample_of(hosts_unpark(f->hosts, clock_mono_us()));
        if (s != NULL) {
            return s;
        }
        f->unpark = false;
    }
    return hosts_is_full(f->hosts)
               ? NULL
               : sample_of(queue_pop(f->run->queue_rows[f->fetch_thread], false));
}

bool fetch_rows_ended(struct fetch *f)
{
    return f->later == NULL && f->due == NULL && hosts_parked(f->hosts) == 0 &&
           queue_ended(f->run->queue_rows[f->fetch_thread]);
}

/* While the network is down nothing is due, and failures do not count. */
static void take_due(struct fetch *f, bool away, int64_t now)
{
    for (struct queue_item **p = &f->later; *p != NULL;) {
        struct sample *s = sample_of(*p);
        s->place.last = s->place.last && !away;
        if (away || now < s->place.not_before_us) {
            p = &s->item.next;
            continue;
        }
        *p = s->item.next;
        if (s->place.last) {
            row_failed(f, s, s->error);
        } else {
            s->item.next = f->due;
            f->due = &s->item;
        }
    }
}

static void tell(struct fetch *f, bool away, int64_t now)
{
    struct hosts_parked parked;
    struct progress *p = &f->run->progress;
    hosts_count(f->hosts, &parked);
    p->waiting = (int64_t)parked.n;
    p->waiting_silent = (int64_t)parked.silent_n;
    p->waiting_one = (int64_t)parked.most;
    if (p->network_away != away) {
        log_event(LOG_WARN, away ? "network_away" : "network_back",
                  LF_I("rows_waiting", (int64_t)parked.n));
    }
    p->network_away = away;
    if (parked.most >= SAY_ROWS && now >= f->next_say_us) {
        log_event(LOG_INFO, "rows_wait_for_one_host", LF_S("host", parked.most_name),
                  LF_I("rows", (int64_t)parked.most),
                  LF_I("host_connections", pipeline_host_connections(f->run)));
        f->next_say_us = now + SAY_US;
    }
}

void fetch_rows_tick(struct fetch *f, int64_t now_us)
{
    bool rows_left = !queue_ended(f->run->queue_rows[f->fetch_thread]);
    int64_t away_us = hosts_look(f->hosts, rows_left, now_us);
    take_due(f, away_us > 0, now_us);
    if (f->fetch_thread == 0 && now_us >= f->next_count_us) {
        tell(f, away_us > 0, now_us);
        f->next_count_us = now_us + COUNT_US;
    }
    if (away_us > f->run->o->network_patience_s * USEC_PER_SEC) {
        struct err err = ERR_INIT;
        (void)err_set(&err, ERR_NETWORK,
                      "the network is down: nothing has answered for %lld s; finished shards are "
                      "kept, and the next run goes on from them",
                      (long long)(away_us / USEC_PER_SEC));
        pipeline_fail(f->run, &err);
    }
}

static void free_list(struct queue_item *i)
{
    for (struct queue_item *next; i != NULL; i = next) {
        next = i->next;
        sample_free(sample_of(i));
    }
}

void fetch_rows_free(struct fetch *f)
{
    free_list(f->later);
    free_list(f->due);
}
