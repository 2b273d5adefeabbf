/* CloudWatch Logs over ROOT/jobs/<name>/algo-<k>/log, whose lines are "<ms> <text>". One stream per
 * host, named <job>/algo-<k>-<second it began>. See services.h. */
#include "filter_pattern.h"
#include "local/app.h"
#include "local/jobs/files.h"
#include "services.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define GROUP           "/aws/sagemaker/TrainingJobs"
#define EVENTS_LIMIT    10000
#define STREAMS_LIMIT   50
#define PAGE_BYTES_MAX  (1 << 20)
#define STREAM_NAME_MAX 160
#define FILTER_STREAMS  500
#define NAMES_MAX       100
#define GROUPS_LIMIT    50
#define TIME_BYTES_MAX  63 /* a log line's time and more */

static void stream_name(const struct local_job *job, int64_t host, char out[static STREAM_NAME_MAX])
{
    (void)snprintf(out, STREAM_NAME_MAX, "%s/algo-%lld-%lld", job->name, (long long)host,
                   (long long)(job->started / USEC_PER_SEC));
}

bool logs_path(const struct app *app, const struct local_job *job, int64_t host,
               char out[static PATH_MAX])
{
    struct err err = ERR_INIT;
    return files_path(out, PATH_MAX, &err, "%s/jobs/%s/algo-%lld/log", app->root, job->name,
                      (long long)host);
}

/* The group is made with the first job that runs; NULL: none has. */
static const struct local_job *first_started(const struct app *app)
{
    for (size_t i = 0; i < app->jobs.n; i++) {
        if (app->jobs.items[i]->started != 0) {
            return app->jobs.items[i];
        }
    }
    return NULL;
}

/* Group name checked; false: answered. */
static bool group_ok(struct request *r)
{
    const char *group = json_string_value(json_object_get(r->input, "logGroupName"));
    if (group != NULL && strcmp(group, GROUP) == 0 && first_started(r->app) != NULL) {
        return true;
    }
    reply_error(r, 400, "ResourceNotFoundException", "The specified log group does not exist.");
    return false;
}

/* First and last time in a log, in ms; false when it is empty. */
static bool log_span(const char *path, int64_t *ret_first, int64_t *ret_last)
{
    struct stat st;
    if (stat(path, &st) != 0 || st.st_size == 0) {
        return false;
    }
    AUTO_BUF struct buf b = BUF_INIT(TIME_BYTES_MAX + 1);
    files_read_head(path, TIME_BYTES_MAX, &b);
    struct str rest = buf_str(&b);
    struct err err = ERR_INIT;
    *ret_last = st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
    return parse_i64(str_split(&rest, ' '), 0, INT64_MAX, ret_first, &err);
}

/* Calls fn for each stream whose name begins with prefix, in order of jobs, until fn returns
 * false. */
static void streams_each(const struct app *app, const char *prefix,
                         bool (*fn)(void *ctx, const struct local_job *job, int64_t host),
                         void *ctx)
{
    char name[STREAM_NAME_MAX];
    const char *slash = strchr(prefix, '/');
    size_t at = 0;
    size_t end = app->jobs.n;
    if (slash != NULL && slash - prefix < 64) {
        char job_name[64];
        (void)snprintf(job_name, sizeof job_name, "%.*s", (int)(slash - prefix), prefix);
        const struct local_job *job = jobs_find(&app->jobs, job_name);
        at = job == NULL ? end : (size_t)job->seq;
        end = MIN(end, at + 1);
    }
    for (; at < end; at++) {
        const struct local_job *job = app->jobs.items[at];
        for (int64_t k = 1; job->started != 0 && !job->ghost && k <= job->instances; k++) {
            stream_name(job, k, name);
            if (strncmp(name, prefix, strlen(prefix)) == 0 && !fn(ctx, job, k)) {
                return;
            }
        }
    }
}

struct streams {
    const struct app *app;
    json_t *list;
    int64_t skip;
    int64_t limit;
    bool more;
};

