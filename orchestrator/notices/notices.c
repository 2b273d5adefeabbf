/* See notices.h. */
#include "notices.h"
#include "api/handlers/guidance.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/http.h"
#include "common/json.h"
#include "common/log.h"
#include "common/loop.h"
#include "mail_record.h"
#include "message.h"
#include "metrics.h"
#include "signature.h"
#include "store/api/campaigns.h"
#include "store/api/notices.h"
#include "store/pg/tx.h"
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#define PASS_US           (500 * USEC_PER_MSEC)
#define IDLE_US           (2 * USEC_PER_SEC) /* while there are no webhooks */
#define WATCH_US          (2 * USEC_PER_SEC) /* between looks at what is stuck or late */
#define FORGET_US         (600 * USEC_PER_SEC)
#define EVENTS_MAX        5000
#define QUEUE_MAX         1000
#define DELIVERIES_MAX    32
#define HOLD_MARGIN_US    (5 * USEC_PER_SEC)
#define ANSWER_MAX        2048
#define FACTS_MAX         MESSAGE_BYTES_MAX
#define PROBLEM_BYTES_MAX (8 * 1024)

/* Pauses after each failed try, in retry_us: 5 s, 30 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h. After
 * the last, in 31 h, it is given up. */
static const int64_t pauses[] = {1, 6, 60, 360, 1440, 3600, 7200, 10080};

enum sending_end { SENDING_DELIVERED, SENDING_AGAIN, SENDING_REFUSED }; /* refused: for good */
struct sending {                                                        /* a delivery under way */
    struct notices *n;
    struct sending *next;
    struct http_req *req;
    int64_t id, tries;
    bool test, mail;
    struct mail_addresses to;      /* of a mail: whom this try is for */
    json_t *record;                /* of a mail: mail_record.h */
    char refused[ADDR_TEXT_BYTES]; /* the address that may not be reached; "": none */
};
struct notices {
    struct notices_config cfg;
    struct loop *loop;
    struct http *http;
    struct loop_timer *timer;
    struct store *store; /* NULL: not open, or this droverd does not lead */
    struct sending *sendings;
    int sendings_n;
    int64_t watched_us, forgot_us; /* monotonic */
    pthread_t thread;
    bool started;
};

static void sending_done(struct sending *s)
{
    json_decref(s->record);
    free(s);
}

static void sending_free(struct sending *s)
{
    struct sending **at = &s->n->sendings;
    while (*at != s) {
        at = &(*at)->next;
    }
    *at = s->next;
    s->n->sendings_n--;
    sending_done(s);
}

static bool may_connect(void *ctx, const struct sockaddr *address)
{
    struct sending *s = ctx;
    struct net_addr a;
    int port;
    if (!addr_from_sockaddr(address, &a, &port)) {
        return false;
    }
    if (addr_is_allowed(&s->n->cfg.allow, &a, port)) {
        return true;
    }
    addr_format(&a, s->refused);
    return false;
}

/* Its body is of no use. */
static bool discard(void *ctx UNUSED, struct str data UNUSED)
{
    return true;
}

static void problem_text(const struct sending *s, const struct http_reply *reply, struct buf *b)
{
    if (!s->mail && reply->status >= 100) {
        buf_addf(b, "answered %d", reply->status);
        if (!reply->ok) {
            buf_addf(b, ", then: %s", reply->err.message);
        }
    } else if (!s->mail && s->refused[0] != '\0' && reply->err.code == ERR_FORBIDDEN) {
        buf_addf(b, "%s is a private address or port: an admin may allow it by webhook_allow_net",
                 s->refused);
    } else {
        buf_add_cstr(b, reply->err.message);
    }
}

/* When nothing can be written, the delivery is free again after its time and tried once more. */
static void write_result(struct notices *n, const struct delivery_result *r)
{
    struct err err = ERR_INIT;
    if (n->store != NULL && !store_delivery_done(n->store, r, &err) &&
        log_allow("webhook_result_not_written")) {
        log_event(LOG_WARN, "webhook_result_not_written", LF_I("delivery", r->id), LF_ERR(&err));
    }
}

static void failed(struct notices *n, struct delivery_result *r, bool final)
{
    bool last = final || r->tries > (int64_t)ARRAY_LEN(pauses);
    r->state = last ? "failed" : "waiting";
    r->again_us = last ? 0 : n->cfg.retry_us * pauses[r->tries - 1];
    metric_add(METRIC_WEBHOOK_FAILURES, 1);
    log_event(LOG_WARN, last ? "webhook_given_up" : "webhook_failed", LF_I("delivery", r->id),
              LF_I("tries", r->tries), LF_S("reason", r->problem));
}

/* Of this mail; what is said before it, and that credentials are needed (530), is of the settings,
 * which an operator mends. */
