/* Server-sent events. One thread reads the event table (woken by LISTEN, at least once a second)
 * and passes new events to every open stream. Between events a stream's connection is suspended and
 * uses no thread. A stream that begins before the newest event (Last-Event-ID) or falls behind is
 * late: the table is read for it alone until it has caught up. Ids are in commit order, so no event
 * is skipped or repeated. */
#include "stream.h"
#include "common/clock.h"
#include "common/log.h"
#include "event_batch.h"
#include "hangup.h"
#include "metrics.h"
#include "reply.h"
#include "request.h"
#include "routes.h"
#include "scope.h"
#include "server_state.h"
#include "store/api/campaigns.h"
#include "store/api/events.h"
#include "store/api/tokens.h"
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define STREAMS_MAX     1024
#define STREAM_BUF_MAX  (256 * 1024)
#define STREAM_LOW      (64 * 1024) /* free space a late stream needs before more is read for it */
#define HEARTBEAT_US    (15 * USEC_PER_SEC)
#define POLL_MS         1000
#define RECONNECT_MS    500
#define PER_TOKEN       16
#define PER_ADDRESS     200
#define TOKENS_LOOK_US  (2 * USEC_PER_SEC)
#define CHUNK           4096
#define TOKENS_TEXT_MAX ((size_t)256 * 1024)

struct stream {
    struct stream_hub *hub;
    struct MHD_Connection *conn;
    int64_t campaign_id; /* 0: all campaigns */
    int64_t cursor;      /* id of the last event put into buf */
    struct buf buf;
    int64_t serial; /* distinguishes it from an earlier stream at the same address */
    int64_t sent_us;
    bool suspended, ended;
    struct api_principal who;
    char address[64]; /* "" does not count: of this machine */
};
struct stream_hub {
    pthread_mutex_t lock;
    pthread_t thread;
    bool started, stop;
    int wake_fd, hangups;
    char *conninfo;
    int max, per_token, per_address;
    int64_t tokens_looked_us;
    int64_t head; /* newest event passed to the streams that are not late; -1: not read yet */
    struct stream *streams[STREAMS_MAX];
    int n;
    int64_t next_serial;
    struct event_batch *batch; /* of the reading thread */
};

/* Call with the lock held. */
static void stream_wake(struct stream *s)
{
    if (s->suspended) {
        s->suspended = false;
        MHD_resume_connection(s->conn);
    }
}

static void hub_poke(struct stream_hub *h)
{
    uint64_t one = 1;
    (void)!write(h->wake_fd, &one, sizeof one);
}

/* MHD asks for bytes. When there are none the connection is suspended. */
static ssize_t stream_read(void *cls, uint64_t pos, char *to, size_t max)
{
    struct stream *s = cls;
    (void)pos;
    (void)pthread_mutex_lock(&s->hub->lock);
    size_t n = MIN(max, s->buf.n);
    ssize_t ret = (ssize_t)n;
    if (n > 0) {
        memcpy(to, s->buf.p, n);
        buf_consume(&s->buf, n);
        s->sent_us = clock_mono_us();
        if (s->cursor < s->hub->head && s->buf.n < STREAM_LOW) {
            hub_poke(s->hub); /* late, and there is space again */
        }
    } else if (s->ended) {
        ret = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        buf_done(&s->buf); /* a thousand idle streams keep no memory of the busiest moment */
        s->suspended = true;
        MHD_suspend_connection(s->conn);
    }
    (void)pthread_mutex_unlock(&s->hub->lock);
    return ret;
}

static void stream_free(void *cls)
{
    struct stream *s = cls;
    struct stream_hub *h = s->hub;
    (void)pthread_mutex_lock(&h->lock);
    for (int i = 0; i < h->n; i++) {
        if (h->streams[i] == s) {
            h->streams[i] = h->streams[--h->n];
            hangup_forget(h->hangups, s->conn);
            break;
        }
    }
    metric_set(METRIC_HTTP_STREAMS, h->n);
    (void)pthread_mutex_unlock(&h->lock);
    buf_done(&s->buf);
    free(s);
}

