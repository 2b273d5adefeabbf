/* A text is folded once to lower case and single blanks; then each reader looks for its own kind
 * of sign, the surest kind first. What no reader knows is UNKNOWN, because a wrong cause wastes
 * retries or denies them. */
#include "cause_text.h"
#include <ctype.h>
#include <stdlib.h>

#define TEXT_MAX  4096 /* FailureReason has at most 1024 characters, API texts a few hundred */
#define PAIRS_MAX 2048

struct rule {
    enum cause cause;
    const char *a;
    const char *b;
};
static const struct rule rules[] = {
#define X(c, a, b) {CAUSE_##c, a, b},
#include "cause_platform.def"
#include "cause_program.def"
#undef X
};

struct folded {
    char s[TEXT_MAX + 1];
    uint64_t pairs[PAIRS_MAX / 64]; /* which two characters follow each other somewhere */
};

static unsigned pair_of(const char *p)
{
    return ((unsigned char)p[0] * 37U + (unsigned char)p[1]) % PAIRS_MAX;
}

static void fold(struct str text, struct folded *ret)
{
    size_t n = 0;
    memset(ret->pairs, 0, sizeof ret->pairs);
    for (size_t i = 0; i < text.n && n < TEXT_MAX; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c == 0 || isspace(c)) {
            if (n > 0 && ret->s[n - 1] != ' ') {
                ret->s[n++] = ' ';
            }
        } else {
            ret->s[n++] = (char)tolower(c);
        }
        if (n >= 4 && n + 3 <= TEXT_MAX && strncmp(ret->s + n - 3, "n't", 3) == 0) {
            bool can = ret->s[n - 4] == 'a'; /* "can't" to "cannot", "couldn't" to "could not" */
            memcpy(ret->s + n - 3, can ? "nnot" : " not", 4);
            n++;
        }
    }
    ret->s[n] = '\0';
    for (size_t i = 0; i + 1 < n; i++) {
        unsigned k = pair_of(ret->s + i);
        ret->pairs[k / 64] |= UINT64_C(1) << (k % 64);
    }
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Where `word` stands as a whole word at or behind `from`; NULL when nowhere. */
static const char *find_word(const char *s, const char *from, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = strstr(from, word); p != NULL; p = strstr(p + 1, word)) {
        if ((p == s || !is_word(p[-1])) && !is_word(p[n])) {
            return p;
        }
    }
    return NULL;
}

static bool has(const struct folded *f, const char *pattern)
{
    bool whole = pattern[0] == '~';
    const char *p = pattern + whole;
    if (p[0] == '\0') {
        return true;
    }
    unsigned k = pair_of(p);
    if (p[1] != '\0' && (f->pairs[k / 64] >> (k % 64) & 1) == 0) {
        return false;
    }
    return whole ? find_word(f->s, f->s, p) != NULL : strstr(f->s, p) != NULL;
}

static enum cause by_words(const struct folded *f)
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        if (has(f, rules[i].a) && has(f, rules[i].b)) {
            return rules[i].cause;
        }
    }
    return CAUSE_UNKNOWN;
}

/* A number of at most 5 digits behind blanks and separators; false when there is none. */
static bool number_at(const char *p, int *ret)
{
    // cppcheck-suppress nullPointerRedundantCheck ; the callers have found something at p
    p += strspn(p, " :='\"([#");
    bool negative = *p == '-';
    p += negative;
    size_t n = strspn(p, "0123456789");
    if (n == 0) {
        return false;
    }
    int value = 0;
    for (size_t i = 0; i < n && i < 5; i++) {
        value = value * 10 + (p[i] - '0');
    }
    *ret = negative ? -value : value;
    return true;
}