static bool mail_refused(const struct http_reply *reply)
{
    return reply->sent && reply->status >= 500 && reply->status != 530;
}

/* How it ends when the server answered for each address of a mail: who was refused for good keeps
 * it from nobody else, and gets no further try. False: it did not come so far. */
static bool mail_end(struct sending *s, const struct http_reply *reply, struct buf *problem,
                     enum sending_end *ret)
{
    const struct buf *lines = &reply->headers;
    const struct mail_try t = {.said = {lines->p + reply->mail_at, lines->n - reply->mail_at},
                               .status = reply->status,
                               .taken = reply->ok};
    struct mail_addresses left;
    if (!s->mail || !reply->sent || !mail_record_try(s->record, &s->to, &t, problem)) {
        return false;
    }
    mail_addresses_left(&s->to, s->record, &left);
    *ret = left.n > 0                   ? SENDING_AGAIN
           : mail_record_has(s->record) ? SENDING_DELIVERED
                                        : SENDING_REFUSED;
    return true;
}

static enum sending_end sending_end(struct sending *s, const struct http_reply *reply,
                                    struct buf *problem)
{
    enum sending_end end;
    if (mail_end(s, reply, problem, &end)) {
        return end;
    }
    if (reply->ok && reply->status >= 200 && reply->status < 300) {
        return SENDING_DELIVERED;
    }
    problem_text(s, reply, problem);
    return s->mail && mail_refused(reply) ? SENDING_REFUSED : SENDING_AGAIN;
}

static void on_answer(void *ctx, const struct http_reply *reply)
{
    struct sending *s = ctx;
    struct notices *n = s->n;
    AUTO_BUF struct buf problem = BUF_INIT(PROBLEM_BYTES_MAX);
    enum sending_end end = sending_end(s, reply, &problem);
    AUTO_FREE char *record = s->mail ? json_text(s->record) : NULL;
    struct delivery_result r = {
        .id = s->id,
        .tries = s->tries,
        .state = "delivered",
        .status = s->mail && !reply->ok && reply->status < 400 ? 0 : reply->status,
        .took_us = reply->duration_us};
    r.problem = buf_cstr(&problem);
    r.addresses_json = record;
    metric_add(METRIC_WEBHOOK_DELIVERIES, end == SENDING_DELIVERED);
    if (end != SENDING_DELIVERED) {
        failed(n, &r, s->test || end == SENDING_REFUSED);
    }
    write_result(n, &r);
    sending_free(s);
    loop_timer_set(n->timer, 0); /* the next one of this webhook */
}

static struct sending *send_request(struct notices *n, const struct webhook_delivery *d,
                                    const struct http_request *request)
{
    struct sending *s = xcalloc(1, sizeof *s);
    *s = (struct sending){.n = n,
                          .next = n->sendings,
                          .id = d->id,
                          .tries = d->tries,
                          .mail = request->mail != NULL,
                          .test = strcmp(d->kind, "test") == 0};
    n->sendings = s;
    n->sendings_n++;
    s->req = http_send(n->http, request, on_answer, s);
    return s;
}

static void send_mail(struct notices *n, const struct webhook_delivery *d,
                      const struct mail_addresses *addresses, json_t *record, struct str body)
{
    const struct mail_server *server = &n->cfg.mail;
    const char *to[MAIL_ADDRESSES_MAX];
    for (size_t i = 0; i < addresses->n; i++) {
        to[i] = addresses->text[i];
    }
    const struct http_mail mail = {.server = server, .to = to, .to_n = addresses->n};
    const struct http_request request = {.method = "PUT",
                                         .url = server->url,
                                         .mail = &mail,
                                         .body = body,
                                         .reply_max = ANSWER_MAX,
                                         .connect_timeout_us = n->cfg.timeout_us,
                                         .timeout_us = n->cfg.timeout_us};
    struct sending *s = send_request(n, d, &request);
    s->to = *addresses;
    s->record = record;
}

static void send_message(struct notices *n, const struct webhook_delivery *d, struct str body)
{
    char timestamp[32];
    int64_t now_s = clock_wall_us() / USEC_PER_SEC;
    AUTO_BUF struct buf signature = BUF_INIT(128);
    signature_make(d->secret, d->message_id, now_s, body, &signature);
    (void)snprintf(timestamp, sizeof timestamp, "%" PRId64, now_s);
    const struct http_header headers[] = {{"Content-Type", "application/json"},
                                          {"User-Agent", n->cfg.user_agent},
                                          {"webhook-id", d->message_id},
                                          {"webhook-timestamp", timestamp},
                                          {"webhook-signature", buf_cstr(&signature)}};
    const struct http_request request = {.method = "POST",
                                         .url = d->url,
                                         .headers = headers,
                                         .headers_n = ARRAY_LEN(headers),
                                         .body = body,
                                         .reply_max = ANSWER_MAX,
                                         .timeout_us = n->cfg.timeout_us,
                                         .may_connect = may_connect,
                                         .on_data = discard};
    (void)send_request(n, d, &request);
}