/* Copy the events of the batch that s does not have, as far as there is space. True when all were
 * copied. Call with the lock held. */
static bool stream_take(struct stream *s, const struct event_batch *b)
{
    bool whole = true;
    for (int64_t i = 0; whole && i < b->n; i++) {
        size_t n = b->at[i].end - b->at[i].begin;
        if (b->at[i].id <= s->cursor ||
            (s->campaign_id != 0 && s->campaign_id != b->at[i].campaign_id) ||
            !scope_allows(&s->who, b->at[i].project)) {
            continue;
        }
        whole = s->buf.n + n < STREAM_BUF_MAX;
        if (whole) {
            buf_add(&s->buf, b->text.p + b->at[i].begin, n);
            s->cursor = b->at[i].id;
            metric_add(METRIC_HTTP_EVENTS, 1);
        }
    }
    if (s->buf.n > 0) {
        stream_wake(s);
    }
    return whole;
}

/* Read new events and pass them to every stream that is not late. A stream without space becomes
 * late. */
static bool hub_read(struct stream_hub *h, struct store *db, struct event_batch *b, struct err *err)
{
    bool whole = false;
    while (!whole) {
        if (!event_batch_read(db, h->head, 0, b, &whole, err)) {
            return false;
        }
        (void)pthread_mutex_lock(&h->lock);
        for (int i = 0; i < h->n; i++) {
            struct stream *s = h->streams[i];
            if (s->cursor >= h->head && stream_take(s, b)) {
                s->cursor = MAX(s->cursor, b->last);
            }
        }
        h->head = b->last;
        (void)pthread_mutex_unlock(&h->lock);
    }
    return true;
}

/* The next late stream with space, by serial above `after`; 0: none. */
static int64_t late_next(struct stream_hub *h, int64_t after, int64_t *ret_cursor,
                         int64_t *ret_campaign)
{
    int64_t best = 0;
    (void)pthread_mutex_lock(&h->lock);
    for (int i = 0; i < h->n; i++) {
        const struct stream *s = h->streams[i];
        if (s->cursor < h->head && s->buf.n < STREAM_LOW && s->serial > after &&
            (best == 0 || s->serial < best)) {
            best = s->serial;
            *ret_cursor = s->cursor;
            *ret_campaign = s->campaign_id;
        }
    }
    (void)pthread_mutex_unlock(&h->lock);
    return best;
}

/* One read for each late stream. *ret_more: a stream could take more at once. */
static bool hub_late(struct stream_hub *h, struct store *db, struct event_batch *b, bool *ret_more,
                     struct err *err)
{
    int64_t serial = 0, cursor, campaign_id;
    *ret_more = false;
    while ((serial = late_next(h, serial, &cursor, &campaign_id)) != 0) {
        bool whole;
        if (!event_batch_read(db, cursor, campaign_id, b, &whole, err)) {
            return false;
        }
        (void)pthread_mutex_lock(&h->lock);
        for (int i = 0; i < h->n; i++) {
            struct stream *s = h->streams[i];
            if (s->serial == serial && stream_take(s, b)) { /* no other event up to there */
                s->cursor = MAX(s->cursor, whole ? h->head : b->last);
            }
        }
        (void)pthread_mutex_unlock(&h->lock);
        *ret_more |= !whole;
    }
    return true;
}

/* Call with the lock held. */
static void stream_heartbeat(struct stream *s)
{
    if (s->buf.n == 0) {
        buf_add_cstr(&s->buf, ": still here\n\n");
        s->sent_us = clock_mono_us();
        stream_wake(s);
    }
}

static void hub_heartbeat(struct stream_hub *h)
{
    int64_t now = clock_mono_us();
    (void)pthread_mutex_lock(&h->lock);
    for (int i = 0; i < h->n; i++) {
        struct stream *s = h->streams[i];
        if (now - s->sent_us > HEARTBEAT_US) {
            stream_heartbeat(s);
        }
    }
    (void)pthread_mutex_unlock(&h->lock);
}

