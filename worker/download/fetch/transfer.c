/* Judges answers. Users of img2dataset group failures by these texts, so they are Python's. */
#include "transfer.h"
#include "common/clock.h"
#include "fetch.h"
#include <errno.h>

void transfer_reset_hop(struct transfer *t)
{
    t->discarded = 0;
    t->header_n = 0;
    t->pieces_n = 0;
    t->status = 0;
    t->reason[0] = '\0';
    t->forbidden = false;
    t->too_large = false;
    t->blocked = false;
    t->paused_us = 0;
    t->first_byte_us = 0;
    t->heard_us = 0;
    t->retry_after_us = 0;
}

void transfer_excuse(struct transfer *t, int64_t us)
{
    int64_t *const at[] = {&t->begun_us, &t->deadline_us, &t->first_byte_us};
    for (size_t i = 0; i < ARRAY_LEN(at); i++) {
        *at[i] += *at[i] != 0 ? us : 0;
    }
}

bool transfer_is_crumbs(const struct transfer *t)
{
    return t->pieces_n > FETCH_PIECES_MAX && t->body.n / t->pieces_n < FETCH_PIECE_BYTES_MIN;
}

bool transfer_is_slow(const struct transfer *t, int64_t now_us)
{
    int64_t age_us = now_us - t->first_byte_us;
    return t->first_byte_us != 0 && t->paused_us == 0 && age_us >= FETCH_SPEED_AFTER_US &&
           (int64_t)t->body.n < age_us / USEC_PER_MSEC * FETCH_SPEED_MIN / 1000;
}

bool transfer_is_stalled(const struct transfer *t, int64_t now_us)
{
    switch (t->state) {
    case TRANSFER_IDLE:
        return false;
    case TRANSFER_RESOLVING:
    case TRANSFER_RUNNING:
        break;
    }
    int64_t age_us = now_us - t->begun_us;
    return t->paused_us == 0 && age_us >= HOST_STALLED_US &&
           (int64_t)t->body.n < age_us / USEC_PER_MSEC * FETCH_SPEED_MIN / 1000;
}

/* Seconds, or a date. Unreadable values are ignored. */
static int64_t retry_after_us(struct str value)
{
    int64_t s;
    if (parse_i64(value, 0, 1000000, &s, NULL)) {
        return s * USEC_PER_SEC;
    }
    char text[40];
    usec_t at;
    struct err err = ERR_INIT;
    (void)snprintf(text, sizeof text, STR_FMT, (int)MIN(value.n, sizeof text - 1), value.p);
    if (!clock_parse_http(text, &at, &err)) {
        return 0;
    }
    return MAX(at - clock_wall_us(), 0);
}

/* Python reads header bytes as Latin-1; our texts are UTF-8. */
static void take_reason(struct transfer *t, struct str words)
{
    size_t n = 0;
    for (size_t i = 0; i < words.n && n + 3 < sizeof t->reason; i++) {
        unsigned char c = (unsigned char)words.p[i];
        if (c >= 0x80) {
            t->reason[n++] = (char)(0xc0 | c >> 6);
            c = (unsigned char)(0x80 | (c & 0x3f));
        }
        t->reason[n++] = (char)c;
    }
    t->reason[n] = '\0';
}

void transfer_header(struct transfer *t, struct str line, const struct robots *robots)
{
    struct str rest = str_trim(line);
    if (str_starts(rest, "HTTP/")) {
        (void)str_split(&rest, ' ');
        int64_t code;
        struct str number = str_split(&rest, ' ');
        t->status = parse_i64(number, 100, 999, &code, NULL) ? (int)code : 0;
        take_reason(t, str_trim(rest));
        t->forbidden = false;
        t->retry_after_us = 0;
        return;
    }
    struct str name = str_split(&rest, ':');
    if (t->status >= 200 && t->status < 300 && str_ieq_cstr(name, "x-robots-tag") &&
        robots_forbids(robots, str_trim(rest))) {
        t->forbidden = true;
    }
    if ((t->status == 429 || t->status == 503) && str_ieq_cstr(name, "retry-after")) {
        t->retry_after_us = retry_after_us(str_trim(rest));
    }
}

bool transfer_take_retry(struct transfer *t, int64_t retries)
{
    struct fetch_place *p = &t->sample->place;
    if (t->retry_after_us > 0 && retries > 0 && p->pauses < HOST_PAUSES_MAX) {
        p->pauses++;
        return true;
    }
    if (p->tries >= retries) {
        return false;
    }
    p->tries++;
    return true;
}

