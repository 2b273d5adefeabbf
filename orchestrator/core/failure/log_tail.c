/* Each line is told apart by its form: frames of a traceback, aftermath (what launchers and peers
 * print because another process has died), signs of a failure, and anything else. Of the last
 * failure of each host the strongest sign counts, the earliest when several are as strong; of the
 * hosts the one whose sign came first. */
#include "log_tail.h"
#include "cause.h"
#include "cause_said.h"
#include "cause_text.h"
#include <ctype.h>
#include <stdio.h>

#define HOSTS_MAX   64
#define QUIET_LINES 8 /* this many ordinary lines behind a sign: the program went on */
#define JOINED_MAX  4000

enum strength { NO_SIGN, AFTERMATH, WORDS, ERROR_LINE, LAST_WORDS };
struct sign {
    enum strength strength;
    usec_t time;
    size_t at; /* index of its line */
    struct cause_text said;
};
struct tail_host {
    struct str name;
    bool in_traceback;
    size_t started_at; /* index of the first line of the traceback */
    int quiet;         /* ordinary lines since the last sign */
    struct sign best;
};

static bool has(struct str text, const char *part)
{
    return str_find(text, str_of(part)) >= 0;
}

static bool has_any(struct str text, const char *const *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (has(text, parts[i])) {
            return true;
        }
    }
    return false;
}

/* "(RayTrainWorker pid=12, ip=10.0.0.1) ", "algo-1-x7  | ", "stderr: ". */
static size_t other_mark_n(struct str t)
{
    struct str head = {t.p, MIN(t.n, (size_t)80)};
    ptrdiff_t pid = str_starts(t, "(") ? str_find(head, STR(" pid=")) : -1;
    ptrdiff_t end = pid > 0 ? str_find(head, STR(")")) : -1;
    ptrdiff_t bar = str_starts(t, "algo-") ? str_find(head, STR("| ")) : -1;
    if (end > pid) {
        size_t n = (size_t)end + 1;
        n += cause_colour_n((struct str){t.p + n, t.n - n});
        return n < t.n && t.p[n] == ' ' ? n + 1 : n;
    }
    return bar > 0 ? (size_t)bar + 2 : str_starts(t, "stderr: ") ? 8 : 0;
}

/* "[rank0]: ", "[1,3]<stderr>:": up to its end, 0 when there is none. */
static size_t mark_n(struct str t)
{
    static const char *const marks[] = {"rank", "1,", "0,", "algo-", "default"};
    if (t.n < 3 || t.p[0] != '[') {
        return cause_colour_n(t) > 0 ? cause_colour_n(t) : other_mark_n(t);
    }
    bool known = false;
    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        known = known || strncmp(t.p + 1, marks[i], MIN(strlen(marks[i]), t.n - 1)) == 0;
    }
    const char *end = memchr(t.p, ']', MIN(t.n, (size_t)60));
    if (!known || end == NULL) {
        return 0;
    }
    size_t n = (size_t)(end - t.p) + 1;
    while (n < t.n && t.p[n] != ' ' && t.p[n] != ':' && n < 80) { /* <stderr> */
        n++;
    }
    if (n < t.n && t.p[n] == ':') {
        n++;
    }
    return n < t.n && t.p[n] == ' ' ? n + 1 : n;
}

static struct str without_marks(struct str t)
{
    for (int i = 0; i < 6; i++) {
        size_t n = mark_n(t);
        if (n == 0) {
            break;
        }
        t.p += n;
        t.n -= n;
    }
    static const char reset[] = "\x1b[0m"; /* ends a coloured line */
    for (bool more = true; more;) {
        while (t.n > 0 && isspace((unsigned char)t.p[t.n - 1])) {
            t.n--;
        }
        more = str_ends(t, reset);
        t.n -= more ? sizeof reset - 1 : 0;
    }
    return t;
}

static bool is_traceback_start(struct str t)
{
    return has(t, "Traceback (most recent call last)");
}

static bool is_frame(struct str t)
{
    return t.n == 0 || isspace((unsigned char)t.p[0]) || t.p[0] == '^' ||
           str_starts(t, "frame #") || has(t, "During handling of the above exception") ||
           has(t, "The above exception was the direct cause");
}

