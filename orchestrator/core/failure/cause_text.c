/* A text is folded once; then each reader looks for its own kind of sign, the surest kind first.
 * What no reader knows is UNKNOWN, because a wrong cause wastes retries or denies them. */
#include "cause_text.h"
#include "cause_read.h"
#include "cause_said.h"
#include <ctype.h>

#define REACH 120 /* two words of a rule stand in one sentence */

/* Second word of a rule whose first only names a thing ("dns"): any word of trouble, wherever. */
#define CAUSE_TROUBLE NULL

struct rule {
    enum cause cause;
    unsigned three; /* CAUSE_FIRST_THREE of a */
    const char *a;
    const char *b;
};
static const struct rule rules[] = {
#define X(c, a, b) {CAUSE_##c, CAUSE_FIRST_THREE(a), a, b},
/* first by who says it, since one form says more than the general words in it */
#include "cause_cloud.def"
#include "cause_cluster.def"
#include "cause_science.def"
#include "cause_store.def"
/* then by what is said */
#include "cause_engine.def"
#include "cause_framework.def"
#include "cause_learning.def"
#include "cause_list.def"
#include "cause_locale.def"
#include "cause_platform.def"
#include "cause_program.def"
#undef X
};
static const struct rule last_rules[] = {
#define X(c, a, b) {CAUSE_##c, CAUSE_FIRST_THREE(a), a, b},
#include "cause_last.def"
#include "cause_last_cloud.def"
#include "cause_last_cluster.def"
#include "cause_last_learning.def"
#include "cause_last_science.def"
#include "cause_tool.def"
#undef X
};

static bool has_any(const struct folded *f, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (cause_has(f, words[i])) {
            return true;
        }
    }
    return false;
}

static bool has_trouble(const struct folded *f)
{
    static const char *const words[] = {
        "error",       "timed-out",   "time-out",  "time out",    "attempt",   "trying to",
        "waiting for", "~hang",       "~hung",     "retry",       "retries",   "disconnect",
        "dropped",     "stuck",       "violat",    "fail",        "timed out", "timeout",
        "~lost",       "abort",       "exceed",    "exhaust",     "kill",      "terminat",
        "refus",       "reset",       "broke",     "crash",       "fatal",     "panic",
        "exception",   "~limit",      "~full",     "insufficien", "~down",     "unavailable",
        "~reach",      "reached",     "warn",      "~bad",        "corrupt",   "invalid",
        "unable",      "~cannot",     "could not", "can't",       "couldn't",  "~not",
        "~no",         "unreachable", "denied",    "mismatch",    "missing",   "~closed",
        "unexpected",  "unsupported", "interrupt", "~wrong",      "expired",   "problem",
        "incorrect",   "~reclaimed",  "~out of"};
    return has_any(f, words, ARRAY_LEN(words));
}

static bool fits(const struct folded *f, const struct rule *r)
{
    if (r->b == CAUSE_TROUBLE) {
        return cause_has(f, r->a) && has_trouble(f);
    }
    return cause_has_near(f, r->a, r->b, REACH);
}

static enum cause first_rule(const struct folded *f, const struct rule *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (cause_may_have(f, r[i].three) && fits(f, &r[i])) {
            return r[i].cause;
        }
    }
    return CAUSE_UNKNOWN;
}

static enum cause by_words(const struct folded *f)
{
    return first_rule(f, rules, ARRAY_LEN(rules));
}

/* An exception that names nothing of a platform: its limit is the program's own, and no wait mends
 * that. */
static bool is_own_limit(const struct folded *f)
{
    static const char *const platform[] = {
        "quota",        "account", "instance type", "vcpu",  "ec2",    "~aws",
        "sagemaker",    "~ml.",    "region",        "~zone", "tenant", "project",
        "subscription", "~plan",   "cluster",       "spend", "~usd",   "~cost",
        "billing",      "credit",  "month",         "daily", "organi"};
    return cause_has_exception(f) && !cause_is_refusal(f) &&
           !has_any(f, platform, ARRAY_LEN(platform));
}

