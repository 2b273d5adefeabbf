/* One event, one line, one write(2) to stderr, so lines of threads and processes do not mix. Either
 * the thread that logs writes, or a thread of its own does, from a ring that makes nobody wait. */
#include "common/log.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/json.h"
#include "common/log_people.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <unistd.h>

#define LOG_LINE_BYTES_MAX ((size_t)4096)
#define LOG_ROOM_AT_END    ((size_t)32) /* for "truncated" and the newline */
#define LOG_VALUE_BYTES    ((size_t)2048)
#define LOG_KEYS_MAX       64
#define LOG_FIELDS_MAX     16
#define LOG_RING_BYTES     ((size_t)256 * 1024)
#define LOG_LAST_WAIT_S    1
#define LOG_PAUSE_US       USEC_PER_SEC
#define LOG_PAUSE_MAX_US   (600 * USEC_PER_SEC)

static _Atomic(enum log_level) log_threshold = LOG_INFO;
static _Atomic(const char *) log_program;
static _Atomic(const char *) log_line_start = "";
/* suppressed lines, reported by this thread's next line */
static _Thread_local int64_t log_suppressed;

void log_set_level(enum log_level level)
{
    atomic_store(&log_threshold, level);
}

void log_set_program(const char *name)
{
    atomic_store(&log_program, name);
}

void log_set_line_start(const char *text)
{
    atomic_store(&log_line_start, text);
}

static const char *level_name(enum log_level level)
{
    switch (level) {
    case LOG_DEBUG:
        return "debug";
    case LOG_INFO:
        return "info";
    case LOG_WARN:
        return "warn";
    case LOG_ERROR:
        return "error";
    }
    return "error";
}

bool log_parse_level(const char *s, enum log_level *ret)
{
    for (enum log_level l = LOG_DEBUG; l <= LOG_ERROR; l++) {
        if (strcmp(s, level_name(l)) == 0) {
            *ret = l;
            return true;
        }
    }
    return false;
}

