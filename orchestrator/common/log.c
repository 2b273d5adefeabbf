/* One event, one line, one write(2) to stderr, so lines of threads and processes do not mix. */
#include "common/log.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/json.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define LOG_LINE_BYTES_MAX ((size_t)4096)
#define LOG_ROOM_AT_END    ((size_t)32) /* for "truncated" and the newline */
#define LOG_VALUE_BYTES    ((size_t)2048)
#define LOG_KEYS_MAX       64

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

static void write_line(const struct buf *b)
{
    struct str s = buf_str(b);
    while (s.n > 0) {
        ssize_t w = write(STDERR_FILENO, s.p, s.n);
        if (w < 0) {
            if (errno == EINTR) {
                continue;
            }
            return; /* stderr is gone */
        }
        s.p += w;
        s.n -= (size_t)w;
    }
}

void log_event_at(enum log_level level, const char *event, const struct log_field *fields, size_t n)
{
    if (level < atomic_load_explicit(&log_threshold, memory_order_relaxed)) {
        return;
    }
    int saved_errno = errno;
    bool json = isatty(STDERR_FILENO) == 0;
    AUTO_BUF struct buf b = BUF_INIT(LOG_LINE_BYTES_MAX);
    char ts[32];
    clock_format_rfc3339(clock_wall_us(), true, ts);
    const char *program = atomic_load(&log_program);
    buf_add_cstr(&b, json ? "" : atomic_load(&log_line_start));
    buf_addf(&b, json ? "{\"ts\":\"%s\",\"level\":\"%s\"" : "ts=%s level=%s", ts,
             level_name(level));
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
    add_fields(&b, json, head, head_n);
    add_fields(&b, json, fields, n);
    buf_add_cstr(&b, json ? "}\n" : "\n");
    write_line(&b);
    errno = saved_errno;
}

/* Keys share LOG_KEYS_MAX entries by hash, so memory is fixed. Two keys that collide share a rate,
 * which only suppresses more. */
static struct log_rate {
    int64_t second;
    int64_t passed;
    int64_t held;
} log_rates[LOG_KEYS_MAX];
static pthread_mutex_t log_rates_lock = PTHREAD_MUTEX_INITIALIZER;

bool log_allow(const char *key, int burst)
{
    struct log_rate *r = &log_rates[hash_crc32(key, strlen(key)) % LOG_KEYS_MAX];
    int64_t second = clock_mono_us() / USEC_PER_SEC;
    (void)pthread_mutex_lock(&log_rates_lock);
    if (r->second != second) {
        r->second = second;
        r->passed = 0;
    }
    bool pass = r->passed < burst;
    if (pass) {
        r->passed++;
        log_suppressed += r->held;
        r->held = 0;
    } else {
        r->held++;
    }
    (void)pthread_mutex_unlock(&log_rates_lock);
    return pass;
}