/* What a program's own line of Python calls invalid, nobody was asked for. */
static bool begins_with_own(const struct folded *f)
{
    static const char *const own[] = {"typeerror: ",  "assertionerror: ",     "runtimeerror: ",
                                      "indexerror: ", "floatingpointerror: ", "exception: "};
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        if (strncmp(f->s, own[i], strlen(own[i])) == 0) {
            return true;
        }
    }
    return false;
}

static enum cause by_last_words(const struct folded *f)
{
    for (size_t i = 0; i < ARRAY_LEN(last_rules); i++) {
        const struct rule *r = &last_rules[i];
        bool waits = r->cause == CAUSE_QUOTA || r->cause == CAUSE_CAPACITY;
        if (cause_may_have(f, r->three) && fits(f, r) && !(waits && is_own_limit(f)) &&
            !(r->cause == CAUSE_BAD_REQUEST && begins_with_own(f))) {
            return r->cause;
        }
    }
    return CAUSE_UNKNOWN;
}

/* "was terminated by the user": somebody wanted it. */
static enum cause by_agent(const struct folded *f)
{
    static const char *const verbs[] = {"stopped by ",     "terminated by ", "cancelled by ",
                                        "canceled by ",    "aborted by ",    "killed by ",
                                        "interrupted by ", "deleted by ",    "ended by "};
    static const char *const agents[] = {"user", "operator", "admin", "owner", "request", "root"};
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        const char *p = cause_has(f, verbs[i]) ? strstr(f->s, verbs[i]) : NULL;
        if (p == NULL) {
            continue;
        }
        p += strlen(verbs[i]);
        p += strncmp(p, "the ", 4) == 0 ? 4 : strncmp(p, "an ", 3) == 0 ? 3 : 0;
        if (isdigit((unsigned char)*p)) { /* Slurm: the number of a user */
            return CAUSE_STOPPED;
        }
        for (size_t a = 0; a < ARRAY_LEN(agents); a++) {
            if (strncmp(p, agents[a], strlen(agents[a])) == 0) {
                return CAUSE_STOPPED;
            }
        }
    }
    return CAUSE_UNKNOWN;
}

/* Does a word begin with `start`? Names of variables and modules do not count. */
static bool begins_word(const struct folded *f, const char *start)
{
    for (const char *p = cause_has(f, start) ? f->s : NULL;
         p != NULL && (p = strstr(p, start)) != NULL; p++) {
        const char *end = p + strlen(start);
        end += strspn(end, "abcdefghijklmnopqrstuvwxyz");
        bool module = *end == '.' && cause_is_word(end[1]);
        if ((p == f->s || !cause_is_word(p[-1])) && *end != '_' && !module) {
            return true;
        }
    }
    return false;
}

static bool complains(const struct folded *f)
{
    static const char *const words[] = {
        "~invalid",   "~not",         "~no",       "~cannot",   "~unable",         "~missing",
        "~must",      "~wrong",       "~unknown",  "~only",     "unsupported",     "mismatch",
        "~incorrect", "~unexpected",  "~required", "~exceeds",  "~empty",          "ensure",
        "~expected",  "~expecting",   "~but",      "unrecogni", "recognised",      "~broken",
        "~unseen",    "inconsistent", "duplicate", "premature", "~has to be",      "~contains",
        "~require",   "conflict",     "refused",   "reject",    "denied",          "~illegal",
        "malformed",  "~differ",      "truncated", "damaged",   "~failed to read", "~could not"};
    return has_any(f, words, ARRAY_LEN(words));
}

/* What a complaint, or an exception, is about: the cause most of its subjects speak of; unknown
 * when two causes have as many. */
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
    for (size_t i = 0; i < ARRAY_LEN(subjects); i++) {
        found[subjects[i].cause] += begins_word(f, subjects[i].start);
    }
    for (int c = 0; c < CAUSE_COUNT; c++) {
        tie = found[c] == found[most] ? found[c] > 0 : found[c] > found[most] ? false : tie;
        most = found[c] > found[most] ? (enum cause)c : most;
    }
    return tie ? CAUSE_UNKNOWN : most;
}