static bool streams_found(void *ctx, const struct local_job *job, int64_t host)
{
    struct streams *s = ctx;
    char name[STREAM_NAME_MAX];
    char path[PATH_MAX];
    int64_t first;
    int64_t last;
    if (!logs_path(s->app, job, host, path) || access(path, F_OK) != 0) {
        return true; /* the job was not started */
    }
    if (s->skip > 0) {
        s->skip--;
        return true;
    }
    if ((int64_t)json_array_size(s->list) == s->limit) {
        s->more = true;
        return false;
    }
    stream_name(job, host, name);
    AUTO_FREE char *arn = xasprintf("arn:aws:logs:%s:%s:log-group:" GROUP ":log-stream:%s",
                                    s->app->set.region, s->app->set.account, name);
    json_t *o = json_pack("{s:s, s:I, s:s, s:i}", "logStreamName", name, "creationTime",
                          (json_int_t)(job->started / USEC_PER_MSEC), "arn", arn, "storedBytes", 0);
    if (log_span(path, &first, &last)) {
        (void)json_object_set_new(o, "firstEventTimestamp", json_integer(first));
        (void)json_object_set_new(o, "lastEventTimestamp", json_integer(last));
        (void)json_object_set_new(o, "lastIngestionTime", json_integer(last));
    }
    (void)json_array_append_new(s->list, o);
    return true;
}

void logs_describe_streams(struct request *r)
{
    struct streams s = {.app = r->app};
    struct err err = ERR_INIT;
    const char *prefix;
    const char *token;
    if (!group_ok(r)) {
        return;
    }
    if (!json_get_str(r->input, "logStreamNamePrefix", "", &prefix, &err) ||
        !json_get_str(r->input, "nextToken", "0", &token, &err) ||
        !json_get_i64(r->input, "limit", 1, STREAMS_LIMIT, STREAMS_LIMIT, &s.limit, &err) ||
        !parse_i64(str_of(token), 0, INT32_MAX, &s.skip, &err)) {
        reply_error(r, 400, "InvalidParameterException", "%s", err.message);
        return;
    }
    int64_t from = s.skip;
    s.list = json_array();
    streams_each(r->app, prefix, streams_found, &s);
    json_t *o = json_pack("{s:o}", "logStreams", s.list);
    if (s.more) {
        char next[32];
        (void)snprintf(next, sizeof next, "%lld", (long long)(from + s.limit));
        (void)json_object_set_new(o, "nextToken", json_string(next));
    }
    reply_json(r, o);
}

struct log_page {
    json_t *events;
    int64_t limit;
    int64_t bytes;
    int64_t start_ms;
    int64_t end_ms;
    struct filter_pattern *pattern; /* NULL: any */
    const char *stream;             /* shown with each event when set */
    int64_t offset;                 /* offset of the next page */
    int64_t until;                  /* no line from this offset on; 0: to the end */
};

static void event_add(struct log_page *p, int64_t ms, struct str text)
{
    AUTO_BUF struct buf clean = BUF_INIT(PAGE_BYTES_MAX);
    buf_add_str(&clean, text);
    for (size_t i = 0; i < clean.n && !str_is_utf8(text); i++) {
        clean.p[i] = clean.p[i] >= 32 && clean.p[i] < 127 ? clean.p[i] : '?';
    }
    json_t *o = json_pack("{s:I, s:s, s:I}", "timestamp", (json_int_t)ms, "message",
                          buf_cstr(&clean), "ingestionTime", (json_int_t)ms);
    if (p->stream != NULL) {
        (void)json_object_set_new(o, "logStreamName", json_string(p->stream));
    }
    p->bytes += (int64_t)text.n + 26;
    (void)json_array_append_new(p->events, o);
}

/* Whole lines from p->offset on, until the page is full. */
static void page_read(struct log_page *p, const char *path)
{
    AUTO_FILE FILE *f = fopen(path, "re");
    AUTO_FREE char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    if (f == NULL || fseeko(f, p->offset, SEEK_SET) != 0) {
        return;
    }
    while ((int64_t)json_array_size(p->events) < p->limit && p->bytes < PAGE_BYTES_MAX &&
           (p->until == 0 || p->offset < p->until) && (n = getline(&line, &cap, f)) > 0 &&
           line[n - 1] == '\n') {
        struct str text = {line, (size_t)n - 1};
        struct str stamp = str_split(&text, ' ');
        struct err err = ERR_INIT;
        int64_t ms = 0;
        p->offset += n;
        if (parse_i64(stamp, 0, INT64_MAX, &ms, &err) && ms >= p->start_ms && ms < p->end_ms &&
            (p->pattern == NULL || filter_pattern_fits(p->pattern, text))) {
            event_add(p, ms, text);
        }
    }
}

/* Offset of the line that is `lines` lines before an offset; 0: before the end. */
static int64_t tail_offset(const char *path, int64_t before, int64_t lines)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    char chunk[65536];
    if (fd < 0 || fstat(fd, &st) != 0) {
        return 0;
    }
    int64_t seen = 0;
    off_t last = before == 0 ? st.st_size : MIN((off_t)before, st.st_size);
    for (off_t end = last; end > 0;) {
        off_t from = MAX((off_t)0, end - (off_t)sizeof chunk);
        ssize_t n = pread(fd, chunk, (size_t)(end - from), from);
        for (ssize_t i = n; i > 0; i--) {
            /* The newline that ends the line before the ones wanted. */
            if (chunk[i - 1] == '\n' && seen++ == lines) {
                return from + i;
            }
        }
        if (n <= 0 || last - from > PAGE_BYTES_MAX) {
            return from;
        }
        end = from;
    }
    return 0;
}

