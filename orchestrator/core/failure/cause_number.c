/* Signs that are numbers, or that stand for one: errno, HTTP status, signal, exit code, and the
 * error numbers of libraries. */
#include "cause_read.h"
#include <ctype.h>
#include <strings.h>

static const struct {
    int number;
    const char *name;
    const char *message;
    enum cause cause;
} errnos[] = {
#define X(number, name, message, c) {number, name, message, CAUSE_##c},
#include "cause_errno.def"
#undef X
};

static enum cause by_errno_number(int number)
{
    for (size_t i = 0; i < ARRAY_LEN(errnos); i++) {
        if (errnos[i].number == number) {
            return errnos[i].cause;
        }
    }
    return CAUSE_UNKNOWN;
}

/* "[Errno 28]", "errno: 28", "(os error 28)", "Os { code: 28", "ENOSPC": the last one counts, since
 * what caused it is printed before what it led to by few and after it by most. */
enum cause cause_by_errno(const struct folded *f)
{
    static const char *const marks[] = {"errno", "os error", "os { code"};
    enum cause found = CAUSE_UNKNOWN;
    for (size_t m = 0; m < ARRAY_LEN(marks); m++) {
        if (!cause_has(f, marks[m])) {
            continue;
        }
        for (const char *p = f->s; (p = strstr(p, marks[m])) != NULL;) {
            int number;
            p += strlen(marks[m]);
            if (cause_number_at(p, &number) && by_errno_number(number) != CAUSE_UNKNOWN) {
                found = by_errno_number(number);
            }
        }
    }
    for (size_t i = 0; found == CAUSE_UNKNOWN && i < ARRAY_LEN(errnos); i++) {
        if (cause_has(f, errnos[i].name) && cause_find_word(f->s, f->s, errnos[i].name) != NULL) {
            found = errnos[i].cause;
        }
    }
    for (size_t i = 0; found == CAUSE_UNKNOWN && i < ARRAY_LEN(errnos); i++) {
        if (errnos[i].message[0] != '\0' && cause_has(f, errnos[i].message)) {
            found = errnos[i].cause;
        }
    }
    return found;
}

enum library { CURL, CUDA, NCCL, AWS, ARIA2, MYSQL };

static enum cause of_library(enum library library, int number)
{
    static const struct {
        enum library library;
        int number;
        enum cause cause;
    } numbers[] = {
#define X(library, number, c) {library, number, CAUSE_##c},
#include "cause_library.def"
#undef X
    };
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        if (numbers[i].library == library && numbers[i].number == number) {
            return numbers[i].cause;
        }
    }
    return CAUSE_UNKNOWN;
}

/* "curl: (28)", "cuda runtime error (2)": a library's own number. */
enum cause cause_by_library_number(const struct folded *f)
{
    static const struct {
        enum library library;
        const char *mark;
    } marks[] = {{CURL, "curl: ("},
                 {CURL, "curl error "},
                 {CURL, "curlcode: "},
                 {CURL, "curl failed with code "},
                 {CURL, "rpc failed; curl "},
                 {CURL, "libcurl-errors.html for error code: "},
                 {CUDA, "cuda runtime error ("},
                 {CUDA, "cuda failure "},
                 {CUDA, "cudagetdevicecount(). error "},
                 {NCCL, "nccl error "},
                 {AWS, "aws error [code "},
                 {MYSQL, "mysql error "},
                 {MYSQL, "operationalerror: ("},
                 {MYSQL, "programmingerror: ("},
                 {MYSQL, "integrityerror: ("},
                 {MYSQL, "dataerror: ("},
                 {MYSQL, "internalerror: ("},
                 {MYSQL, "operationalerror) ("},
                 {MYSQL, "programmingerror) ("},
                 {MYSQL, "integrityerror) ("},
                 {MYSQL, "dataerror) ("},
                 {ARIA2, "errorcode="}};
    for (size_t m = 0; m < ARRAY_LEN(marks); m++) {
        int number;
        const char *p = cause_has(f, marks[m].mark) ? strstr(f->s, marks[m].mark) : NULL;
        if (p == NULL || !cause_number_at(p + strlen(marks[m].mark), &number)) {
            continue;
        }
        enum cause c = of_library(marks[m].library, number);
        if (c != CAUSE_UNKNOWN) {
            return c;
        }
    }
    return CAUSE_UNKNOWN;
}