/* Printed because some other process has died, or to say that one has. */
static bool is_aftermath(struct str t)
{
    static const char *const parts[] = {"ChildFailedError",
                                        "closing signal SIGTERM",
                                        "\"event\":\"stop_asked\"", /* our worker */
                                        "Horovod has been shut down",
                                        "exits with return code",
                                        "returned non-zero exit status",
                                        "has exited with non-zero",
                                        "exited with non-zero status",
                                        "non-zero exit code",
                                        "terminated normally, but 1 process",
                                        "ProcessExitedException",
                                        "Killing subprocess",
                                        "Root Cause (first observed failure)",
                                        "To enable traceback see",
                                        "failed (exitcode: 1)",
                                        "exitcode  : 1 ",
                                        "exitcode : 1 ",
                                        "ExecuteUserScriptError",
                                        "Reporting training FAILURE",
                                        "MPI_ABORT",
                                        "mpirun detected",
                                        "remote process exited",
                                        "remote peer",
                                        "Broken pipe",
                                        "NCCL communicator was aborted",
                                        "taking the entire process down",
                                        "watchdog thread terminated",
                                        "Watchdog caught",
                                        "Connection reset by peer",
                                        "ncclRemoteError",
                                        "RendezvousClosedError",
                                        "DistBackendError",
                                        "ProcessGroupNCCL",
                                        "Socket closed",
                                        "NCCL WARN",
                                        "ExitCode ",
                                        "ErrorMessage ",
                                        "slurmstepd: error: *** STEP",
                                        "srun: error:",
                                        "Job step aborted",
                                        "terminate called after throwing",
                                        "ORTE has lost communication",
                                        "unexpectedly disconnected",
                                        "ProcessRaisedException",
                                        "Process name: [[",
                                        "Exit code:",
                                        "Command \"",
                                        "exit code 1",
                                        "exit status 1"};
    return has_any(t, parts, ARRAY_LEN(parts));
}

/* The code of the program in a traceback, progress, and what is said in passing. */
static bool is_talk(struct str t)
{
    static const char *const parts[] = {
        "INFO",     "DEBUG",    "FutureWarning", "UserWarning", "DeprecationWarning",
        "retrying", "Retrying", "NCCL INFO"};
    static const char *const decisive[] = {"death signal", "closing signal SIG", "MemoryError",
                                           "Killed process", "oom-kill"};
    return has_any(t, parts, ARRAY_LEN(parts)) && !has_any(t, decisive, ARRAY_LEN(decisive));
}

static bool is_error_line(struct str t)
{
    static const char *const parts[] = {"error",
                                        "Error",
                                        "ERROR",
                                        "fatal",
                                        "FATAL",
                                        "Fatal",
                                        "panic",
                                        "CRITICAL",
                                        "Killed",
                                        "killed",
                                        "abort",
                                        "Segmentation",
                                        "terminate called",
                                        "Exception",
                                        "denied",
                                        "cannot",
                                        "Cannot",
                                        "failed",
                                        "Failed",
                                        "not found"};
    return has_any(t, parts, ARRAY_LEN(parts));
}

/* "ValueError: bad shape", "torch.cuda.OutOfMemoryError: ...": the end of a traceback. */
static bool is_last_words(struct str t)
{
    size_t n = 0;
    while (n < t.n && (isalnum((unsigned char)t.p[n]) || t.p[n] == '_' || t.p[n] == '.')) {
        n++;
    }
    return n >= 3 && (n == t.n || t.p[n] == ':') && !isdigit((unsigned char)t.p[0]);
}

static size_t add(char out[static JOINED_MAX + 1], size_t used, struct str t)
{
    int len = snprintf(out + used, JOINED_MAX + 1 - used, STR_FMT "\n", STR_ARG(t));
    return MIN(used + (size_t)MAX(len, 0), (size_t)JOINED_MAX);
}

/* The traceback from `from` on that ends with the line `at`, with the lines behind it that go on
 * with it: all of the same host, up to a traceback or a mark. */
static void join(const struct log_line *lines, size_t n, size_t from, size_t at,
                 char out[static JOINED_MAX + 1])
{
    size_t used = 0;
    int more = 0;
    size_t left = 0;
    for (size_t i = at + 1; i-- > from && left < JOINED_MAX / 2;) { /* its end, when it is long */
        left += str_eq(lines[i].host, lines[at].host) ? lines[i].text.n + 1 : 0;
        from = left < JOINED_MAX / 2 ? from : i;
    }
    for (size_t i = from; i <= at; i++) {
        if (str_eq(lines[i].host, lines[at].host)) {
            used = add(out, used, without_marks(lines[i].text));
        }
    }
    for (size_t i = at + 1; i < n && more < 4 && used < JOINED_MAX; i++) {
        if (!str_eq(lines[i].host, lines[at].host)) {
            continue;
        }
        struct str next = without_marks(lines[i].text);
        if (next.n == 0 || is_traceback_start(next) || isdigit((unsigned char)next.p[0]) ||
            next.p[0] == '[' || next.p[0] == '=' || next.p[0] == '-' || is_talk(next)) {
            break;
        }
        used = add(out, used, next);
        more++;
    }
}

/* By its words, or by an exit code that tells of a kill. */
static bool is_told(const struct cause_text *said)
{
    return said->by == CAUSE_BY_WORDS ||
           (said->by == CAUSE_BY_EXIT &&
            (said->cause == CAUSE_OOM || said->cause == CAUSE_STOPPED ||
             said->cause == CAUSE_TIMEOUT));
}