/* Exceptions of these kinds are a program's own fault, whatever they speak of. */
static bool is_of_program(const struct folded *f)
{
    static const char *const own[] = {"typeerror",
                                      "attributeerror",
                                      "nameerror",
                                      "importerror",
                                      "modulenotfound",
                                      "syntaxerror",
                                      "indexerror",
                                      "unboundlocal",
                                      "notimplemented",
                                      "nullpointer",
                                      "cuda",
                                      "state_dict",
                                      "analysisexception",
                                      "deprecationerror",
                                      "missingdependency",
                                      "notinstalled"};
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        if (cause_has(f, own[i])) {
            return true;
        }
    }
    return false;
}

/* "KeyError: 'bbox' in annotation 17": words behind the key. */
static bool explains_key(const struct folded *f)
{
    static const char mark[] = "keyerror: ";
    const char *p = strstr(f->s, mark);
    if (p == NULL) {
        return false;
    }
    p += sizeof mark - 1;
    bool quoted = *p == '\'' || *p == '"';
    const char *end = quoted ? strchr(p + 1, *p) : strchr(p, ' ');
    return end != NULL && strlen(end) > 8;
}

static bool may_tell_of_data(const struct folded *f)
{
    /* a key alone says nothing of data */
    return !is_of_program(f) && (!cause_has(f, "keyerror") || complains(f) || explains_key(f));
}

/* A warning of Python that says how a program is to be written, alone. */
static bool is_advice(const struct folded *f)
{
    static const char *const kinds[] = {
        "deprecationwarning: ", "futurewarning: ", "runtimewarning: ", "convergencewarning: "};
    return memchr(f->text.p, '\n', f->text.n) == NULL && has_any(f, kinds, ARRAY_LEN(kinds));
}

/* Told in passing: a line of a log at the level of information. What it says of the job's end
 * counts, what it says of trouble was survived. */
static bool is_information(const struct folded *f)
{
    static const char *const graver[] = {"~error", "error:",   "~warn",     "~warning",
                                         "~fatal", "critical", "exception", "killed "};
    const char *plain = strstr(f->s, " info "); /* "17:07:30 INFO Saving" */
    bool info = (plain > f->s && isdigit((unsigned char)plain[-1])) || cause_has(f, ":info]") ||
                cause_has(f, "[info]") || cause_has(f, "level=info") || is_advice(f) ||
                (cause_has(f, "nccl info ") && !cause_has(f, "timed out"));
    for (size_t i = 0; info && i < ARRAY_LEN(graver); i++) {
        info = !cause_has(f, graver[i]);
    }
    return info;
}

/* "UserWarning: ", of Python: the program went on. */
static bool warns_only(const struct folded *f)
{
    const char *p = cause_has(f, "warning: ") ? strstr(f->raw, "Warning: ") : NULL;
    return p > f->raw && islower((unsigned char)p[-1]);
}

static bool ends_job(enum cause c)
{
    return c == CAUSE_STOPPED || c == CAUSE_SPOT_INTERRUPTED || c == CAUSE_TIMEOUT;
}

/* "exit code 137": killed from outside, which says more than general words. */
static enum cause by_killing_exit(const struct folded *f)
{
    int code = 0;
    enum cause c = cause_find_exit_code(f, &code) ? cause_of_exit(code, false) : CAUSE_UNKNOWN;
    return c == CAUSE_OOM || c == CAUSE_STOPPED || c == CAUSE_TIMEOUT ? c : CAUSE_UNKNOWN;
}

/* Services answer 429, or 403, too, when what was paid for is used up or a limit is reached, and
 * Paddle's "(PermissionDenied)" is of its own devices: then the words say more than the name. */
static bool is_outspoken(const struct folded *f, enum cause named)
{
    static const char *const used_up[] = {"insufficient_quota",
                                          "current quota",
                                          "usage limit",
                                          "concurrent fine-tun",
                                          "running jobs",
                                          "/ month",
                                          "per month",
                                          "monthly",
                                          "credit balance",
                                          "out of credits",
                                          "insufficient credits",
                                          "insufficient balance",
                                          "billing",
                                          "spend limit",
                                          "spending limit",
                                          "token_limit_exc",
                                          "payment"};
    static const char *const limits[] = {"quota_exceeded", "quota exceeded", "exceeded quota",
                                         "disk usage exceeded", "rate limit exceeded"};
    if (cause_has(f, "(permissiondenied)") && cause_has(f, "paddle")) {
        return true;
    }
    return named == CAUSE_THROTTLED
               ? has_any(f, used_up, ARRAY_LEN(used_up)) && !cause_has(f, "per min")
               : has_any(f, limits, ARRAY_LEN(limits));
}

