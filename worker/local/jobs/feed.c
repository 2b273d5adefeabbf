/* See feed.h. */
#include "feed.h"
#include "feed_plan.h"
#include "files.h"
#include "transfer.h"
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <zlib.h>

#define CHUNK               65536
#define FEED_LINE_BYTES_MAX (64u << 20)
#define RECORD_MAGIC        0xced7230aU
#define RECORD_SIZE_MAX     ((1 << 29) - 1) /* bits of a length */
#define FAILED_FILE         "input_failed"

struct feeder { /* of one host and one channel */
    const struct supervisor *s;
    const struct feed_plan *plan;
    const struct job_host *host;
    int fd;
    bool left; /* the reader has closed this epoch's FIFO */
};

static void data_write(struct feeder *f, const void *p, size_t n)
{
    const char *at = p;
    while (n > 0 && !f->left) {
        ssize_t done = write(f->fd, at, n);
        if (done >= 0) {
            at += done;
            n -= (size_t)done;
        } else if (errno != EINTR) {
            f->left = true;
        }
    }
}

static void record_begin(struct feeder *f, size_t n)
{
    const uint32_t head[2] = {htole32(RECORD_MAGIC), htole32((uint32_t)n)};
    data_write(f, head, sizeof head);
}

static void record_end(struct feeder *f, size_t n)
{
    data_write(f, "\0\0\0", (4 - n % 4) % 4);
}

static bool text_send(struct feeder *f, struct str text, struct err *err)
{
    if (f->plan->recordio && text.n > RECORD_SIZE_MAX) {
        return err_set(err, ERR_TOO_LARGE, "it does not fit into a record");
    }
    if (f->plan->recordio) {
        record_begin(f, text.n);
    }
    data_write(f, text.p, text.n);
    if (f->plan->recordio) {
        record_end(f, text.n);
    }
    return true;
}

/* Send a file as it is. */
static bool file_send(struct feeder *f, int fd, struct err *err)
{
    char chunk[CHUNK];
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return err_set_os(err, ERR_IO, errno, "cannot read it");
    }
    if (f->plan->recordio && st.st_size > RECORD_SIZE_MAX) {
        return err_set(err, ERR_TOO_LARGE, "it does not fit into a record");
    }
    if (f->plan->recordio) {
        record_begin(f, (size_t)st.st_size);
    }
    for (off_t left = st.st_size; left > 0 && !f->left;) {
        ssize_t n = read(fd, chunk, (size_t)MIN((off_t)sizeof chunk, left));
        if (n <= 0) {
            return err_set_os(err, ERR_IO, n == 0 ? EIO : errno, "cannot read it");
        }
        data_write(f, chunk, (size_t)n);
        left -= n;
    }
    if (f->plan->recordio) {
        record_end(f, (size_t)st.st_size);
    }
    return true;
}

/* Send what a gzip file holds; a record's length must be known before its bytes. */
static bool gzip_send(struct feeder *f, int fd, struct err *err)
{
    AUTO_BUF struct buf record = BUF_INIT(RECORD_SIZE_MAX);
    char chunk[CHUNK];
    gzFile gz = gzdopen(fd, "rb");
    ASSERT(gz != NULL);
    int n = 1;
    bool direct = false;
    while (!f->left && (n = gzread(gz, chunk, sizeof chunk)) > 0) {
        direct = direct || gzdirect(gz) != 0;
        if (f->plan->recordio) {
            buf_add(&record, chunk, (size_t)n);
        } else if (!direct) {
            data_write(f, chunk, (size_t)n);
        }
    }
    bool whole = gzclose_r(gz) == Z_OK && n == 0;
    if (!f->left && (direct || !whole)) {
        return err_set(err, ERR_MALFORMED, "The gzip file is corrupt");
    }
    if (record.overflow) {
        return err_set(err, ERR_TOO_LARGE, "it does not fit into a record");
    }
    return !f->plan->recordio || text_send(f, buf_str(&record), err);
}