/* End the streams whose client is gone. One that ended its own side may still read: it is written
 * to, and when it has closed the socket it answers with a reset, the next change. */
static void hub_hangups(struct stream_hub *h)
{
    struct stream *s;
    bool gone;
    (void)pthread_mutex_lock(&h->lock);
    while ((s = hangup_take(h->hangups, &gone)) != NULL) {
        if (gone) {
            s->ended = true;
            stream_wake(s);
        } else {
            stream_heartbeat(s);
        }
    }
    (void)pthread_mutex_unlock(&h->lock);
}

struct token_ids {
    const char *at[STREAMS_MAX];
    size_t n;
};

/* The name that apidb_tokens_ended knows the one who asks by. */
static const char *principal_name(const struct api_principal *who, struct arena *mem)
{
    return who->session_id == 0 ? arena_strndup(mem, who->token_id, strlen(who->token_id))
                                : arena_printf(mem, "session %lld", (long long)who->session_id);
}

/* The different tokens of the open streams, copied into `mem`. */
static void hub_tokens(struct stream_hub *h, struct arena *mem, struct token_ids *ret)
{
    (void)pthread_mutex_lock(&h->lock);
    for (int i = 0; i < h->n; i++) {
        const char *id = principal_name(&h->streams[i]->who, mem);
        bool seen = h->streams[i]->ended;
        for (size_t k = 0; k < ret->n && !seen; k++) {
            seen = strcmp(ret->at[k], id) == 0;
        }
        if (!seen) {
            ret->at[ret->n++] = id;
        }
    }
    (void)pthread_mutex_unlock(&h->lock);
}

static void hub_end_token(void *ctx, const char *id)
{
    struct stream_hub *h = ctx;
    int64_t session = 0;
    if (strncmp(id, "session ", 8) == 0) {
        ASSERT(parse_i64(str_of(id + 8), 1, INT64_MAX, &session, NULL));
    }
    (void)pthread_mutex_lock(&h->lock);
    for (int i = 0; i < h->n; i++) {
        struct stream *s = h->streams[i];
        bool its =
            s->who.session_id == session && (session != 0 || strcmp(s->who.token_id, id) == 0);
        if (!s->ended && its) {
            s->ended = true;
            stream_wake(s);
        }
    }
    (void)pthread_mutex_unlock(&h->lock);
}

/* Streams of tokens that were revoked or have expired end. */
static bool hub_check_tokens(struct stream_hub *h, struct store *db, struct err *err)
{
    int64_t now = clock_mono_us();
    if (now - h->tokens_looked_us < TOKENS_LOOK_US) {
        return true;
    }
    h->tokens_looked_us = now;
    struct arena mem;
    arena_init(&mem, TOKENS_TEXT_MAX);
    struct token_ids ids = {.n = 0};
    hub_tokens(h, &mem, &ids);
    bool ok = ids.n == 0 || apidb_tokens_ended(db, ids.at, ids.n, hub_end_token, h, err);
    arena_done(&mem);
    return ok;
}

static bool hub_stopping(struct stream_hub *h)
{
    (void)pthread_mutex_lock(&h->lock);
    bool stop = h->stop;
    (void)pthread_mutex_unlock(&h->lock);
    return stop;
}

static void hub_wait(struct stream_hub *h, struct store *db, int timeout_ms)
{
    struct pollfd p[] = {{.fd = h->wake_fd, .events = POLLIN},
                         {.fd = h->hangups, .events = POLLIN},
                         {.fd = db != NULL ? store_fd(db) : -1, .events = POLLIN}};
    (void)poll(p, ARRAY_LEN(p), timeout_ms);
    uint64_t n;
    (void)!read(h->wake_fd, &n, sizeof n);
    hub_hangups(h);
}

/* Read the newest id of the table at start. */
static bool hub_begin(struct stream_hub *h, struct store *db, struct err *err)
{
    int64_t first, last;
    if (h->head >= 0) {
        return true;
    }
    if (!apidb_events_ends(db, &first, &last, err)) {
        return false;
    }
    (void)pthread_mutex_lock(&h->lock);
    h->head = last;
    (void)pthread_mutex_unlock(&h->lock);
    return true;
}