/* A name that says who is refused or slowed down is surer than words, which may be of an address.
 */
static enum cause by_signs(const struct folded *f)
{
    static enum cause (*const before[])(const struct folded *) = {
        cause_by_library_number, cause_by_sqlstate, by_words, cause_by_missing_file,
        cause_by_errno};
    static enum cause (*const behind[])(const struct folded *) = {cause_by_http_status, by_agent,
                                                                  cause_by_signal};
    enum cause named = cause_by_name(f);
    enum cause c = cause_by_pull(f);
    if (c != CAUSE_UNKNOWN) {
        return c;
    }
    if ((named == CAUSE_ACCESS_DENIED || named == CAUSE_THROTTLED) && !is_outspoken(f, named)) {
        return named;
    }
    for (size_t i = 0; i < ARRAY_LEN(before) && c == CAUSE_UNKNOWN; i++) {
        c = before[i](f);
    }
    if (c == CAUSE_UNKNOWN && named == CAUSE_NETWORK) {
        /* who answers with a status was reached; 400 is said of a broken answer, too */
        c = cause_by_http_status(f);
        c = c == CAUSE_BAD_REQUEST ? CAUSE_UNKNOWN : c;
    }
    c = c == CAUSE_UNKNOWN ? named : c;
    for (size_t i = 0; i < ARRAY_LEN(behind) && c == CAUSE_UNKNOWN; i++) {
        c = behind[i](f);
    }
    return c;
}

/* General words; and what a service refuses without a word that is known is wrong itself. */
static enum cause by_general(const struct folded *f)
{
    enum cause c = by_last_words(f);
    return c == CAUSE_UNKNOWN && cause_is_refusal(f) ? CAUSE_BAD_REQUEST : c;
}

static enum cause by_readers(const struct folded *f, enum cause_text_by *by)
{
    enum cause c = by_signs(f);
    enum cause killed = c == CAUSE_UNKNOWN ? by_killing_exit(f) : CAUSE_UNKNOWN;
    enum cause general = c == CAUSE_UNKNOWN ? by_general(f) : CAUSE_UNKNOWN;
    *by = killed != CAUSE_UNKNOWN && general == CAUSE_UNKNOWN ? CAUSE_BY_EXIT : CAUSE_BY_WORDS;
    return c != CAUSE_UNKNOWN ? c : killed != CAUSE_UNKNOWN ? killed : general;
}

/* The exception of a program that is wrong itself, whatever was printed before it. */
static bool is_own_fault(struct str raised)
{
    static const char *const own[] = {
        "TypeError:",       "AttributeError:",    "NameError:",
        "ImportError:",     "SyntaxError:",       "ModuleNotFoundError:",
        "IndentationError", "UnboundLocalError:", "ZeroDivisionError"};
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        if (str_starts(raised, own[i])) {
            return true;
        }
    }
    return false;
}

static enum cause by_readers_of(struct str text)
{
    struct folded f;
    enum cause_text_by by;
    cause_fold(text, &f);
    enum cause c = by_readers(&f, &by);
    return c == CAUSE_USER_CODE ? CAUSE_UNKNOWN : c;
}

/* What the exceptions of a traceback say, the last one first, since it ended the program; of each
 * the first line before what it goes on with. User code when the last says no more than that. */
static enum cause by_raised(const struct said *said)
{
    for (size_t i = said->raised_n; i-- > 0;) {
        struct str rest = said->raised[i];
        struct str first = str_split(&rest, '\n');
        enum cause c = by_readers_of(first);
        if (c == CAUSE_UNKNOWN && str_trim(rest).n > 0) {
            c = by_readers_of(said->raised[i]);
        }
        if (c != CAUSE_UNKNOWN) {
            return c;
        }
    }
    bool own = said->raised_n > 0 && is_own_fault(said->raised[said->raised_n - 1]);
    return own ? CAUSE_USER_CODE : CAUSE_UNKNOWN;
}

/* An exception that no reader knows: of the data, by its words, by the file it names or by the
 * library that raised it, or of the program. */
