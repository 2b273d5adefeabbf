/* Error values: filling, prefixing, and the table of codes. */
#include "common/err.h"
#include <stdarg.h>

struct code_row {
    const char *name;
    int http;
    enum retry_class retry;
    int exit_status;
};
static const struct code_row codes[] = {
#define X(code, text, status, class, exit)                                                         \
    [ERR_##code] = {.name = (text), .http = (status), .retry = (class), .exit_status = (exit)},
#include "common/err_codes.def"
#undef X
};
_Static_assert(ARRAY_LEN(codes) == ERR_CODE_COUNT, "one row a code");

/* The file name without folders: where[] is short, and the name is enough to find the line. */
static void set_where(struct err *err, const char *file, int line)
{
    const char *slash = strrchr(file, '/');
    (void)snprintf(err->where, sizeof err->where, "%s:%d", slash == NULL ? file : slash + 1, line);
}

/* Cuts off what does not fit; the beginning of a message matters most. */
static void append(char *to, size_t size, const char *s)
{
    size_t at = strlen(to);
    size_t n = MIN(strlen(s), size - 1 - at);
    memcpy(to + at, s, n);
    to[at + n] = '\0';
}

/* Builds the message in a separate buffer, because an argument may point into *err. */
PRINTF(6, 0)
static void fill(struct err *err, enum err_code code, int os_errno, const char *file, int line,
                 const char *fmt, va_list ap)
{
    char message[sizeof err->message];
    ASSERT(code < ERR_CODE_COUNT);
    (void)vsnprintf(message, sizeof message, fmt, ap);
    memset(err, 0, sizeof *err);
    err->code = code;
    err->os_errno = os_errno;
    memcpy(err->message, message, sizeof message);
    set_where(err, file, line);
}

void err_set_at(struct err *err, enum err_code code, const char *file, int line, const char *fmt,
                ...)
{
    if (err != NULL) {
        va_list ap;
        va_start(ap, fmt);
        fill(err, code, 0, file, line, fmt, ap);
        va_end(ap);
    }
}

void err_set_os_at(struct err *err, enum err_code code, int os_errno, const char *file, int line,
                   const char *fmt, ...)
{
    if (err == NULL) {
        return;
    }
    va_list ap;
    va_start(ap, fmt);
    fill(err, code, os_errno, file, line, fmt, ap);
    va_end(ap);
    char text[128];
    const char *why = strerror_r(os_errno, text, sizeof text);
    append(err->message, sizeof err->message, ": ");
    append(err->message, sizeof err->message, why);
}

void err_wrap_with(struct err *err, const char *fmt, ...)
{
    if (err == NULL) {
        return;
    }
    char message[sizeof err->message];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    append(message, sizeof message, ": ");
    append(message, sizeof message, err->message);
    memcpy(err->message, message, sizeof message);
}

void err_clear(struct err *err)
{
    if (err != NULL) {
        memset(err, 0, sizeof *err);
    }
}

const char *err_code_name(enum err_code code)
{
    ASSERT(code < ERR_CODE_COUNT);
    return codes[code].name;
}

int err_code_http(enum err_code code)
{
    ASSERT(code < ERR_CODE_COUNT);
    return codes[code].http;
}

enum retry_class err_code_retry(enum err_code code)
{
    ASSERT(code < ERR_CODE_COUNT);
    return codes[code].retry;
}

int err_code_exit(enum err_code code)
{
    ASSERT(code < ERR_CODE_COUNT);
    return codes[code].exit_status;
}
