/* A name of an error is one word of several humps ("InvalidSubnetID"), or one that ends in Error or
 * Exception. In a service's frame, or without a module before it, it is a service's code; behind a
 * module of a program it is an exception. */
#include "cause_read.h"
#include <ctype.h>

#define NAME_MAX_N 80

enum name_where { CODE, ANY };
static const struct {
    enum name_where where;
    enum cause cause;
    const char *part;
} parts[] = {
#define X(where, part, c) {where, CAUSE_##c, part},
#include "cause_name.def"
#undef X
};

struct name {
    char s[NAME_MAX_N + 1]; /* lower case */
    bool code;
};

/* The language's own exceptions: what they are called says nothing of the cause. */
static bool is_builtin(const char *s)
{
    static const char *const names[] = {
        "filenotfounderror", "modulenotfounderror",    "permissionerror",  "notimplementederror",
        "interruptederror",  "classnotfoundexception", "runtimeexception", "illegalstateexception",
        "invalidstateerror", "notadirectoryerror"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(s, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static enum cause cause_of_name(const struct name *name)
{
    if (is_builtin(name->s)) {
        return CAUSE_UNKNOWN;
    }
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if ((parts[i].where == ANY || name->code) && strstr(name->s, parts[i].part) != NULL) {
            return parts[i].cause;
        }
    }
    return CAUSE_UNKNOWN;
}

static bool ends_with(const char *s, size_t n, const char *end)
{
    size_t m = strlen(end);
    return n > m && memcmp(s + n - m, end, m) == 0;
}

/* Two humps at least: "NoSuchKey", not "Unknown", "HTTP" or "some_name". */
static bool has_humps(const char *s, size_t n)
{
    int humps = 0;
    for (size_t i = 0; i < n; i++) {
        bool upper = isupper((unsigned char)s[i]);
        bool before = i > 0 && islower((unsigned char)s[i - 1]);
        bool behind = i + 1 < n && islower((unsigned char)s[i + 1]);
        humps += upper && (before || behind);
    }
    return humps >= 2;
}

/* Is the word told as the name of an error: "Name:", "Name (", "(Name)", "Name" at the end? */
static bool is_told(const char *start, const char *from, const char *end)
{
    bool opened = from > start && strchr("(\"'>", from[-1]) != NULL;
    bool closed = *end != '\0' && strchr(")\"'<(,;", *end) != NULL;
    bool colon = end[0] == ':' && (end[1] == ' ' || end[1] == '\0' || end[1] == '"');
    bool spaced =
        strncmp(end, " : ", 3) == 0 || strncmp(end, " => ", 4) == 0 || strncmp(end, " - ", 3) == 0;
    return colon || closed || spaced || *end == '\0' || (opened && closed);
}

/* Is what stands before a dot a module: "botocore.exceptions.", not "Client."? */
static bool has_module(const char *start, const char *from)
{
    const char *p = from - 1;
    if (from == start || *p != '.') {
        return false;
    }
    while (p > start && cause_is_word(p[-1])) {
        p--;
    }
    return islower((unsigned char)*p) || *p == '_';
}

/* "ACCESS_DENIED": the same word in another fashion. */
static bool read_constant(const char *from, size_t n, struct name *ret)
{
    size_t m = 0;
    for (size_t i = 0; i < n && n <= NAME_MAX_N; i++) {
        if (!isupper((unsigned char)from[i]) && !isdigit((unsigned char)from[i]) &&
            from[i] != '_') {
            return false;
        }
        ret->s[m] = (char)tolower((unsigned char)from[i]);
        m += from[i] != '_';
    }
    ret->s[m] = '\0';
    ret->code = false;
    return m > 0 && m < n && from[n] != '/'; /* "TOO_MANY_REQUESTS/12/disk usage": a block */
}

static bool read_name(const struct folded *f, const char *from, size_t n, struct name *ret)
{
    bool suffix = ends_with(from, n, "Error") || ends_with(from, n, "Exception");
    if (n > NAME_MAX_N || !isupper((unsigned char)*from) || (!suffix && !has_humps(from, n))) {
        return false;
    }
    size_t at = (size_t)(from - f->raw);
    bool service = at >= 9 && strncmp(f->s + at - 9, "occurred (", 9) == 0;
    bool botocore = at >= 11 && strncmp(f->s + at - 11, "exceptions.", 11) == 0 &&
                    strstr(f->s, "botocore") != NULL;
    bool bare = !has_module(f->raw, from) && !ends_with(from, n, "Error");
    memcpy(ret->s, f->s + at, n);
    ret->s[n] = '\0';
    ret->code = service || botocore || bare;
    bool framed = suffix && strncmp(from + n, " at ", 4) == 0; /* a frame of the JVM */
    return framed || is_told(f->raw, from, from + n);
}

enum cause cause_by_name(const struct folded *f)
{
    const char *p = f->raw;
    while (*p != '\0') {
        size_t n = 0;
        while (cause_is_word(p[n])) {
            n++;
        }
        struct name name;
        enum cause c = n > 0 && (read_name(f, p, n, &name) || read_constant(p, n, &name))
                           ? cause_of_name(&name)
                           : CAUSE_UNKNOWN;
        if (c != CAUSE_UNKNOWN) {
            return c;
        }
        p += n > 0 ? n : 1;
    }
    return CAUSE_UNKNOWN;
}

/* Names that frame a failure and do not tell it. */
static bool is_frame(const char *name, size_t n)
{
    static const char *const frames[] = {"clienterror",
                                         "algorithmerror",
                                         "executeuserscripterror",
                                         "unexpectedstatusexception",
                                         "failedstatuserror",
                                         "py4jjavaerror",
                                         "killedworker",
                                         "airflowexception",
                                         "executionexception",
                                         "workflowexception",
                                         "notebookexecutionexception",
                                         "invocationtargetexception",
                                         "undeclaredthrowableexception"};
    for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
        if (strlen(frames[i]) == n && strncmp(name, frames[i], n) == 0) {
            return true;
        }
    }
    return false;
}

/* "SYSTEM_ERROR": a kind of end, no exception. */
static bool is_constant(const char *raw, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (islower((unsigned char)raw[i])) {
            return false;
        }
    }
    return memchr(raw, '_', n) != NULL;
}