static struct cause_text of_exception(const struct folded *f, const struct said *said)
{
    enum cause raised_in = said->raised_in;
    bool data = (may_tell_of_data(f) && (by_subject(f) == CAUSE_BAD_INPUT ||
                                         (complains(f) && cause_names_data_file(f)))) ||
                ((said->maps_rows || said->takes_field) &&
                 cause_has(f, "keyerror:")) || /* a row without the column */
                (said->takes_field && cause_has(f, "to unpack"));
    if (data || (raised_in != CAUSE_UNKNOWN && !is_of_program(f))) {
        bool in_library = raised_in != CAUSE_UNKNOWN && !is_of_program(f);
        return (struct cause_text){.cause = in_library ? raised_in : CAUSE_BAD_INPUT,
                                   .by = CAUSE_BY_SUBJECT};
    }
    return (struct cause_text){.cause = CAUSE_USER_CODE, .by = CAUSE_BY_EXCEPTION};
}

/* Says only that something else has failed, which said why elsewhere. */
static bool says_nothing(const struct folded *f)
{
    static const char *const parts[] = {"ffmpeg returned non-zero",
                                        "ffmpeg exited with",
                                        "retryerror[<future",
                                        "failure_with_task",
                                        "scheduler.killedworker",
                                        ", no events",
                                        "error message \"\"",
                                        "source process exited with",
                                        "destination process exited with"};
    bool one_line = f->text.n > 0 && memchr(f->text.p, '\n', f->text.n) == NULL;
    return one_line && has_any(f, parts, ARRAY_LEN(parts));
}

/* A complaint that names a file of data and does not speak of one that was to be written. */
static bool reads_data_file(const struct folded *f)
{
    static const char *const written[] = {"writ", "~save", "saving", "creat", "output", "upload"};
    return cause_names_data_file(f) && !has_any(f, written, ARRAY_LEN(written));
}

struct cause_text cause_of_text(struct str text)
{
    struct said said;
    struct folded f;
    struct cause_text ret = {.cause = CAUSE_UNKNOWN, .by = CAUSE_BY_WORDS};
    int code = 0;
    cause_said(text, &said);
    cause_fold((struct str){said.s, said.n}, &f);
    bool has_code = cause_find_exit_code(&f, &code);
    ret.killed = has_code && (code == 137 || code == -9 || code == 143 || code == -15);
    ret.cause = by_raised(&said);
    if (ret.cause == CAUSE_UNKNOWN) {
        ret.cause = by_readers(&f, &ret.by);
    }
    if ((is_information(&f) && !ends_job(ret.cause)) || (says_nothing(&f) && !ret.killed)) {
        return (struct cause_text){.cause = CAUSE_UNKNOWN, .by = CAUSE_BY_NOTHING};
    }
    if (ret.cause != CAUSE_UNKNOWN && !(ret.cause == CAUSE_USER_CODE && ret.killed)) {
        return ret;
    }
    if (cause_has_exception(&f) && !ret.killed) {
        return of_exception(&f, &said);
    }
    if (said.asserts && !ret.killed) { /* a traceback that was cut before its exception */
        return (struct cause_text){.cause = CAUSE_USER_CODE, .by = CAUSE_BY_EXCEPTION};
    }
    ret.by = CAUSE_BY_NOTHING;
    ret.cause = ret.killed || warns_only(&f) || !complains(&f) ? CAUSE_UNKNOWN : by_subject(&f);
    if (ret.cause == CAUSE_UNKNOWN && !ret.killed && !warns_only(&f) && complains(&f) &&
        reads_data_file(&f)) {
        ret.cause = CAUSE_BAD_INPUT;
    }
    if (ret.cause != CAUSE_UNKNOWN) {
        ret.by = CAUSE_BY_SUBJECT;
    } else if (has_code) {
        ret.cause = cause_of_exit(code, strncmp(f.s, "algorithmerror: , exit code", 27) == 0);
        ret.by = CAUSE_BY_EXIT;
    } else if (!ret.killed && cause_has(&f, "check failed: ")) { /* an assertion in C++ */
        ret = (struct cause_text){.cause = CAUSE_USER_CODE, .by = CAUSE_BY_EXCEPTION};
    }
    return ret;
}