/* Read until the connection fails or the hub stops. */
static bool hub_follow(struct stream_hub *h, struct store *db, struct err *err)
{
    bool any, more;
    if (!hub_begin(h, db, err)) {
        return false;
    }
    struct event_batch *b = h->batch;
    while (!hub_stopping(h)) {
        if (!store_notified(db, &any, err) || !hub_read(h, db, b, err) ||
            !hub_late(h, db, b, &more, err) || !hub_check_tokens(h, db, err)) {
            return false;
        }
        hub_heartbeat(h);
        hub_wait(h, db, more ? 0 : POLL_MS);
    }
    return true;
}

static void *hub_main(void *ctx)
{
    struct stream_hub *h = ctx;
    while (!hub_stopping(h)) {
        struct store *db = NULL;
        struct err err = ERR_INIT;
        bool ok = store_open(h->conninfo, STORE_LISTEN, &db, &err) && hub_follow(h, db, &err);
        if (!ok && log_allow("stream")) {
            log_event(LOG_WARN, "stream_reader_lost", LF_ERR(&err));
        }
        store_close(db);
        if (!ok) {
            metric_add(METRIC_DB_RECONNECTS, 1);
            hub_heartbeat(h);
            hub_wait(h, NULL, RECONNECT_MS);
        }
    }
    return NULL;
}

bool stream_hub_new(const struct api_config *cfg, int streams_max, struct stream_hub **ret,
                    struct err *err)
{
    struct stream_hub *h = xcalloc(1, sizeof *h);
    (void)pthread_mutex_init(&h->lock, NULL);
    h->conninfo = xstrdup(cfg->conninfo);
    h->head = -1;
    h->max = MIN(MAX(streams_max, 1), STREAMS_MAX);
    h->per_token = cfg->streams_per_token > 0 ? cfg->streams_per_token : PER_TOKEN;
    h->per_address = cfg->streams_per_address > 0 ? cfg->streams_per_address : PER_ADDRESS;
    h->batch = xcalloc(1, sizeof *h->batch);
    event_batch_init(h->batch);
    h->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    *ret = h;
    if (!hangup_new(&h->hangups, err)) {
        return false;
    }
    int rc = pthread_create(&h->thread, NULL, hub_main, h);
    h->started = rc == 0;
    return h->started || err_set_os(err, ERR_INTERNAL, rc, "cannot start the event reader");
}

void stream_hub_stop(struct stream_hub *h)
{
    if (h == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&h->lock);
    h->stop = true;
    (void)pthread_mutex_unlock(&h->lock);
    hub_poke(h);
    if (h->started) {
        (void)pthread_join(h->thread, NULL);
        h->started = false;
    }
    (void)pthread_mutex_lock(&h->lock);
    for (int i = 0; i < h->n; i++) {
        h->streams[i]->ended = true;
        stream_wake(h->streams[i]);
    }
    (void)pthread_mutex_unlock(&h->lock);
}

void stream_hub_free(struct stream_hub *h)
{
    if (h == NULL) {
        return;
    }
    ASSERT(h->n == 0);
    (void)pthread_mutex_destroy(&h->lock);
    (void)close(h->wake_fd);
    (void)close(h->hangups);
    event_batch_done(h->batch);
    free(h->batch);
    free(h->conninfo);
    free(h);
}

/* The event after which the stream begins: Last-Event-ID, ?after=, else the newest. */
static bool stream_after(struct api_req *r, int64_t *ret, bool *ret_resync, struct err *err)
{
    int64_t first, last;
    const char *header = req_header(r, "Last-Event-ID");
    *ret_resync = false;
    *ret = req_number(r, "after");
    if (!req_db(r, err) || !apidb_events_ends(r->db, &first, &last, err)) {
        return false;
    }
    if (header != NULL && !parse_i64(str_of(header), 0, INT64_MAX, ret, NULL)) {
        return err_set(err, ERR_MALFORMED, "Last-Event-ID is not an id of an event");
    }
    if (*ret < 0) {
        *ret = last;
    } else if (*ret > last || (*ret > 0 && *ret + 1 < first)) {
        *ret_resync = true; /* deleted since, or the id of another database */
        *ret = last;
    }
    return true;
}