static const struct {
    int number;
    const char *name;
    enum cause cause;
} errnos[] = {
#define X(number, name, c) {number, name, CAUSE_##c},
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
static enum cause by_errno(const struct folded *f)
{
    static const char *const marks[] = {"errno", "os error", "os { code"};
    enum cause found = CAUSE_UNKNOWN;
    for (size_t m = 0; m < ARRAY_LEN(marks); m++) {
        if (!has(f, marks[m])) {
            continue;
        }
        for (const char *p = f->s; (p = strstr(p, marks[m])) != NULL;) {
            int number;
            p += strlen(marks[m]);
            if (number_at(p, &number) && by_errno_number(number) != CAUSE_UNKNOWN) {
                found = by_errno_number(number);
            }
        }
    }
    for (size_t i = 0; found == CAUSE_UNKNOWN && i < ARRAY_LEN(errnos); i++) {
        if (has(f, errnos[i].name) && find_word(f->s, f->s, errnos[i].name) != NULL) {
            found = errnos[i].cause;
        }
    }
    return found;
}

static const struct {
    const char *part;
    enum cause cause;
} code_parts[] = {
    {"throttl", CAUSE_THROTTLED},
    {"toomany", CAUSE_THROTTLED},
    {"limitexceeded", CAUSE_QUOTA},
    {"quota", CAUSE_QUOTA},
    {"capacity", CAUSE_CAPACITY},
    {"denied", CAUSE_ACCESS_DENIED},
    {"unauthorized", CAUSE_ACCESS_DENIED},
    {"notauthorized", CAUSE_ACCESS_DENIED},
    {"forbidden", CAUSE_ACCESS_DENIED},
    {"expired", CAUSE_ACCESS_DENIED},
    {"token", CAUSE_ACCESS_DENIED},
    {"signature", CAUSE_ACCESS_DENIED},
    {"internal", CAUSE_INTERNAL},
    {"unavailable", CAUSE_INTERNAL},
    {"timeout", CAUSE_NETWORK},
    {"nosuch", CAUSE_BAD_INPUT},
    {"notfound", CAUSE_BAD_REQUEST},
    {"invalid", CAUSE_BAD_REQUEST},
    {"malformed", CAUSE_BAD_REQUEST},
    {"missing", CAUSE_BAD_REQUEST},
    {"unsupported", CAUSE_BAD_REQUEST},
    {"validation", CAUSE_BAD_REQUEST},
    {"conflict", CAUSE_BAD_REQUEST},
    {"inuse", CAUSE_BAD_REQUEST},
    {"badrequest", CAUSE_BAD_REQUEST},
};

/* A service's error code by its parts: "An error occurred (Code) when calling", "Error Code:
 * Code". */
static enum cause by_service_code(const struct folded *f)
{
    static const char *const marks[] = {"an error occurred (", "error code: "};
    for (size_t m = 0; m < ARRAY_LEN(marks); m++) {
        const char *p = has(f, marks[m]) ? strstr(f->s, marks[m]) : NULL;
        if (p == NULL) {
            continue;
        }
        char code[80];
        p += strlen(marks[m]);
        size_t n = strcspn(p, ");, ");
        n = MIN(n, sizeof code - 1);
        memcpy(code, p, n);
        code[n] = '\0';
        for (size_t i = 0; i < ARRAY_LEN(code_parts); i++) {
            if (strstr(code, code_parts[i].part) != NULL) {
                return code_parts[i].cause;
            }
        }
    }
    return CAUSE_UNKNOWN;
}

static enum cause of_http_status(int status)
{
    switch (status) {
    case 401:
    case 403:
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
    default:
        return status >= 500 && status < 600   ? CAUSE_INTERNAL
               : status >= 400 && status < 500 ? CAUSE_BAD_REQUEST
                                               : CAUSE_UNKNOWN;
    }
}

/* "403 Client Error", "HTTP Error 503", "status code: 404", "an error occurred (403) when". */
static enum cause by_http_status(const struct folded *f)
{
    static const char *const before[] = {
        "an error occurred", "error",  "status code", "statuscode", "http/1.1", "http/2",
        "response code",     "status", "http",        "response",   "returned", "responded with",
        "returned error"};
    static const char *const behind[] = {" client error", " server error"};
    int status;
    for (size_t i = 0; i < ARRAY_LEN(before); i++) {
        const char *p = has(f, before[i]) ? f->s : NULL;
        while (p != NULL && (p = strstr(p, before[i])) != NULL) {
            p += strlen(before[i]);
            if (number_at(p, &status) && of_http_status(status) != CAUSE_UNKNOWN) {
                return of_http_status(status);
            }
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(behind); i++) {
        const char *p = has(f, behind[i]) ? strstr(f->s, behind[i]) : NULL;
        if (p != NULL && p - f->s >= 3 && number_at(p - 3, &status)) {
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

/* "got signal: 15", "signal 9 (Killed)", "killed by signal: Bus error", "SIGHUP": the first in the
 * text, since what may follow is only spoken of. */
static enum cause by_signal(const struct folded *f)
{
    for (const char *p = f->s; (p = find_word(f->s, p, "signal")) != NULL;) {
        int number;
        p += strlen("signal");
        if (number_at(p, &number) && of_signal(number) != CAUSE_UNKNOWN) {
            return of_signal(number);
        }
        p += strspn(p, " :='\"(");
        for (size_t i = 0; i < ARRAY_LEN(signals) && !is_aftermath(f->s, p); i++) {
            const char *name = signals[i].name;
            size_t n = strlen(name);
            size_t bare = strncmp(name, "sig", 3) == 0 ? 3 : 0; /* "Handling signal: term" */
            if (strncmp(p, name, n) == 0 ||
                (bare > 0 && strncmp(p, name + bare, n - bare) == 0 && !is_word(p[n - bare]))) {
                return signals[i].cause;
            }
        }
    }
    const char *first = NULL;
    enum cause found = CAUSE_UNKNOWN;
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        if (strncmp(signals[i].name, "sig", 3) != 0 || !has(f, signals[i].name)) {
            continue;
        }
        const char *p = find_word(f->s, f->s, signals[i].name);
        if (p != NULL && !is_aftermath(f->s, p) && (first == NULL || p < first)) {
            first = p;
            found = signals[i].cause;
        }
    }
    return found;
}

/* The number after the last words that announce an exit code; false when there are none. */
static bool find_exit_code(const struct folded *f, int *ret)
{
    static const char *const words[] = {"exit code",   "exitcode",      "exit_code",
                                        "exit status", "exited with",   "return code",
                                        "errorcode",   "returned code", "exit with"};
    const char *last = NULL;
    for (size_t w = 0; w < ARRAY_LEN(words); w++) {
        if (!has(f, words[w])) {
            continue;
        }
        for (const char *p = f->s; (p = strstr(p, words[w])) != NULL;) {
            const char *start = p;
            int number;
            p += strlen(words[w]);
            const char *q = p;
            q += strncmp(q, " status", 7) == 0 ? 7 : 0;
            q += strncmp(q, " code", 5) == 0 ? 5 : 0;
            if (start >= last && number_at(q, &number)) {
                last = start;
                *ret = number;
            }
        }
    }
    return last != NULL;
}

/* The cause of a bare exit code. The sysexits codes count only when the program wrote nothing. */
static enum cause of_exit(int code, bool silent)
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

/* Names that frame a failure and do not tell it. */
static bool is_frame(const char *name, size_t n)
{
    static const char *const frames[] = {"clienterror",
                                         "algorithmerror",
                                         "executeuserscripterror",
                                         "unexpectedstatusexception",
                                         "failedstatuserror",
                                         "py4jjavaerror"};
    for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
        if (strlen(frames[i]) == n && strncmp(name, frames[i], n) == 0) {
            return true;
        }
    }
    return false;
}

/* Does the word that ends before `end` name an exception: "ValueError:", "pkg.SomeException("? */
static bool names_exception(const char *s, const char *end, size_t suffix_n)
{
    const char *p = end;
    while (p > s && is_word(p[-1])) {
        p--;
    }
    bool told = *end == ':' || *end == '\0' || *end == '(' || *end == ')' || *end == '\'';
    bool code = p > s && p[-1] == '('; /* a service's error code, in its own frame */
    return told && !code && (size_t)(end - p) > suffix_n && !is_frame(p, (size_t)(end - p));
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

static bool by_exception(const struct folded *f)
{
    static const char *const suffixes[] = {"error", "exception"};
    if (has(f, "traceback (most recent call last)")) {
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        size_t n = strlen(suffixes[i]);
        for (const char *p = f->s; has(f, suffixes[i]) && (p = strstr(p, suffixes[i])) != NULL;) {
            p += n;
            if (!is_word(*p) && names_exception(f->s, p, n) && !tells_of_job(p)) {
                return true;
            }
        }
    }
    return false;
}

/* "was terminated by the user": somebody wanted it. */
static enum cause by_agent(const struct folded *f)
{
    static const char *const verbs[] = {"stopped by ",     "terminated by ", "cancelled by ",
                                        "canceled by ",    "aborted by ",    "killed by ",
                                        "interrupted by ", "deleted by ",    "ended by "};
    static const char *const agents[] = {"user", "operator", "admin", "owner", "request"};
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        const char *p = has(f, verbs[i]) ? strstr(f->s, verbs[i]) : NULL;
        if (p == NULL) {
            continue;
        }
        p += strlen(verbs[i]);
        p += strncmp(p, "the ", 4) == 0 ? 4 : strncmp(p, "an ", 3) == 0 ? 3 : 0;
        for (size_t a = 0; a < ARRAY_LEN(agents); a++) {
            if (strncmp(p, agents[a], strlen(agents[a])) == 0) {
                return CAUSE_STOPPED;
            }
        }
    }
    return CAUSE_UNKNOWN;
}

/* Where a word begins with `start`; false when none does. */
static bool begins_word(const struct folded *f, const char *start)
{
    for (const char *p = has(f, start) ? f->s : NULL; p != NULL && (p = strstr(p, start)) != NULL;
         p++) {
        if (p == f->s || !is_word(p[-1])) {
            return true;
        }
    }
    return false;
}

static bool complains(const struct folded *f)
{
    static const char *const words[] = {
        "~invalid",   "~not",        "~no",       "~cannot",  "~unable",     "~missing",
        "~must",      "~wrong",      "~unknown",  "~only",    "unsupported", "mismatch",
        "~incorrect", "~unexpected", "~required", "~exceeds", "~empty",      "ensure"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (has(f, words[i])) {
            return true;
        }
    }
    return false;
}

/* What a complaint is about: the cause most of its subjects speak of; unknown when two causes have
 * as many. */
static enum cause by_subject(const struct folded *f)
{
    static const struct {
        enum cause cause;
        const char *start;
    } subjects[] = {
#define X(c, start) {CAUSE_##c, start},
#include "cause_subject.def"
#undef X
    };
    int found[CAUSE_COUNT] = {0};
    enum cause most = CAUSE_UNKNOWN;
    bool tie = false;
    if (!complains(f)) {
        return CAUSE_UNKNOWN;
    }
    for (size_t i = 0; i < ARRAY_LEN(subjects); i++) {
        found[subjects[i].cause] += begins_word(f, subjects[i].start);
    }
    for (int c = 0; c < CAUSE_COUNT; c++) {
        tie = found[c] == found[most] ? found[c] > 0 : found[c] > found[most] ? false : tie;
        most = found[c] > found[most] ? (enum cause)c : most;
    }
    return tie ? CAUSE_UNKNOWN : most;
}

/* Told in passing: a line of a log at the level of information. What it says of the job's end
 * counts, what it says of trouble was survived. */
static bool is_information(const struct folded *f)
{
    static const char *const graver[] = {"~error", "error:",   "~warn",     "~warning",
                                         "~fatal", "critical", "exception", "killed "};
    bool info = has(f, ":info]") || has(f, "[info]") || has(f, "level=info");
    for (size_t i = 0; info && i < ARRAY_LEN(graver); i++) {
        info = !has(f, graver[i]);
    }
    return info;
}

static bool ends_job(enum cause c)
{
    return c == CAUSE_STOPPED || c == CAUSE_SPOT_INTERRUPTED || c == CAUSE_TIMEOUT;
}

struct cause_text cause_of_text(struct str text)
{
    static enum cause (*const readers[])(const struct folded *) = {
        by_words, by_errno, by_service_code, by_http_status, by_agent, by_signal};
    struct folded f;
    struct cause_text ret = {.cause = CAUSE_UNKNOWN, .by = CAUSE_BY_NOTHING};
    int code = 0;
    fold(text, &f);
    bool has_code = find_exit_code(&f, &code);
    ret.killed = has_code && (code == 137 || code == -9 || code == 143 || code == -15);
    for (size_t i = 0; i < ARRAY_LEN(readers) && ret.cause == CAUSE_UNKNOWN; i++) {
        ret.cause = readers[i](&f);
        ret.by = CAUSE_BY_WORDS;
    }
    if (is_information(&f) && !ends_job(ret.cause)) {
        return (struct cause_text){.cause = CAUSE_UNKNOWN, .by = CAUSE_BY_NOTHING};
    }
    if (ret.cause != CAUSE_UNKNOWN && !(ret.cause == CAUSE_USER_CODE && ret.killed)) {
        return ret;
    }
    if (by_exception(&f) && !ret.killed) {
        return (struct cause_text){.cause = CAUSE_USER_CODE, .by = CAUSE_BY_EXCEPTION};
    }
    ret.by = CAUSE_BY_NOTHING;
    ret.cause = ret.killed ? CAUSE_UNKNOWN : by_subject(&f);
    if (ret.cause != CAUSE_UNKNOWN) {
        ret.by = CAUSE_BY_SUBJECT;
    } else if (has_code) {
        ret.cause = of_exit(code, strncmp(f.s, "algorithmerror: , exit code", 27) == 0);
        ret.by = CAUSE_BY_EXIT;
    }
    return ret;
}
