/* An error value. It is filled once where the error arises, prefixed on the way up, and logged by
 * the outermost layer only. Fixed size, no allocation, so reporting an error cannot fail.
 * Text: lower case, no full stop, subject quoted: cannot open 'x': permission denied. */
#pragma once
#include "base.h"

enum retry_class { RETRY_NEVER, RETRY_BACKOFF };

enum err_code {
#define X(code, name, http, retry, exit_status) ERR_##code,
#include "err_codes.def"
#undef X
    ERR_CODE_COUNT
};

struct err {
    enum err_code code;
    int os_errno;        /* 0 when none */
    int http_status;     /* status of the remote answer, 0 when none */
    char sqlstate[6];    /* "" when none */
    char aws_code[64];   /* "ResourceInUse", "ThrottlingException"; "" when none */
    char request_id[64]; /* of the remote answer, "" when none */
    char where[48];      /* file:line where the error arose */
    char message[768];
};

#define ERR_INIT                                                                                   \
    {                                                                                              \
        .code = ERR_NONE                                                                           \
    }

/* Fill *err (NULL allowed) and give false, so that `return err_set(...)` ends a function. They are
 * macros so that compilers and analyzers see the false. */
#define err_set(err, code, ...) (err_set_at((err), (code), __FILE__, __LINE__, __VA_ARGS__), false)
void err_set_at(struct err *err, enum err_code code, const char *file, int line, const char *fmt,
                ...) PRINTF(5, 6);
/* As err_set, with ": " and strerror(os_errno) appended; os_errno is kept. */
#define err_set_os(err, code, os_errno, ...)                                                       \
    (err_set_os_at((err), (code), (os_errno), __FILE__, __LINE__, __VA_ARGS__), false)
void err_set_os_at(struct err *err, enum err_code code, int os_errno, const char *file, int line,
                   const char *fmt, ...) PRINTF(6, 7);
/* Put context and ": " in front of the message, give false. */
#define err_wrap(err, ...) (err_wrap_with((err), __VA_ARGS__), false)
void err_wrap_with(struct err *err, const char *fmt, ...) PRINTF(2, 3);
void err_clear(struct err *err);

const char *err_code_name(enum err_code code);
int err_code_http(enum err_code code);
enum retry_class err_code_retry(enum err_code code);
int err_code_exit(enum err_code code);