static bool object_send(struct feeder *f, const char *uri, struct err *err)
{
    char path[PATH_MAX];
    int fd = -1;
    bool ok = transfer_object(f->s, uri, path, err);
    if (ok && (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0) {
        ok = err_set_os(err, ERR_IO, errno, "cannot open it");
    }
    if (ok && f->plan->gzip) {
        ok = gzip_send(f, fd, err); /* closes it */
    } else if (ok) {
        ok = file_send(f, fd, err);
        (void)close(fd);
    }
    return ok || transfer_fail(uri, err);
}

/* The attributes of one line of an augmented manifest, in their order. */
static bool line_send(struct feeder *f, const char *line, struct err *err)
{
    AUTO_JSON json_t *parsed = NULL;
    size_t i;
    json_t *name;
    bool ok = json_parse(str_of(line), FEED_LINE_BYTES_MAX, &parsed, err);
    json_array_foreach(f->plan->attributes, i, name)
    {
        AUTO_FREE char *value = NULL;
        bool object;
        ok = ok &&
             feed_plan_value(str_of(line), parsed, json_string_value(name), &object, &value, err);
        ok = ok && (object ? object_send(f, value, err) : text_send(f, str_of(value), err));
    }
    return ok;
}

static bool units_send(struct feeder *f, int64_t epoch, struct err *err)
{
    size_t n;
    bool ok = true;
    AUTO_FREE size_t *order = feed_plan_order(f->plan, epoch, f->host->k, f->s->hosts_n, &n);
    for (size_t i = 0; ok && !f->left && i < n; i++) {
        const char *unit = feed_plan_unit(f->plan, order[i]);
        ok = f->plan->attributes != NULL ? line_send(f, unit, err) : object_send(f, unit, err);
    }
    return ok;
}

static bool fifo_path(const struct job_host *h, const char *channel, int64_t epoch,
                      char out[static PATH_MAX], struct err *err)
{
    return files_path(out, PATH_MAX, err, "%s/input/data/%s_%lld", h->ml, channel,
                      (long long)epoch);
}

static bool fifo_make(const struct job_host *h, const char *channel, int64_t epoch, struct err *err)
{
    char path[PATH_MAX];
    if (!fifo_path(h, channel, epoch, path, err)) {
        return false;
    }
    if (mkfifo(path, 0666) != 0) {
        enum err_code code = errno == EEXIST ? ERR_CONFLICT : ERR_IO;
        (void)err_set_os(err, code, errno, "cannot make '%s'", path);
        return err_wrap(err, "ClientError: Data download failed");
    }
    return true;
}

/* Wait for the reader of an epoch and send it everything. After a failure the FIFO stays open. */
static bool epoch_run(struct feeder *f, int64_t epoch, struct err *err)
{
    char path[PATH_MAX];
    if (!fifo_path(f->host, f->plan->name, epoch, path, err)) {
        return false;
    }
    do {
        f->fd = open(path, O_WRONLY | O_CLOEXEC);
    } while (f->fd < 0 && errno == EINTR);
    if (f->fd < 0) {
        (void)err_set_os(err, ERR_IO, errno, "cannot open '%s'", path);
        return err_wrap(err, "ClientError: Data download failed");
    }
    f->left = false;
    if (!fifo_make(f->host, f->plan->name, epoch + 1, err) || !units_send(f, epoch, err)) {
        return false;
    }
    (void)unlink(path);
    (void)close(f->fd);
    return true;
}

/* In the child. Never returns to the supervisor's code. */
static NORETURN void feeder_run(struct feeder *f, pid_t parent)
{
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    struct err unwritten = ERR_INIT;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(1); /* the parent died before the line above */
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)close_range(3, ~0U, 0);
    for (int64_t epoch = 0; epoch_run(f, epoch, &err); epoch++) {
    }
    if (!files_path(path, sizeof path, &unwritten, "%s/" FAILED_FILE, f->s->folder) ||
        !files_write(path, str_of(err.message), &unwritten)) {
        _exit(1);
    }
    for (;;) {
        (void)pause(); /* the supervisor has seen the file and ends this */
    }
}

bool feeds_start(struct supervisor *s, struct err *err)
{
    size_t hosts = (size_t)s->hosts_n;
    s->feeders = xcalloc(s->plans_n * hosts + 1, sizeof *s->feeders);
    for (size_t i = 0; i < s->plans_n * hosts; i++) {
        struct feeder f = {.s = s, .plan = &s->plans[i / hosts], .host = &s->hosts[i % hosts]};
        if (!fifo_make(f.host, f.plan->name, 0, err)) {
            return false;
        }
    }
    pid_t self = getpid();
    for (size_t i = 0; i < s->plans_n * hosts; i++) {
        struct feeder f = {.s = s, .plan = &s->plans[i / hosts], .host = &s->hosts[i % hosts]};
        pid_t pid = fork();
        if (pid == 0) {
            feeder_run(&f, self);
        }
        if (pid < 0) {
            return err_set_os(err, ERR_IO, errno, "cannot fork");
        }
        s->feeders[i] = pid;
    }
    return true;
}

void feeds_end_host(struct supervisor *s, int k)
{
    size_t hosts = (size_t)s->hosts_n;
    for (size_t i = (size_t)k - 1; s->feeders != NULL && i < s->plans_n * hosts; i += hosts) {
        if (s->feeders[i] > 0) {
            (void)kill(s->feeders[i], SIGKILL);
            s->feeders[i] = -s->feeders[i]; /* its end is no surprise */
        }
    }
}

void feeds_reaped(struct supervisor *s, pid_t pid)
{
    size_t n = s->feeders == NULL ? 0 : s->plans_n * (size_t)s->hosts_n;
    for (size_t i = 0; i < n; i++) {
        if (s->feeders[i] == pid || s->feeders[i] == -pid) {
            s->feeder_lost = s->feeder_lost || s->feeders[i] == pid;
            s->feeders[i] = 0;
        }
    }
}

void feeds_end(struct supervisor *s)
{
    size_t n = s->feeders == NULL ? 0 : s->plans_n * (size_t)s->hosts_n;
    for (int k = 1; k <= s->hosts_n; k++) {
        feeds_end_host(s, k);
    }
    for (size_t i = 0; i < n; i++) {
        if (s->feeders[i] != 0) {
            (void)waitpid(-s->feeders[i], NULL, 0);
            s->feeders[i] = 0;
        }
    }
}

bool feeds_failed(const struct supervisor *s, char ret_reason[static FEED_REASON_MAX + 1])
{
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    AUTO_BUF struct buf text = BUF_INIT(FEED_REASON_MAX);
    if (s->plans_n == 0) {
        return false;
    }
    if (files_path(path, sizeof path, &err, "%s/" FAILED_FILE, s->folder)) {
        files_read_head(path, FEED_REASON_MAX, &text);
    }
    (void)snprintf(ret_reason, FEED_REASON_MAX + 1, "%s",
                   text.n > 0 ? buf_cstr(&text)
                              : "InternalServerError: We encountered an internal error. Please try "
                                "again.");
    return text.n > 0 || s->feeder_lost;
}