static enum strength strength_of(const struct tail_host *h, struct str t,
                                 const struct cause_text *said)
{
    if (is_aftermath(t)) {
        return AFTERMATH;
    }
    if (h->in_traceback && is_last_words(t)) {
        return LAST_WORDS;
    }
    if (is_talk(t)) {
        return NO_SIGN;
    }
    bool known = is_told(said);
    if (known && is_error_line(t)) {
        return ERROR_LINE;
    }
    if (said->by == CAUSE_BY_EXCEPTION && is_last_words(t)) {
        return ERROR_LINE;
    }
    return known ? WORDS : NO_SIGN;
}

/* A sign that names a cause beats one that only names an exception; then the stronger; then the
 * earlier. */
static bool beats(const struct sign *a, const struct sign *b)
{
    bool a_own = a->strength > AFTERMATH;
    bool b_own = b->strength > AFTERMATH;
    if (b->strength == NO_SIGN || a_own != b_own) {
        return a_own || b->strength == NO_SIGN;
    }
    bool a_told = is_told(&a->said);
    bool b_told = is_told(&b->said);
    if (a_told != b_told) {
        return a_told;
    }
    if (a->strength != b->strength) {
        return a->strength > b->strength;
    }
    return false; /* the earlier stays */
}

static void read_line(struct tail_host *h, const struct log_line *lines, size_t n, size_t at)
{
    struct str t = without_marks(lines[at].text);
    if (is_traceback_start(t)) {
        h->started_at = h->in_traceback ? h->started_at : at;
        h->in_traceback = true;
        return;
    }
    if (h->in_traceback && is_frame(t)) {
        return;
    }
    char joined[JOINED_MAX + 1];
    struct sign s = {.time = lines[at].time, .at = at};
    s.said = cause_of_text(t);
    s.strength = strength_of(h, t, &s.said);
    if (s.strength == LAST_WORDS && !is_told(&s.said)) {
        join(lines, n, h->started_at, at, joined);
        s.said = cause_of_text(str_of(joined));
    }
    h->in_traceback = false;
    if (s.strength == NO_SIGN) {
        h->quiet += t.n > 0;
        return;
    }
    if (h->quiet >= QUIET_LINES || beats(&s, &h->best)) {
        h->best = s;
    }
    h->quiet = 0;
}

static struct tail_host *host_of(struct tail_host *hosts, size_t *n, struct str name)
{
    for (size_t i = 0; i < *n; i++) {
        if (str_eq(hosts[i].name, name)) {
            return &hosts[i];
        }
    }
    if (*n == HOSTS_MAX) {
        return NULL;
    }
    hosts[*n] = (struct tail_host){.name = name};
    return &hosts[(*n)++];
}

/* Which of two hosts failed first: its own words before what it died of, then the earlier. */
static bool failed_before(const struct sign *a, const struct sign *b)
{
    bool a_own = a->strength > AFTERMATH;
    bool b_own = b->strength > AFTERMATH;
    return a_own != b_own ? a_own : a->time < b->time;
}

/* Cut to size, well-formed and without control characters, whatever a program printed. */
static void put_text(struct str t, char *out, size_t size)
{
    size_t n = cause_whole_characters(t.p, MIN(t.n, size - 1));
    bool whole = str_is_utf8((struct str){t.p, n});
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)t.p[i];
        out[i] = (char)(c < 32 || c == 127 ? ' ' : c > 127 && !whole ? '?' : c);
    }
    out[n] = '\0';
}

void log_tail_read(const struct log_line *lines, size_t n, struct log_tail_evidence *ret)
{
    struct tail_host hosts[HOSTS_MAX];
    size_t hosts_n = 0;
    const struct tail_host *first = NULL;
    *ret = (struct log_tail_evidence){.cause = CAUSE_UNKNOWN};
    for (size_t i = 0; i < n; i++) {
        struct tail_host *h = host_of(hosts, &hosts_n, lines[i].host);
        if (h != NULL) {
            read_line(h, lines, n, i);
        }
    }
    for (size_t i = 0; i < hosts_n; i++) {
        const struct sign *s = &hosts[i].best;
        if (s->strength != NO_SIGN && (first == NULL || failed_before(s, &first->best))) {
            first = &hosts[i];
        }
    }
    ret->alone = hosts_n <= 1;
    if (first == NULL) {
        return;
    }
    struct str t = without_marks(lines[first->best.at].text);
    t = str_trim(t);
    /* Who is told to stop in a job that failed is told so because another host died. */
    bool told = first->best.strength == AFTERMATH && first->best.said.cause == CAUSE_STOPPED;
    bool bare = first->best.said.by == CAUSE_BY_EXIT && !is_told(&first->best.said);
    ret->cause = told || bare ? CAUSE_UNKNOWN : first->best.said.cause;
    put_text(first->name, ret->host, sizeof ret->host);
    put_text(t, ret->text, sizeof ret->text);
    if (ret->text[0] == '\0') {
        ret->cause = CAUSE_UNKNOWN;
    }
}