static bool is_secret(const char *key)
{
    static const char *const words[] = {"secret", "token", "authorization", "password",
                                        "signature"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcasestr(key, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* logfmt needs quotes around anything but a plain word. */
static bool is_word(const char *s)
{
    for (const char *p = s; *p != '\0'; p++) {
        if (*p <= ' ' || *p == '"' || *p == '=' || *p == '\\' || *p == 0x7f) {
            return false;
        }
    }
    return s[0] != '\0';
}

static void add_field(struct buf *b, bool json, const struct log_field *f)
{
    buf_add_cstr(b, json ? ",\"" : " ");
    buf_add_cstr(b, f->key);
    buf_add_cstr(b, json ? "\":" : "=");
    bool secret = is_secret(f->key);
    const char *s = secret ? "***" : f->s;
    if (!secret && f->kind == 'i') {
        buf_addf(b, "%lld", (long long)f->i);
    } else if (!secret && f->kind == 'b') {
        buf_add_cstr(b, f->i != 0 ? "true" : "false");
    } else if (s == NULL) {
        buf_add_cstr(b, "null");
    } else if (!json && is_word(s) && strlen(s) <= LOG_VALUE_BYTES) {
        buf_add_cstr(b, s);
    } else {
        json_escape(b, (struct str){s, strnlen(s, LOG_VALUE_BYTES)}, false);
    }
}

/* A field that does not fit is left out whole, so that the line stays valid; "truncated" is set. */
static void add_fields(struct buf *b, bool json, const struct log_field *fields, size_t n)
{
    bool truncated = false;
    for (size_t i = 0; i < n; i++) {
        size_t mark = b->n;
        add_field(b, json, &fields[i]);
        if (b->overflow || b->n > LOG_LINE_BYTES_MAX - LOG_ROOM_AT_END) {
            b->overflow = false;
            b->n = mark;
            truncated = true;
        }
    }
    if (truncated) {
        buf_add_cstr(b, json ? ",\"truncated\":true" : " truncated=true");
    }
}

static _Atomic(int64_t) dropped_n;

int64_t log_dropped(void)
{
    return atomic_load(&dropped_n);
}

static void write_out(struct str s)
{
    while (s.n > 0) {
        ssize_t w = write(STDERR_FILENO, s.p, s.n);
        if (w < 0 && errno == EAGAIN) {
            struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
            (void)poll(&p, 1, -1);
        } else if (w < 0 && errno != EINTR) {
            (void)atomic_fetch_add(&dropped_n, 1); /* stderr is gone, or its disk is full */
            return;
        } else if (w > 0) {
            s.p += w;
            s.n -= (size_t)w;
        }
    }
}

/* Whole lines, oldest first. Held for the time of a copy only. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t more, empty;
    pthread_t thread;
    bool on, stop, writing;
    size_t at, n; /* of the oldest byte; bytes */
    char bytes[LOG_RING_BYTES];
} ring = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

/* The oldest line, taken out of the ring into `to`. */
static size_t ring_take(char to[static LOG_LINE_BYTES_MAX])
{
    size_t n = 0;
    bool end = false;
    while (!end) {
        ASSERT(n < LOG_LINE_BYTES_MAX && ring.n > 0);
        to[n] = ring.bytes[ring.at];
        end = to[n++] == '\n';
        ring.at = (ring.at + 1) % LOG_RING_BYTES;
        ring.n--;
    }
    return n;
}

static void *ring_write(void *arg)
{
    char line[LOG_LINE_BYTES_MAX];
    (void)arg;
    (void)pthread_mutex_lock(&ring.lock);
    for (;;) {
        while (ring.n == 0 && !ring.stop) {
            (void)pthread_cond_wait(&ring.more, &ring.lock);
        }
        if (ring.n == 0) {
            break;
        }
        size_t n = ring_take(line);
        ring.writing = true;
        (void)pthread_mutex_unlock(&ring.lock);
        write_out((struct str){line, n});
        (void)pthread_mutex_lock(&ring.lock);
        ring.writing = false;
        if (ring.n == 0) {
            (void)pthread_cond_signal(&ring.empty);
        }
    }
    (void)pthread_mutex_unlock(&ring.lock);
    return NULL;
}

/* False: no thread writes, the one that logs has to. */
static bool ring_put(struct str line)
{
    (void)pthread_mutex_lock(&ring.lock);
    bool on = ring.on;
    if (on && line.n > LOG_RING_BYTES - ring.n) {
        (void)atomic_fetch_add(&dropped_n, 1);
    } else if (on) {
        size_t end = (ring.at + ring.n) % LOG_RING_BYTES;
        size_t first = MIN(line.n, LOG_RING_BYTES - end);
        memcpy(ring.bytes + end, line.p, first);
        memcpy(ring.bytes, line.p + first, line.n - first);
        ring.n += line.n;
        (void)pthread_cond_signal(&ring.more);
    }
    (void)pthread_mutex_unlock(&ring.lock);
    return on;
}

bool log_start_writer(struct err *err)
{
    sigset_t all, before;
    pthread_condattr_t mono;
    ASSERT(!ring.on);
    (void)pthread_condattr_init(&mono);
    (void)pthread_condattr_setclock(&mono, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&ring.empty, &mono);
    (void)pthread_condattr_destroy(&mono);
    ring.stop = false;
    (void)sigfillset(&all); /* signals are the loop's */
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&ring.thread, NULL, ring_write, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_mutex_lock(&ring.lock);
    ring.on = failed == 0;
    (void)pthread_mutex_unlock(&ring.lock);
    return failed == 0 || err_set(err, ERR_UNAVAILABLE, "no thread for the log");
}

void log_stop_writer(void)
{
    struct timespec until;
    int late = 0;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += LOG_LAST_WAIT_S;
    (void)pthread_mutex_lock(&ring.lock);
    bool on = ring.on;
    while (on && (ring.n > 0 || ring.writing) && late == 0) {
        late = pthread_cond_timedwait(&ring.empty, &ring.lock, &until);
    }
    bool stuck = on && (ring.n > 0 || ring.writing);
    ring.stop = on && !stuck;
    ring.on = stuck;
    (void)pthread_cond_signal(&ring.more);
    (void)pthread_mutex_unlock(&ring.lock);
    if (on && !stuck) {
        (void)pthread_join(ring.thread, NULL);
    }
}

static void write_line(struct str line)
{
    if (!ring_put(line)) {
        write_out(line);
    }
}

/* Secrets stay out of every form of a line. */
static void add_sentence(struct buf *b, enum log_level level, const char *event,
                         const struct log_field *fields, size_t n)
{
    struct log_field told[LOG_FIELDS_MAX];
    n = MIN(n, ARRAY_LEN(told));
    for (size_t i = 0; i < n; i++) {
        told[i] = is_secret(fields[i].key) ? LF_S(fields[i].key, "***") : fields[i];
    }
    log_add_sentence(b, atomic_load(&log_program), level, event, told, n);
    b->overflow = false;
    b->n = MIN(b->n, LOG_LINE_BYTES_MAX - LOG_ROOM_AT_END);
}

void log_people(const char *fmt, ...)
{
    if (!log_for_people()) {
        return;
    }
    AUTO_BUF struct buf b = BUF_INIT(LOG_LINE_BYTES_MAX);
    char text[LOG_VALUE_BYTES];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    buf_add_cstr(&b, atomic_load(&log_line_start));
    buf_add_cstr(&b, text);
    buf_add_cstr(&b, "\n");
    write_line(buf_str(&b));
}

void log_event_at(enum log_level level, const char *event, const struct log_field *fields, size_t n)
{
    bool people = log_for_people();
    if (level < atomic_load_explicit(&log_threshold, memory_order_relaxed) ||
        (people && level < LOG_WARN)) {
        return;
    }
    int saved_errno = errno;
    bool json = isatty(STDERR_FILENO) == 0 || log_terminal_style() == LOG_STYLE_JSON;
    AUTO_BUF struct buf b = BUF_INIT(LOG_LINE_BYTES_MAX);
    char ts[32];
    clock_format_rfc3339(clock_wall_us(), true, ts);
    const char *program = atomic_load(&log_program);
    buf_add_cstr(&b, json ? "" : atomic_load(&log_line_start));
    struct log_field head[3];
    size_t head_n = 0;
    if (program != NULL) {
        head[head_n++] = LF_S("program", program);
    }
    head[head_n++] = LF_S("event", event);
    if (log_suppressed > 0) {
        head[head_n++] = LF_I("suppressed", log_suppressed);
        log_suppressed = 0;
    }
    if (people) {
        add_sentence(&b, level, event, fields, n);
    } else {
        buf_addf(&b, json ? "{\"ts\":\"%s\",\"level\":\"%s\"" : "ts=%s level=%s", ts,
                 level_name(level));
        add_fields(&b, json, head, head_n);
        add_fields(&b, json, fields, n);
    }
    buf_add_cstr(&b, json ? "}\n" : "\n");
    write_line(buf_str(&b));
    errno = saved_errno;
}

/* Keys share LOG_KEYS_MAX entries by hash, so memory is fixed. Two keys that collide share a rate,
 * which only suppresses more. */
static struct log_rate {
    int64_t asked_us, next_us, pause_us;
    int64_t held;
} log_rates[LOG_KEYS_MAX];
static pthread_mutex_t log_rates_lock = PTHREAD_MUTEX_INITIALIZER;

/* True: it is told now. */
static bool rate_pass(struct log_rate *r, int64_t now_us)
{
    bool fresh = r->pause_us == 0 || now_us - r->asked_us > 2 * r->pause_us;
    r->asked_us = now_us;
    if (!fresh && now_us < r->next_us) {
        r->held++;
        return false;
    }
    r->pause_us = fresh ? LOG_PAUSE_US : MIN(2 * r->pause_us, LOG_PAUSE_MAX_US);
    r->next_us = now_us + r->pause_us;
    return true;
}

bool log_allow(const char *key)
{
    struct log_rate *r = &log_rates[hash_crc32(key, strlen(key)) % LOG_KEYS_MAX];
    (void)pthread_mutex_lock(&log_rates_lock);
    bool pass = rate_pass(r, clock_mono_us());
    if (pass) {
        log_suppressed += r->held;
        r->held = 0;
    }
    (void)pthread_mutex_unlock(&log_rates_lock);
    return pass;
}