static enum cause of_sqlstate(const char *state)
{
    static const struct {
        const char *start;
        enum cause cause;
    } states[] = {
#define X(start, c) {start, CAUSE_##c},
#include "cause_sqlstate.def"
#undef X
    };
    static const char chars[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    bool whole = strspn(state, chars) == 5 && strcspn(state, "0123456789") < 5;
    for (size_t i = 0; i < ARRAY_LEN(states) && whole; i++) {
        if (strncmp(state, states[i].start, strlen(states[i].start)) == 0) {
            return states[i].cause;
        }
    }
    return CAUSE_UNKNOWN;
}

/* "SQLSTATE: 42P01", "SQLSTATE[23000]", "ERROR 1064 (42000): ". */
enum cause cause_by_sqlstate(const struct folded *f)
{
    static const char *const marks[] = {"sqlstate", "sql state"};
    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        const char *p = cause_has(f, marks[i]) ? strstr(f->s, marks[i]) : NULL;
        if (p != NULL) {
            p += strlen(marks[i]);
            return of_sqlstate(p + strspn(p, " :=[('\""));
        }
    }
    for (const char *p = f->s; (p = strstr(p, " (")) != NULL; p += 2) {
        const char *number = p;
        while (number > f->s && isdigit((unsigned char)number[-1])) {
            number--;
        }
        int code;
        if (number < p && strspn(p + 2, "0123456789hys") == 5 && strncmp(p + 7, "): ", 3) == 0 &&
            cause_number_at(number, &code)) {
            enum cause c = p - number == 4 ? of_library(MYSQL, code) : CAUSE_UNKNOWN;
            return c != CAUSE_UNKNOWN ? c : of_sqlstate(p + 2);
        }
    }
    return CAUSE_UNKNOWN;
}

static enum cause of_http_status(int status)
{
    switch (status) {
    case 401:
    case 403:
    case 451:
        return CAUSE_ACCESS_DENIED;
    case 404:
    case 410:
    case 413:
    case 416:
        return CAUSE_BAD_INPUT;
    case 407:
    case 408:
        return CAUSE_NETWORK;
    case 429:
        return CAUSE_THROTTLED;
    case 501: /* what was asked for is not there, and will not be the next time */
        return CAUSE_BAD_REQUEST;
    default:
        return status >= 500 && status < 600   ? CAUSE_INTERNAL
               : status >= 400 && status < 500 ? CAUSE_BAD_REQUEST
                                               : CAUSE_UNKNOWN;
    }
}

/* "403 Client Error", "HTTP Error 503", "status code: 404", "an error occurred (403) when". */
enum cause cause_by_http_status(const struct folded *f)
{
    static const char *const before[] = {"an error occurred",
                                         "error",
                                         "status code",
                                         "statuscode",
                                         "http/1.1",
                                         "http/2",
                                         "response code",
                                         "status",
                                         "http",
                                         "http code",
                                         "http error code",
                                         "error code",
                                         "\"code\"",
                                         "action failed <",
                                         "response",
                                         "returned",
                                         "responded with",
                                         "returned error",
                                         "request failed",
                                         "awaiting response...",
                                         "ignoring response <",
                                         "crawled (",
                                         "times)",
                                         "too many"};
    static const char *const fields[] = {
        "\"code\":", "\"status\":", "'code':", "'status':", "apiexception: ("};
    static const char *const behind[] = {" client error", " server error"};
    int status;
    /* what a service answers is not there is what was asked of it, no data */
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        const char *p = cause_has(f, fields[i]) ? strstr(f->s, fields[i]) : NULL;
        if (p != NULL && cause_number_at(p + strlen(fields[i]), &status) &&
            of_http_status(status) != CAUSE_UNKNOWN) {
            return status == 404 ? CAUSE_BAD_REQUEST : of_http_status(status);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(before); i++) {
        const char *p = cause_has(f, before[i]) ? f->s : NULL;
        while (p != NULL && (p = strstr(p, before[i])) != NULL) {
            p += strlen(before[i]);
            if (cause_number_at(p, &status) && of_http_status(status) != CAUSE_UNKNOWN) {
                return of_http_status(status);
            }
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(behind); i++) {
        const char *p = cause_has(f, behind[i]) ? strstr(f->s, behind[i]) : NULL;
        if (p != NULL && p - f->s >= 3 && cause_number_at(p - 3, &status)) {
            return of_http_status(status);
        }
    }
    return CAUSE_UNKNOWN;
}

static const struct {
    int number;
    const char *name; /* whole words */
    enum cause cause;
} signals[] = {
#define X(number, name, c) {number, name, CAUSE_##c},
#include "cause_signal.def"
#undef X
};

static enum cause of_signal(int number)
{
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        if (signals[i].number == number) {
            return signals[i].cause;
        }
    }
    return CAUSE_UNKNOWN;
}

/* Launchers end the others with SIGTERM when one has failed: that is no sign. */
static bool is_aftermath(const char *s, const char *at)
{
    static const char mark[] = "closing signal ";
    size_t n = sizeof mark - 1;
    return (size_t)(at - s) >= n && strncmp(at - n, mark, n) == 0 && strncmp(at, "sigterm", 7) == 0;
}