/* The end of a try before anything was sent. final: it is not tried again. */
static void not_sent(struct notices *n, const struct webhook_delivery *d, const char *problem,
                     bool final)
{
    struct delivery_result r = {.id = d->id, .tries = d->tries, .problem = problem};
    failed(n, &r, final || strcmp(d->kind, "test") == 0);
    write_result(n, &r);
}

/* To those who need it yet; what is sent once more after everybody had it goes to all. */
static void on_mail(struct notices *n, const struct webhook_delivery *d,
                    const struct mail_addresses *all, struct str body)
{
    struct err ignored = ERR_INIT;
    struct mail_addresses left;
    json_t *record = NULL;
    if (!json_parse(str_of(d->addresses_json), PROBLEM_BYTES_MAX, &record, &ignored)) {
        record = json_object();
    }
    mail_addresses_left(all, record, &left);
    if (left.n == 0 && d->tries == 1) {
        (void)json_object_clear(record);
        left = *all;
    }
    if (left.n > 0) {
        send_mail(n, d, &left, record, body);
    } else { /* an address was taken out of the webhook meanwhile */
        json_decref(record);
        write_result(n, &(struct delivery_result){
                            .id = d->id, .tries = d->tries, .state = "delivered", .problem = ""});
    }
}

static void on_delivery(void *ctx, const struct webhook_delivery *d)
{
    struct notices *n = ctx;
    struct err err = ERR_INIT;
    AUTO_BUF struct buf body = BUF_INIT(4 * MESSAGE_BYTES_MAX);
    bool email = strcmp(d->format, "email") == 0;
    struct mail_addresses to;
    AUTO_FREE char *id = xasprintf("%s.d-%" PRId64, d->message_id, d->id);
    const struct message_envelope envelope = {
        .id = id, .from = n->cfg.mail.from, .to = &to, .public_url = n->cfg.public_url};
    const struct message m = {
        .kind = d->kind, .at_us = d->at_us, .facts_json = d->facts_json, .mail = &envelope};
    if (email && n->cfg.mail.url[0] == '\0') {
        not_sent(n, d, "droverd's setting smtp_url names no server of mail", false);
    } else if ((email && !mail_addresses_read(d->url, &to, &err)) ||
               !message_write(&m, d->format, &body, &err)) {
        log_event(LOG_ERROR, "webhook_not_written", LF_I("delivery", d->id), LF_ERR(&err));
        not_sent(n, d, err.message, true);
    } else if (email) {
        on_mail(n, d, &to, buf_str(&body));
    } else {
        send_message(n, d, buf_str(&body));
    }
}

/* NULL: there is none, or it is too long: the notice goes without it. The caller frees it. */
static char *with_guidance(const char *facts_json, struct str guidance_json)
{
    struct err ignored = ERR_INIT;
    AUTO_JSON json_t *facts = NULL;
    AUTO_JSON json_t *guidance = NULL;
    if (guidance_json.n == 0 || facts_json == NULL ||
        !json_parse(str_of(facts_json), FACTS_MAX, &facts, &ignored) ||
        !json_parse(guidance_json, FACTS_MAX, &guidance, &ignored)) {
        return NULL;
    }
    (void)json_object_set(facts, "guidance", guidance);
    char *whole = json_text(facts);
    if (strlen(whole) > FACTS_MAX) {
        free(TAKE(whole));
    }
    return whole;
}

/* The notice is told with what a person would read of its campaign now. */
static bool on_due(void *ctx, int64_t id, const char *kind, int64_t campaign_id,
                   const char *facts_json, struct err *err)
{
    const struct notice_events *events = ((void **)ctx)[1];
    struct notices *n = ((void **)ctx)[0];
    bool guided = strcmp(kind, "held") == 0 || strcmp(kind, "stuck") == 0;
    AUTO_BUF struct buf text = BUF_INIT(FACTS_MAX);
    if (guided && !apidb_campaign_guidance(n->store, campaign_id, guidance_out, &text, err)) {
        return false;
    }
    AUTO_FREE char *whole = with_guidance(facts_json, buf_str(&text));
    return store_notice_tell(n->store, id, events->last_id, whole != NULL ? whole : facts_json,
                             QUEUE_MAX, err);
}

