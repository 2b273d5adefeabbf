/* Events as sentences. */
#include "common/log_people.h"
#include <stdatomic.h>
#include <unistd.h>

#define VALUE_BYTES_MAX ((size_t)2048)

static _Atomic(enum log_style) terminal_style = LOG_STYLE_LOGFMT;

void log_set_terminal_style(enum log_style style)
{
    atomic_store(&terminal_style, style);
}

enum log_style log_terminal_style(void)
{
    return atomic_load(&terminal_style);
}

bool log_for_people(void)
{
    return log_terminal_style() == LOG_STYLE_SENTENCE && isatty(STDERR_FILENO) == 1;
}

/* Bytes of the UTF-8 sequence that begins with this byte. */
static size_t sequence_n(uint8_t c)
{
    return c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
}

void log_add_printable(struct buf *b, struct str s)
{
    for (size_t i = 0; i < s.n;) {
        uint8_t c = (uint8_t)s.p[i];
        size_t n = MIN(sequence_n(c), s.n - i);
        bool c1 = n == 2 && c == 0xc2 && (uint8_t)s.p[i + 1] < 0xa0;
        bool good = c >= 0x20 && c != 0x7f && !c1 && str_is_utf8((struct str){s.p + i, n});
        n = good || c1 ? n : 1;
        buf_add(b, good ? s.p + i : "?", good ? n : 1);
        i += n;
    }
}

static void add_value(struct buf *b, const struct log_field *f)
{
    if (f->kind == 's') {
        const char *s = f->s != NULL ? f->s : "";
        log_add_printable(b, (struct str){s, strnlen(s, VALUE_BYTES_MAX)});
    } else {
        buf_addf(b, "%lld", (long long)f->i);
    }
}

static bool is_for_programs(const struct log_field *f)
{
    return strcmp(f->key, "error_code") == 0 || strcmp(f->key, "cause") == 0;
}

/* Event and keys are made of words joined by underscores. */
static void add_words(struct buf *b, const char *name)
{
    for (const char *p = name; *p != '\0'; p++) {
        buf_add_char(b, *p == '_' ? ' ' : *p);
    }
}

void log_add_sentence(struct buf *b, const char *program, enum log_level level, const char *event,
                      const struct log_field *fields, size_t n)
{
    buf_addf(b, "%s%s%s", program != NULL ? program : "", program != NULL ? ": " : "",
             level == LOG_WARN ? "warning: " : "");
    add_words(b, event);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(fields[i].key, "error") == 0) {
            buf_add_cstr(b, ": ");
            add_value(b, &fields[i]);
        }
    }
    bool open = false;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(fields[i].key, "error") == 0 || is_for_programs(&fields[i])) {
            continue;
        }
        buf_add_cstr(b, open ? ", " : " (");
        add_words(b, fields[i].key);
        buf_add_char(b, ' ');
        add_value(b, &fields[i]);
        open = true;
    }
    buf_add_cstr(b, open ? ")" : "");
}