/* Does the word that ends before `end` name an exception: "ValueError:", "pkg.SomeException("? */
static bool names_exception(const struct folded *f, const char *end, size_t suffix_n)
{
    const char *s = f->s;
    const char *p = end;
    while (p > s && cause_is_word(p[-1])) {
        p--;
    }
    bool told = *end != '\0' ? strchr(":()'\"", *end) != NULL : true;
    bool code = p > s && p[-1] == '('; /* a service's error code, in its own frame */
    size_t word_n = (size_t)(end - p);
    bool of_module = p > s && p[-1] == '.'; /* "mpi4py.MPI.Exception: " */
    return told && !code && (word_n > suffix_n || of_module) && !is_frame(p, word_n) &&
           !is_constant(f->raw + (p - s), word_n);
}

/* Does a client tell what a service answered? Botocore, and the SDKs for Go, Java, C++, Ruby, Rust
 * and JavaScript, each in its own words. */
bool cause_is_refusal(const struct folded *f)
{
    static const char *const frames[] = {"an error occurred (",
                                         "botocore.errorfactory.",
                                         "api error ",
                                         "(service: ",
                                         "https response error statuscode: 4",
                                         "::errors::",
                                         "aws error ",
                                         "<error><code>",
                                         "serviceerror(",
                                         "awserr",
                                         "\"__type\":"};
    bool empty = cause_has(f, "code: none, message: none"); /* Rust: an answer that says nothing */
    for (size_t i = 0; i < ARRAY_LEN(frames) && !empty; i++) {
        if (cause_has(f, frames[i])) {
            return true;
        }
    }
    return false;
}

/* Exceptions by which clients of the service tell that a job has failed, not why. */
static bool tells_of_job(const char *behind)
{
    static const char *const words[] = {"error for ", "error training ", "training job couldn",
                                        "training job could not", "training job failed"};
    behind += strspn(behind, ": ");
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strncmp(behind, words[i], strlen(words[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* "chainer.utils.type_check.InvalidType: ": a class of a module that begins a text. */
static bool begins_with_class(const struct folded *f)
{
    const char *rank = f->raw[0] == '[' ? strstr(f->raw, "]: ") : NULL; /* "[rank0]: " */
    const char *raw = rank != NULL ? rank + 3 : f->raw;
    const char *p = raw;
    const char *name = raw;
    while (cause_is_word(*p) || *p == '.') {
        name = *p == '.' ? p + 1 : name;
        p++;
    }
    bool module = islower((unsigned char)*raw) || *raw == '_';
    return module && name > raw && isupper((unsigned char)name[0]) &&
           islower((unsigned char)name[1]) && p[0] == ':' && p[1] == ' ' &&
           !is_frame(f->s + (name - f->raw), (size_t)(p - name));
}

bool cause_has_exception(const struct folded *f)
{
    static const char *const suffixes[] = {"error", "exception"};
    static const char *const modules[] = {"errors.", "exceptions.", ".exc.", "error."};
    static const char *const others[] = {"~stopiteration", "~stopasynciteration", "~generatorexit",
                                         "~systemexit"};
    if (cause_has(f, "traceback (most recent call last)") ||
        strncmp(f->s, "exception: ", 11) == 0 || begins_with_class(f)) {
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(modules); i++) {
        const char *p = cause_has(f, modules[i]) ? strstr(f->s, modules[i]) : NULL;
        size_t at = p == NULL ? 0 : (size_t)(p - f->s) + strlen(modules[i]);
        size_t n = strspn(f->s + at, "abcdefghijklmnopqrstuvwxyz");
        if (p != NULL && isupper((unsigned char)f->raw[at]) && !is_frame(f->s + at, n)) {
            return true;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        if (cause_has(f, others[i])) {
            return true;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        size_t n = strlen(suffixes[i]);
        for (const char *p = f->s;
             cause_has(f, suffixes[i]) && (p = strstr(p, suffixes[i])) != NULL;) {
            p += n;
            if (!cause_is_word(*p) && names_exception(f, p, n) && !tells_of_job(p)) {
                return true;
            }
        }
    }
    return false;
}
