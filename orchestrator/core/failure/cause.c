/* Maps failure texts to causes: first the cause our worker wrote, then what the text says
 * (cause_text.h). */
#include "cause.h"
#include "cause_text.h"
#include <ctype.h>
#include <stdio.h>
#include <strings.h>

#define TEXT_MAX 4096 /* FailureReason has at most 1024 characters, API texts a few hundred */

/* Every run of white space becomes one blank, cut at TEXT_MAX. */
static void fold(struct str s, char out[static TEXT_MAX + 1])
{
    size_t n = 0;
    for (size_t i = 0; i < s.n && n < TEXT_MAX; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == 0 || isspace(c)) {
            if (n > 0 && out[n - 1] != ' ') {
                out[n++] = ' ';
            }
        } else {
            out[n++] = (char)c;
        }
    }
    out[n] = '\0';
}

/* "AlgorithmError: disk_full: ...": a name of cause.def at the beginning of our worker's failure
 * file. */
static enum cause cause_by_worker(struct str reason)
{
    static const struct str mark = {"AlgorithmError:", 15};
    ptrdiff_t at = str_find(reason, mark);
    if (at < 0) {
        return CAUSE_NONE;
    }
    struct str rest = {reason.p + at + mark.n, reason.n - (size_t)at - mark.n};
    rest = str_trim(rest);
    char name[24];
    size_t n = 0;
    while (n < rest.n && n < sizeof name - 1 &&
           (islower((unsigned char)rest.p[n]) || rest.p[n] == '_')) {
        name[n] = rest.p[n];
        n++;
    }
    name[n] = '\0';
    if (n == 0 || n + 1 >= rest.n || rest.p[n] != ':' || rest.p[n + 1] != ' ') {
        return CAUSE_NONE;
    }
    enum cause c = cause_parse(name);
    return c == CAUSE_COUNT ? CAUSE_NONE : c;
}

static bool says_stopped(struct str reason)
{
    return reason.n >= 4 && strncasecmp(reason.p, "stop", 4) == 0 &&
           (reason.n == 4 || (reason.n >= 7 && strncasecmp(reason.p, "stopped", 7) == 0));
}

struct str cause_words(struct str failure_reason)
{
    static const char tail[] = ", exit code: ";
    struct str words = failure_reason;
    if (cause_by_worker(failure_reason) == CAUSE_NONE) {
        return failure_reason;
    }
    (void)str_split(&words, ':'); /* AlgorithmError */
    (void)str_split(&words, ':'); /* the cause */
    for (size_t i = 0; i + sizeof tail <= words.n; i++) {
        if (memcmp(words.p + i, tail, sizeof tail - 1) == 0 &&
            memchr(words.p + i + 1, ',', words.n - i - 1) == NULL) {
            words.n = i;
        }
    }
    words = str_trim(words);
    return words.n > 0 ? words : failure_reason;
}

/* The cause of a failed job: its text, then its exit code. */
static enum cause cause_of_failed(struct str reason, bool stopped_by_us)
{
    enum cause c = cause_by_worker(reason);
    if (c != CAUSE_NONE) {
        return c;
    }
    if (says_stopped(str_trim(reason))) {
        return CAUSE_STOPPED;
    }
    struct cause_text t = cause_of_text(reason);
    return stopped_by_us && t.killed ? CAUSE_STOPPED : t.cause; /* regardless of the text */
}

bool cause_is_bare(struct str failure_reason)
{
    return cause_by_worker(failure_reason) == CAUSE_NONE &&
           !says_stopped(str_trim(failure_reason)) &&
           cause_of_text(failure_reason).by >= CAUSE_BY_EXIT;
}

enum cause cause_of_job(enum job_end end, struct str failure_reason, bool stopped_by_us)
{
    switch (end) {
    case JOB_END_STOPPED:
        return CAUSE_STOPPED;
    case JOB_END_MAX_RUNTIME:
    case JOB_END_MAX_WAIT:
        return stopped_by_us ? CAUSE_STOPPED : CAUSE_TIMEOUT;
    case JOB_END_FAILED:
        return cause_of_failed(failure_reason, stopped_by_us);
    }
    return CAUSE_UNKNOWN;
}

enum cause cause_of_refusal(int status, const char *code, struct str message)
{
    /* Code and text are matched as one text: the rows for codes and texts are in one table. */
    char both[TEXT_MAX];
    int code_n = code == NULL ? 0 : (int)strnlen(code, 128);
    int message_n = (int)MIN(message.n, (size_t)TEXT_MAX - 160);
    (void)snprintf(both, sizeof both, "%.*s: %.*s", code_n, code == NULL ? "" : code, message_n,
                   message.p == NULL ? "" : message.p);
    struct cause_text t = cause_of_text(str_of(both));
    enum cause c = t.by == CAUSE_BY_WORDS ? t.cause : CAUSE_UNKNOWN;
    bool invalid = code != NULL && strncmp(code, "Validation", 10) == 0;
    if (invalid && (c == CAUSE_TIMEOUT || c == CAUSE_OOM || c == CAUSE_DISK_FULL ||
                    c == CAUSE_USER_CODE || c == CAUSE_NETWORK || c == CAUSE_INTERNAL)) {
        return CAUSE_BAD_REQUEST; /* text about the request: no job ran */
    }
    if (c != CAUSE_UNKNOWN) {
        return c;
    }
    if (status == 429) {
        return CAUSE_THROTTLED;
    }
    if (status == 401 || status == 403) {
        return CAUSE_ACCESS_DENIED;
    }
    if (status >= 400 && status < 500) {
        return CAUSE_BAD_REQUEST;
    }
    if (status >= 500 && status < 600) {
        return CAUSE_INTERNAL;
    }
    return CAUSE_UNKNOWN;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Length of the URI or ARN that begins at p; 0 when there is no such. */
static size_t uri_n(const char *p, size_t left)
{
    static const char *const schemes[] = {"s3://", "http://", "https://", "arn:aws", "fsx://"};
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        if (p[0] != schemes[i][0]) { /* asked of every character */
            continue;
        }
        size_t n = strlen(schemes[i]);
        if (left < n || strncmp(p, schemes[i], n) != 0) {
            continue;
        }
        while (n < left && !isspace((unsigned char)p[n]) && strchr("\"'`,;)>]}", p[n]) == NULL) {
            n++;
        }
        while (p[n - 1] == '.' || p[n - 1] == ':') {
            n--;
        }
        return n;
    }
    return 0;
}