/* Has the token or the address of s all the streams it may have? The lock is held. */
static bool hub_crowded(const struct stream_hub *h, const struct stream *s, struct err *err)
{
    int token = 0, address = 0;
    for (int i = 0; i < h->n; i++) {
        const struct stream *o = h->streams[i];
        token += !o->ended && strcmp(o->who.token_id, s->who.token_id) == 0;
        address += !o->ended && s->address[0] != '\0' && strcmp(o->address, s->address) == 0;
    }
    if (token >= h->per_token) {
        return !err_set(err, ERR_THROTTLED, "this token has %d event streams open, the most it may",
                        token);
    }
    return address >= h->per_address &&
           !err_set(err, ERR_THROTTLED, "your address has %d event streams open, the most it may",
                    address);
}

static bool hub_add(struct stream_hub *h, struct stream *s, struct err *err)
{
    (void)pthread_mutex_lock(&h->lock);
    bool ok = h->n < h->max && !h->stop;
    if (!ok) {
        (void)err_set(err, ERR_UNAVAILABLE, "too many event streams are open");
    }
    ok = ok && !hub_crowded(h, s, err);
    if (ok) {
        s->serial = ++h->next_serial;
        h->streams[h->n++] = s;
        hangup_watch(h->hangups, s->conn, s);
    }
    metric_set(METRIC_HTTP_STREAMS, h->n);
    (void)pthread_mutex_unlock(&h->lock);
    return ok;
}

static bool stream_open(struct api_req *r, int64_t campaign_id, struct err *err)
{
    int64_t after;
    bool resync;
    if (!stream_after(r, &after, &resync, err)) {
        return false;
    }
    struct stream *s = xcalloc(1, sizeof *s);
    *s = (struct stream){.hub = r->api->streams,
                         .conn = r->conn,
                         .campaign_id = campaign_id,
                         .who = r->who,
                         .cursor = after,
                         .sent_us = clock_mono_us()};
    if (!r->loopback) {
        memcpy(s->address, r->peer, sizeof s->address);
    }
    buf_init(&s->buf, STREAM_BUF_MAX);
    buf_add_cstr(&s->buf, "retry: 2000\n\n");
    if (resync) {
        buf_addf(&s->buf, "id: %lld\nevent: resync\ndata: {}\n\n", (long long)after);
    }
    if (!hub_add(s->hub, s, err)) {
        buf_done(&s->buf);
        free(s);
        return false;
    }
    r->stream =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, CHUNK, stream_read, s, stream_free);
    ASSERT(r->stream != NULL);
    r->status = 200;
    r->content_type = "text/event-stream";
    reply_header(r, "X-Accel-Buffering", "no");
    reply_header(r, MHD_HTTP_HEADER_CONNECTION, "close"); /* when the server ends it, all is said */
    hub_poke(s->hub);
    return true;
}

bool events_campaign(struct api_req *r, struct err *err)
{
    int64_t version, id = req_id(r, 0);
    AUTO_BUF struct buf json = BUF_INIT(API_ANSWER_MAX);
    return req_db(r, err) && apidb_campaign_get(r->db, id, NULL, &version, &json, err) &&
           stream_open(r, id, err);
}

/* Who has some projects only gets their events, and learns nothing of other campaigns. */
bool events_all(struct api_req *r, struct err *err)
{
    int64_t campaign_id = MAX(req_number(r, "topics"), INT64_C(0));
    char project[128];
    if (campaign_id > 0 && r->who.projects[0] != '\0') {
        if (!req_db(r, err) || !apidb_project_of(r->db, campaign_id, 0, NULL, project, err)) {
            return false;
        }
        if (!scope_has(r, project)) {
            return err_set(err, ERR_NOT_FOUND, "there is no such campaign or operation");
        }
    }
    return stream_open(r, campaign_id, err);
}