/* A line in which a shell says of what its program died, and nothing else, or behind a bar of
 * progress: "Killed", "Aborted (core dumped)". */
static enum cause of_lone_line(struct str text)
{
    enum cause found = CAUSE_UNKNOWN;
    while (text.n > 0) {
        struct str line = str_trim(str_split(&text, '\n'));
        ptrdiff_t core = str_find(line, STR(" (core dumped)"));
        line.n = core > 0 ? (size_t)core : line.n;
        const char *bar = line.n > 0 ? memrchr(line.p, ']', line.n) : NULL;
        if (bar != NULL) { /* behind a bar of progress: "3.10it/s]Killed" */
            line = str_trim((struct str){bar + 1, line.n - (size_t)(bar + 1 - line.p)});
        }
        for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
            size_t n = strlen(signals[i].name);
            if (line.n == n && strncasecmp(line.p, signals[i].name, n) == 0 &&
                isupper((unsigned char)line.p[0])) {
                found = signals[i].cause;
            }
        }
    }
    return found;
}

/* "got signal: 15", "signal 9 (Killed)", "killed by signal: Bus error", "SIGHUP": the first in the
 * text, since what may follow is only spoken of. */
enum cause cause_by_signal(const struct folded *f)
{
    for (const char *p = f->s; (p = cause_find_word(f->s, p, "signal")) != NULL;) {
        int number;
        p += strlen("signal");
        if (cause_number_at(p, &number) && of_signal(number) != CAUSE_UNKNOWN) {
            return of_signal(number);
        }
        p += strspn(p, " :='\"(");
        for (size_t i = 0; i < ARRAY_LEN(signals) && !is_aftermath(f->s, p); i++) {
            const char *name = signals[i].name;
            size_t n = strlen(name);
            size_t bare = strncmp(name, "sig", 3) == 0 ? 3 : 0; /* "Handling signal: term" */
            if (strncmp(p, name, n) == 0 || (bare > 0 && strncmp(p, name + bare, n - bare) == 0 &&
                                             !cause_is_word(p[n - bare]))) {
                return signals[i].cause;
            }
        }
    }
    if (of_lone_line(f->text) != CAUSE_UNKNOWN) {
        return of_lone_line(f->text);
    }
    const char *first = NULL;
    enum cause found = CAUSE_UNKNOWN;
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        if (strncmp(signals[i].name, "sig", 3) != 0 || !cause_has(f, signals[i].name)) {
            continue;
        }
        const char *p = cause_find_word(f->s, f->s, signals[i].name);
        if (p != NULL && !is_aftermath(f->s, p) && (first == NULL || p < first)) {
            first = p;
            found = signals[i].cause;
        }
    }
    return found;
}

bool cause_find_exit_code(const struct folded *f, int *ret)
{
    static const char *const words[] = {"exit code",          "exitcode",
                                        "exit_code",          "exit status",
                                        "exited with",        "return code",
                                        "errorcode",          "returned code",
                                        "exit with",          "exiting with",
                                        "successfully: exit", "failed with code",
                                        "failed with status", "code=exited, status",
                                        "exited (",           "finished with status",
                                        "finished with code", "systemexit"};
    const char *last = NULL;
    for (size_t w = 0; w < ARRAY_LEN(words); w++) {
        if (!cause_has(f, words[w])) {
            continue;
        }
        for (const char *p = f->s; (p = strstr(p, words[w])) != NULL;) {
            const char *start = p;
            int number;
            p += strlen(words[w]);
            const char *q = p;
            q += strncmp(q, " status", 7) == 0 ? 7 : 0;
            q += strncmp(q, " code", 5) == 0 ? 5 : 0;
            q += strncmp(q, " is", 3) == 0 ? 3 : 0;
            if (start >= last && cause_number_at(q, &number)) {
                last = start;
                *ret = number;
            }
        }
    }
    return last != NULL;
}

enum cause cause_of_exit(int code, bool silent)
{
    if (code < 0) {
        return of_signal(-code);
    }
    switch (code) {
    case 65:
        return silent ? CAUSE_BAD_INPUT : CAUSE_USER_CODE;
    case 74:
        return silent ? CAUSE_DISK_FULL : CAUSE_USER_CODE;
    case 75:
        return silent ? CAUSE_NETWORK : CAUSE_USER_CODE;
    case 77:
        return silent ? CAUSE_ACCESS_DENIED : CAUSE_USER_CODE;
    case 126:
    case 127:
        return CAUSE_BAD_IMAGE; /* entry point not executable, or missing */
    case 132:
        return CAUSE_UNKNOWN; /* an illegal instruction: the image's, or the machine's */
    default:
        return code > 128 && code < 165 ? of_signal(code - 128)
               : code > 0 && code < 125 ? CAUSE_USER_CODE
                                        : CAUSE_UNKNOWN;
    }
}