static const struct local_job *stream_job(const struct app *app, const char *stream,
                                          int64_t *ret_host)
{
    struct str rest = str_of(stream);
    struct str name = str_split(&rest, '/');
    char text[64];
    char want[STREAM_NAME_MAX];
    struct err err = ERR_INIT;
    if (name.n >= sizeof text || !str_starts(rest, "algo-")) {
        return NULL;
    }
    (void)snprintf(text, sizeof text, STR_FMT, STR_ARG(name));
    rest = (struct str){rest.p + 5, rest.n - 5};
    const struct local_job *job = jobs_find(&app->jobs, text);
    if (job == NULL || !parse_i64(str_split(&rest, '-'), 1, job->instances, ret_host, &err)) {
        return NULL;
    }
    stream_name(job, *ret_host, want);
    return strcmp(want, stream) == 0 ? job : NULL;
}

void logs_get_events(struct request *r)
{
    struct log_page p = {.pattern = NULL};
    struct err err = ERR_INIT;
    const char *stream;
    const char *token;
    bool from_head;
    char path[PATH_MAX];
    char next[32];
    int64_t host;
    if (!group_ok(r)) {
        return;
    }
    if (!json_get_required_str(r->input, "logStreamName", &stream, &err) ||
        !json_get_str(r->input, "nextToken", "", &token, &err) ||
        !json_get_bool(r->input, "startFromHead", false, &from_head, &err) ||
        !json_get_i64(r->input, "limit", 1, EVENTS_LIMIT, EVENTS_LIMIT, &p.limit, &err) ||
        !json_get_i64(r->input, "startTime", 0, INT64_MAX, 0, &p.start_ms, &err) ||
        !json_get_i64(r->input, "endTime", 0, INT64_MAX, INT64_MAX, &p.end_ms, &err)) {
        reply_error(r, 400, "InvalidParameterException", "%s", err.message);
        return;
    }
    const struct local_job *job = stream_job(r->app, stream, &host);
    if (job == NULL || !logs_path(r->app, job, host, path)) {
        reply_error(r, 400, "ResourceNotFoundException",
                    "The specified log stream does not exist.");
        return;
    }
    bool back = strncmp(token, "b/", 2) == 0;
    if (token[0] != '\0' && ((strncmp(token, "f/", 2) != 0 && !back) ||
                             !parse_i64(str_of(token + 2), 0, INT64_MAX, &p.offset, &err))) {
        reply_error(r, 400, "InvalidParameterException", "The specified nextToken is invalid.");
        return;
    }
    if (token[0] == '\0' && !from_head) {
        p.offset = tail_offset(path, 0, p.limit);
    }
    bool at_start = back && p.offset == 0;
    if (back && !at_start) {
        p.until = p.offset;
        p.offset = tail_offset(path, p.until, p.limit);
    }
    int64_t begin = p.offset;
    p.events = json_array();
    if (!at_start) {
        page_read(&p, path);
    }
    json_t *o = json_pack("{s:o}", "events", p.events);
    (void)snprintf(next, sizeof next, "f/%lld", (long long)p.offset);
    (void)json_object_set_new(o, "nextForwardToken", json_string(next));
    (void)snprintf(next, sizeof next, "b/%lld", (long long)begin);
    (void)json_object_set_new(o, "nextBackwardToken", json_string(next));
    reply_json(r, o);
}

struct filter {
    const struct app *app;
    struct log_page page;
    int64_t skip_streams;
    int64_t stream;
    json_t *names; /* of the only streams wanted, borrowed; NULL: any */
    char next[64];
};

static bool is_named(const json_t *names, const char *name)
{
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *other = json_string_value(json_array_get(names, i));
        if (other != NULL && strcmp(other, name) == 0) {
            return true;
        }
    }
    return names == NULL;
}