static bool watch(struct notices *n, const struct notice_events *e, struct err *err)
{
    int64_t now_us = clock_mono_us();
    if (e->changed[0] == '\0' && now_us - n->watched_us < WATCH_US) {
        return true;
    }
    if (!store_notice_budgets(n->store, e->changed, err) ||
        !store_notice_stuck(n->store, n->cfg.stuck_us, err) || !store_notice_late(n->store, err)) {
        return false;
    }
    n->watched_us = now_us;
    return true;
}

/* Notices of what has happened since the last look. *ret_pause_us: until the next one. */
static bool gather(struct notices *n, int64_t *ret_pause_us, struct err *err)
{
    struct notice_begin from = {.since_us = 0};
    struct notice_events e = {.changed = NULL};
    AUTO_TX struct store *tx = n->store;
    *ret_pause_us = PASS_US;
    if (!tx_begin(tx, TX_WRITE, err) || !store_notice_begin(tx, &from, err)) {
        return false;
    }
    if (from.since_us == 0) { /* nobody wants to know, or another one looks */
        *ret_pause_us = IDLE_US;
        return true;
    }
    void *ctx[] = {n, &e};
    bool ok = store_notice_events(tx, &from, EVENTS_MAX, n->cfg.collect_us, &e, err) &&
              watch(n, &e, err) && store_notice_due(tx, e.last_id, on_due, ctx, err) &&
              store_notice_go_on(tx, e.last_id, err) && tx_commit(tx, err);
    *ret_pause_us = ok && e.n == EVENTS_MAX ? 0 : PASS_US;
    free(e.changed);
    return ok;
}

static bool deliver(struct notices *n, struct err *err)
{
    int taken = 0;
    int64_t hold_us = n->cfg.timeout_us + HOLD_MARGIN_US;
    return n->sendings_n >= DELIVERIES_MAX ||
           store_delivery_take(n->store, DELIVERIES_MAX - n->sendings_n, hold_us, on_delivery, n,
                               &taken, err);
}

static bool forget(struct notices *n, struct err *err)
{
    int64_t now_us = clock_mono_us();
    if (now_us - n->forgot_us < FORGET_US) {
        return true;
    }
    n->forgot_us = now_us;
    return store_notice_forget(n->store, err);
}

static void let_go(struct notices *n)
{
    store_close(n->store);
    n->store = NULL;
}

static bool connected(struct notices *n, struct err *err)
{
    if (n->store != NULL && !store_alive(n->store)) {
        let_go(n);
    }
    return n->store != NULL || store_open(n->cfg.conninfo, STORE_NOTICES, &n->store, err);
}

/* What cannot be gathered keeps nothing from being delivered. */
static void on_pass(void *ctx)
{
    struct notices *n = ctx;
    struct err err = ERR_INIT;
    int64_t pause_us = PASS_US;
    if (!atomic_load(&n->cfg.status->leading)) {
        let_go(n);
    } else if (connected(n, &err)) {
        bool gathered = gather(n, &pause_us, &err);
        if (!(store_alive(n->store) && deliver(n, &err) && forget(n, &err) && gathered) &&
            log_allow("notices_failed")) {
            log_event(LOG_WARN, "notices_failed", LF_ERR(&err));
        }
    } else if (log_allow("notices_failed")) {
        log_event(LOG_WARN, "notices_failed", LF_ERR(&err));
    }
    loop_timer_set(n->timer, pause_us);
}

static void *notices_main(void *ctx)
{
    struct notices *n = ctx;
    loop_run(n->loop);
    return NULL;
}

/* Signals are for the thread of the leader's loop. */
static bool start_thread(struct notices *n, struct err *err)
{
    sigset_t all, old;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    n->started = pthread_create(&n->thread, NULL, notices_main, n) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    return n->started || err_set(err, ERR_INTERNAL, "cannot start the thread of notices");
}

bool notices_start(const struct notices_config *cfg, struct notices **ret, struct err *err)
{
    struct notices *n = xcalloc(1, sizeof *n);
    n->cfg = *cfg;
    bool ok = loop_new(&n->loop, err) && http_new(n->loop, &n->http, err);
    if (ok) {
        n->timer = loop_timer_new(n->loop, on_pass, n);
        loop_timer_set(n->timer, 0);
        ok = start_thread(n, err);
    }
    if (!ok) {
        notices_stop(n);
        return false;
    }
    *ret = n;
    return true;
}

void notices_stop(struct notices *n)
{
    if (n == NULL) {
        return;
    }
    if (n->started) {
        loop_stop(n->loop);
        (void)pthread_join(n->thread, NULL);
    }
    for (struct sending *s = n->sendings, *next; s != NULL; s = next) {
        next = s->next;
        http_cancel(s->req); /* tried again by the next leader */
        sending_done(s);
    }
    http_free(n->http);
    loop_timer_free(n->timer);
    let_go(n);
    loop_free(n->loop);
    free(n);
}