/* True when p[0..n) is at least eight hex digits, one of them decimal. */
static bool is_hex_id(const char *p, size_t n)
{
    bool digit = false;
    for (size_t i = 0; i < n; i++) {
        if (!isxdigit((unsigned char)p[i])) {
            return false;
        }
        digit = digit || isdigit((unsigned char)p[i]);
    }
    return n >= 8 && digit;
}

static size_t put(char *out, size_t n, const char *s, size_t len)
{
    size_t room = SIGNATURE_MAX - n;
    len = MIN(len, room);
    memcpy(out + n, s, len);
    return n + len;
}

/* Append one word: unchanged without digits, '#' for a hex id, otherwise with its digit runs
 * folded. */
static size_t put_word(char *out, size_t n, const char *p, size_t len)
{
    if (is_hex_id(p, len)) {
        return put(out, n, "#", 1);
    }
    for (size_t i = 0; i < len; i++) {
        if (!isdigit((unsigned char)p[i])) {
            n = put(out, n, p + i, 1);
        } else if (i == 0 || !isdigit((unsigned char)p[i - 1])) {
            n = put(out, n, "#", 1);
        }
    }
    return n;
}

size_t cause_whole_characters(const char *s, size_t n)
{
    size_t lead = n;
    while (lead > 0 && ((unsigned char)s[lead - 1] & 0xc0) == 0x80) {
        lead--;
    }
    if (lead == 0 || (unsigned char)s[lead - 1] < 0xc0) {
        return n;
    }
    unsigned char c = (unsigned char)s[lead - 1];
    size_t need = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    return n - (lead - 1) < need ? lead - 1 : n;
}

void cause_signature(struct str reason, char out[static SIGNATURE_MAX + 1])
{
    size_t n = 0;
    size_t i = 0;
    while (i < reason.n && n < SIGNATURE_MAX) {
        const char *p = reason.p + i;
        size_t left = reason.n - i;
        size_t len = uri_n(p, left);
        if (len > 0) {
            n = put(out, n, "<uri>", 5);
        } else if (is_word(*p)) {
            len = 1;
            while (len < left && is_word(p[len])) {
                len++;
            }
            n = put_word(out, n, p, len);
        } else {
            len = 1;
            bool blank = isspace((unsigned char)*p) || *p == '\0';
            if (!blank) {
                n = put(out, n, p, 1);
            } else if (n > 0 && out[n - 1] != ' ') {
                n = put(out, n, " ", 1);
            }
        }
        i += len;
    }
    n = cause_whole_characters(out, n);
    while (n > 0 && out[n - 1] == ' ') {
        n--;
    }
    out[n] = '\0';
}

/* The number after `mark`; *p moves past it. */
static bool number_behind(const char **p, const char *mark, int64_t *ret)
{
    const char *q = strstr(*p, mark);
    if (q == NULL) {
        return false;
    }
    q += strlen(mark);
    q += strspn(q, " ");
    size_t n = strspn(q, "0123456789");
    struct err ignored = ERR_INIT;
    if (!parse_i64((struct str){q, n}, 0, INT64_MAX, ret, &ignored)) {
        return false;
    }
    *p = q + n;
    return true;
}

bool cause_parse_quota(struct str message, struct quota_refusal *ret)
{
    static const char mark[] = "account-level service limit ";
    char text[TEXT_MAX + 1];
    fold(message, text);
    const char *p = strstr(text, mark);
    if (p == NULL) {
        return false;
    }
    p += sizeof mark - 1;
    const char *name;
    const char *end;
    if (*p == '\'' || *p == '"') { /* 'ml.m5.large for training job usage' is 4 Instances */
        name = p + 1;
        end = strchr(name, *p);
    } else { /* for training-job/ml.p2.xlarge is 0 Instances */
        name = strncmp(p, "for ", 4) == 0 ? p + 4 : p;
        end = strstr(name, " is ");
    }
    if (end == NULL || end == name) {
        return false;
    }
    struct quota_refusal r = {0};
    p = end;
    if (!number_behind(&p, " is ", &r.limit) ||
        !number_behind(&p, "current utilization of ", &r.in_use) ||
        !number_behind(&p, "request delta of ", &r.delta)) {
        return false;
    }
    size_t n = MIN((size_t)(end - name), sizeof r.quota_name - 1);
    memcpy(r.quota_name, name, n);
    *ret = r;
    return true;
}