const char *transfer_resolve_text(enum resolve_status status)
{
    switch (status) {
    case RESOLVE_NO_NAME:
        return "<urlopen error [Errno -2] Name or service not known>";
    case RESOLVE_NO_ADDRESS:
        return "<urlopen error [Errno -5] No address associated with hostname>";
    case RESOLVE_OK:
    case RESOLVE_TEMPORARY:
        break;
    }
    return "<urlopen error [Errno -3] Temporary failure in name resolution>";
}

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static bool is_transient(int status)
{
    return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 ||
           status == 504;
}

#define REASON_SHOWN 230 /* bytes next to "HTTP Error 404: " */
#define SAY(v, ...)  (void)snprintf((v)->text, sizeof(v)->text, __VA_ARGS__)

static void judge_error(struct transfer *t, CURLcode rc, struct verdict *v)
{
    long os = 0;
    curl_off_t connected = 0;
    (void)curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &os);
    (void)curl_easy_getinfo(t->easy, CURLINFO_CONNECT_TIME_T, &connected);
    if (connected == 0) { /* as for a reused connection */
        (void)curl_easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &connected);
    }
    v->kind = VERDICT_TRANSIENT;
    v->silent = rc == CURLE_OPERATION_TIMEDOUT || rc == CURLE_COULDNT_CONNECT;
    v->refused = rc == CURLE_COULDNT_CONNECT && os == ECONNREFUSED;
    if (connected != 0 || os == ECONNREFUSED) {
        v->reach = REACH_YES;
    } else if (v->silent && v->reach != REACH_YES) {
        v->reach = REACH_NO;
    }
    /* All other errors of curl keep curl's text. */
    if (rc == CURLE_OPERATION_TIMEDOUT) {
        SAY(v, "%s", connected > 0 ? "timed out" : "<urlopen error timed out>");
    } else if (rc == CURLE_COULDNT_CONNECT) {
        SAY(v, "<urlopen error [Errno %ld] %s>", os, os != 0 ? strerror((int)os) : "no connection");
    } else if (rc == CURLE_PEER_FAILED_VERIFICATION) {
        v->kind = VERDICT_FAILED;
        SAY(v, "<urlopen error [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed>");
    } else if (rc == CURLE_SSL_CONNECT_ERROR) {
        v->kind = VERDICT_FAILED;
        SAY(v, "<urlopen error [SSL] handshake failed>");
    } else if (rc == CURLE_GOT_NOTHING) {
        SAY(v, "Remote end closed connection without response");
    } else if (rc == CURLE_PARTIAL_FILE) {
        SAY(v, "IncompleteRead");
    } else if (rc == CURLE_RECV_ERROR || rc == CURLE_SEND_ERROR) {
        SAY(v, "[Errno %ld] %s", os != 0 ? os : 104L,
            os != 0 ? strerror((int)os) : "Connection reset by peer");
    } else {
        v->kind = VERDICT_FAILED;
        SAY(v, "<urlopen error %s>", curl_easy_strerror(rc));
    }
}

void transfer_judge(struct transfer *t, CURLcode rc, struct verdict *ret)
{
    struct verdict v = {.kind = VERDICT_FAILED, .reach = t->status > 0 ? REACH_YES : REACH_UNTRIED};
    char *location = NULL;
    if (t->blocked) {
        SAY(&v, "%s", TRANSFER_BLOCKED_TEXT);
    } else if (t->header_n > FETCH_HEADERS_MAX) {
        SAY(&v, "headers too large");
    } else if (transfer_is_crumbs(t)) {
        SAY(&v, "body in too many pieces");
    } else if (is_redirect(t->status) &&
               curl_easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &location) == CURLE_OK &&
               location != NULL) {
        if (++t->sample->place.redirects > FETCH_REDIRECTS_MAX) {
            SAY(&v, "HTTP Error %d: too many redirects", t->status);
        } else {
            v.kind = VERDICT_REDIRECT;
            v.location = location;
        }
    } else if (t->status >= 300 || (rc == CURLE_OK && t->status >= 100 && t->status < 200)) {
        v.kind = is_transient(t->status) ? VERDICT_TRANSIENT : VERDICT_FAILED;
        SAY(&v, "HTTP Error %d: %.*s", t->status, REASON_SHOWN, t->reason);
    } else if (t->forbidden) {
        SAY(&v, "Use of image disallowed by X-Robots-Tag directive");
    } else if (t->too_large || rc == CURLE_FILESIZE_EXCEEDED) {
        SAY(&v, "body too large");
    } else if (rc == CURLE_OK && t->status >= 200) {
        v.kind = VERDICT_OK;
    } else {
        judge_error(t, rc, &v);
    }
    *ret = v;
}