static bool filter_found(void *ctx, const struct local_job *job, int64_t host)
{
    struct filter *f = ctx;
    char path[PATH_MAX];
    char name[STREAM_NAME_MAX];
    if (f->stream++ < f->skip_streams) {
        return true;
    }
    stream_name(job, host, name);
    if (!is_named(f->names, name) || !logs_path(f->app, job, host, path)) {
        f->page.offset = 0;
        return true;
    }
    f->page.stream = name;
    page_read(&f->page, path);
    f->page.stream = NULL;
    bool full = (int64_t)json_array_size(f->page.events) >= f->page.limit ||
                f->page.bytes >= PAGE_BYTES_MAX;
    if (full) {
        (void)snprintf(f->next, sizeof f->next, "%lld/%lld", (long long)f->stream - 1,
                       (long long)f->page.offset);
    }
    f->page.offset = 0;
    return !full;
}

void logs_filter_events(struct request *r)
{
    struct filter f = {.app = r->app};
    struct err err = ERR_INIT;
    const char *prefix;
    const char *token;
    const char *pattern;
    if (!group_ok(r)) {
        return;
    }
    if (!json_get_str(r->input, "logStreamNamePrefix", "", &prefix, &err) ||
        !json_get_array(r->input, "logStreamNames", &f.names, &err) ||
        !json_get_str(r->input, "filterPattern", "", &pattern, &err) ||
        !json_get_str(r->input, "nextToken", "0/0", &token, &err) ||
        !json_get_i64(r->input, "limit", 1, EVENTS_LIMIT, EVENTS_LIMIT, &f.page.limit, &err) ||
        !json_get_i64(r->input, "startTime", 0, INT64_MAX, 0, &f.page.start_ms, &err) ||
        !json_get_i64(r->input, "endTime", 0, INT64_MAX, INT64_MAX, &f.page.end_ms, &err)) {
        reply_error(r, 400, "InvalidParameterException", "%s", err.message);
        return;
    }
    if (f.names != NULL && (prefix[0] != '\0' || json_array_size(f.names) > NAMES_MAX)) {
        reply_error(
            r, 400, "InvalidParameterException",
            "At most 100 logStreamNames may be given, and no logStreamNamePrefix with them");
        return;
    }
    struct str rest = str_of(token);
    struct str stream = str_split(&rest, '/');
    if (!parse_i64(stream, 0, INT32_MAX, &f.skip_streams, &err) ||
        !parse_i64(rest, 0, INT64_MAX, &f.page.offset, &err)) {
        reply_error(r, 400, "InvalidParameterException", "The specified nextToken is invalid.");
        return;
    }
    if (!filter_pattern_new(pattern, &f.page.pattern, &err)) {
        reply_error(r, 400, "InvalidParameterException", "%s", err.message);
        return;
    }
    f.page.events = json_array();
    streams_each(r->app, prefix, filter_found, &f);
    filter_pattern_free(f.page.pattern);
    json_t *o = json_pack("{s:o, s:[]}", "events", f.page.events, "searchedLogStreams");
    if (f.next[0] != '\0') {
        (void)json_object_set_new(o, "nextToken", json_string(f.next));
    }
    reply_json(r, o);
}

/* There is one group, once a job has run. */
void logs_describe_groups(struct request *r)
{
    struct err err = ERR_INIT;
    const char *prefix;
    const char *pattern;
    const char *token;
    int64_t limit;
    if (!json_get_str(r->input, "logGroupNamePrefix", "", &prefix, &err) ||
        !json_get_str(r->input, "logGroupNamePattern", "", &pattern, &err) ||
        !json_get_str(r->input, "nextToken", "", &token, &err) ||
        !json_get_i64(r->input, "limit", 1, GROUPS_LIMIT, GROUPS_LIMIT, &limit, &err)) {
        reply_error(r, 400, "InvalidParameterException", "%s", err.message);
        return;
    }
    if ((prefix[0] != '\0' && pattern[0] != '\0') || token[0] != '\0') {
        reply_error(r, 400, "InvalidParameterException", "%s",
                    token[0] != '\0'
                        ? "The specified nextToken is invalid."
                        : "LogGroup name prefix and LogGroup name pattern are mutually "
                          "exclusive parameters.");
        return;
    }
    const struct local_job *first = first_started(r->app);
    json_t *list = json_array();
    if (first != NULL && strncmp(GROUP, prefix, strlen(prefix)) == 0 &&
        strstr(GROUP, pattern) != NULL) {
        AUTO_FREE char *arn = xasprintf("arn:aws:logs:%s:%s:log-group:" GROUP ":*",
                                        r->app->set.region, r->app->set.account);
        (void)json_array_append_new(
            list, json_pack("{s:s, s:I, s:i, s:s, s:i}", "logGroupName", GROUP, "creationTime",
                            (json_int_t)(first->started / USEC_PER_MSEC), "metricFilterCount", 0,
                            "arn", arn, "storedBytes", 0));
    }
    reply_json(r, json_pack("{s:o}", "logGroups", list));
}
