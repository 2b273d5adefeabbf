/* Folder and S3 sinks. In a folder a name is created by link(2) or rename(2) of a finished, synced
 * temporary file, so a killed worker leaves only files that start with ".tmp-". A living writer
 * holds a lock on its own, which keeps others from removing it. */
#include "common/cleanup.h"
#include "common/json.h"
#include "common/log.h"
#include "common/rng.h"
#include "sink_internal.h"
#include "worker_protocol.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>
#include <sys/stat.h>

#define TMP_TRIES 16

struct sink_stream {
    struct sink *sink;
    struct s3_multipart *multipart;
    int fd;
    char name[SINK_NAME_BYTES_MAX + 1];
    char tmp[SINK_NAME_BYTES_MAX + 64];
};

static bool make_folder(const char *path, struct err *err)
{
    AUTO_FREE char *p = xstrdup(path);
    for (char *at = p + 1; *at != '\0'; at++) {
        if (*at == '/') {
            *at = '\0';
            if (mkdir(p, 0777) != 0 && errno != EEXIST) {
                return err_set_os(err, ERR_IO, errno, "cannot make folder '%s'", p);
            }
            *at = '/';
        }
    }
    if (mkdir(p, 0777) != 0 && errno != EEXIST) {
        return err_set_os(err, ERR_IO, errno, "cannot make folder '%s'", p);
    }
    return true;
}

static bool open_folder(struct sink *s, const char *path, struct err *err)
{
    if (!make_folder(path, err)) {
        return false;
    }
    s->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->dir_fd < 0) {
        return err_set_os(err, ERR_IO, errno, "cannot open folder '%s'", path);
    }
    if (faccessat(s->dir_fd, ".", W_OK | X_OK, AT_EACCESS) != 0) {
        return err_set_os(err, ERR_IO, errno, "cannot write to folder '%s'", path);
    }
    return true;
}

static bool open_s3(struct sink *s, const char *uri, struct err *err)
{
    if (!s3_parse_uri(str_of(uri), &s->base, err)) {
        return false;
    }
    size_t n = strlen(s->base.key);
    if (n > 0 && s->base.key[n - 1] != '/') {
        if (n + 1 + SINK_NAME_BYTES_MAX >= sizeof s->base.key) {
            return err_set(err, ERR_INVALID, "output '%s': the key is too long", uri);
        }
        s->base.key[n] = '/';
        s->base.key[n + 1] = '\0';
    }
    s->patience_us = SINK_S3_PATIENCE_US;
    return sink_s3_connect(s, &s->s3, err);
}

bool sink_s3_connect(const struct sink *s, struct s3_blocking **ret, struct err *err)
{
    if (!s3_blocking_new(S3_TRIES, ret, err)) {
        return false;
    }
    s3_blocking_be_patient(*ret, s->patience_us);
    s3_blocking_encrypt(*ret, getenv(WP_ENV_OUTPUT_KMS_KEY));
    return true;
}

void sink_be_patient(struct sink *s, int64_t patience_us)
{
    if (s->s3 != NULL) {
        s->patience_us = patience_us;
        s3_blocking_be_patient(s->s3, patience_us);
    }
}

bool sink_is_s3(const char *uri)
{
    return str_starts(str_of(uri), "s3://");
}

/* gs:, az: and the like: as a folder they would fill a disk that is thrown away. */
static bool is_foreign_scheme(struct str uri)
{
    size_t n = 0;
    while (n < uri.n && (isalnum((unsigned char)uri.p[n]) || strchr("+.-", uri.p[n]) != NULL)) {
        n++;
    }
    struct str rest = {uri.p + n, uri.n - n};
    return n > 0 && str_starts(rest, "://") && !str_starts(uri, "s3://") &&
           !str_starts(uri, "file://");
}

bool sink_open(const char *uri, struct sink **ret, struct err *err)
{
    struct sink *s = xcalloc(1, sizeof *s);
    s->dir_fd = -1;
    struct str u = str_of(uri);
    bool ok;
    if (is_foreign_scheme(u)) {
        ok = err_set(err, ERR_INVALID,
                     "output '%.200s': only s3://bucket/prefix, file:///folder or a folder can be "
                     "written to",
                     uri);
    } else if (sink_is_s3(uri)) {
        ok = open_s3(s, uri, err);
    } else {
        ok = open_folder(s, str_starts(u, "file://") ? uri + 7 : uri, err);
    }
    if (!ok) {
        sink_free(s);
        return false;
    }
    *ret = s;
    return true;
}

void sink_free(struct sink *s)
{
    if (s == NULL) {
        return;
    }
    if (s->uploads != NULL) {
        s->uploads_free(s->uploads);
    }
    if (s->dir_fd >= 0) {
        (void)close(s->dir_fd);
    }
    if (s->s3 != NULL) {
        s3_blocking_free(s->s3);
    }
    free(s);
}

struct s3_uri sink_uri_of(const struct sink *s, const char *name)
{
    struct s3_uri u = s->base;
    size_t at = strlen(u.key);
    size_t n = strlen(name);
    ASSERT(n <= SINK_NAME_BYTES_MAX);
    ASSERT(at + n < sizeof u.key);
    memcpy(u.key + at, name, n + 1);
    return u;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): ARRAY_ROOM writes to cap */
static void listing_add(struct sink_listing *l, size_t *cap, const char *name, int64_t size,
                        const char *etag)
{
    ARRAY_ROOM(l->objects, l->n, *cap);
    struct sink_object *o = &l->objects[l->n++];
    *o = (struct sink_object){.name = xstrdup(name), .size = size};
    (void)snprintf(o->etag, sizeof o->etag, "%s", etag);
}

static int object_cmp(const void *a, const void *b)
{
    const struct sink_object *x = a;
    const struct sink_object *y = b;
    return strcmp(x->name, y->name);
}

static bool list_folder(struct sink *s, struct sink_listing *l, struct err *err)
{
    int fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL) {
        return err_set_os(err, ERR_IO, errno, "cannot list the output folder");
    }
    size_t cap = 0;
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        struct stat st;
        if (e->d_name[0] == '.' || fstatat(s->dir_fd, e->d_name, &st, 0) != 0) {
            continue;
        }
        if (S_ISDIR(st.st_mode)) {
            AUTO_FREE char *folder = xasprintf("%s/", e->d_name);
            listing_add(l, &cap, folder, 0, "");
        } else if (S_ISREG(st.st_mode)) {
            listing_add(l, &cap, e->d_name, st.st_size, "");
        }
    }
    (void)closedir(d);
    return true;
}

static bool list_s3(struct sink *s, struct sink_listing *l, struct err *err)
{
    struct s3_listing all = {0};
    if (!s3_blocking_list_level(s->s3, &s->base, SINK_OBJECTS_MAX, &all, err)) {
        return false;
    }
    size_t cap = 0;
    size_t skip = strlen(s->base.key);
    for (size_t i = 0; i < all.n; i++) {
        const char *name = all.objects[i].key + skip;
        if (*name != '\0') {
            listing_add(l, &cap, name, all.objects[i].size, all.objects[i].etag);
        }
    }
    s3_listing_done(&all);
    return true;
}

bool sink_list(struct sink *s, struct sink_listing *ret, struct err *err)
{
    struct sink_listing l = {0};
    if (!(s->s3 != NULL ? list_s3(s, &l, err) : list_folder(s, &l, err))) {
        sink_listing_done(&l);
        return false;
    }
    if (l.n > 0) {
        qsort(l.objects, l.n, sizeof *l.objects, object_cmp);
    }
    *ret = l;
    return true;
}

void sink_listing_done(struct sink_listing *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->objects[i].name);
    }
    free(l->objects);
    *l = (struct sink_listing){0};
}

const struct sink_object *sink_listing_find(const struct sink_listing *l, const char *name)
{
    size_t lo = 0;
    size_t hi = l->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strcmp(l->objects[mid].name, name);
        if (c == 0) {
            return &l->objects[mid];
        }
        if (c < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return NULL;
}

bool sink_get(struct sink *s, const char *name, struct buf *ret, struct err *err)
{
    if (s->s3 != NULL) {
        struct s3_uri u = sink_uri_of(s, name);
        return s3_blocking_get(s->s3, &u, ret->max - ret->n, ret, err);
    }
    AUTO_FD int fd = openat(s->dir_fd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return err_set_os(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, errno, "cannot open '%s'",
                          name);
    }
    char chunk[65536];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0) {
            return err_set_os(err, ERR_IO, errno, "cannot read '%s'", name);
        }
        if (n == 0) {
            break;
        }
        buf_add(ret, chunk, (size_t)n);
    }
    return ret->overflow ? err_set(err, ERR_TOO_LARGE, "'%s' is too large", name) : true;
}

bool sink_size(struct sink *s, const char *name, int64_t *ret, struct err *err)
{
    struct err why = ERR_INIT;
    struct s3_head head;
    struct stat st;
    bool ok;
    if (s->s3 != NULL) {
        struct s3_uri u = sink_uri_of(s, name);
        ok = s3_blocking_head(s->s3, &u, &head, &why);
        *ret = ok ? head.size : -1;
    } else {
        ok = fstatat(s->dir_fd, name, &st, 0) == 0 ||
             err_set_os(&why, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, errno,
                        "cannot look at '%s'", name);
        *ret = ok ? (int64_t)st.st_size : -1;
    }
    if (!ok && why.code != ERR_NOT_FOUND) {
        *err = why;
        return false;
    }
    return true;
}

bool sink_delete(struct sink *s, const char *name, struct err *err)
{
    if (s->s3 != NULL) {
        struct s3_uri u = sink_uri_of(s, name);
        return s3_blocking_delete(s->s3, &u, err);
    }
    if (unlinkat(s->dir_fd, name, 0) != 0 && errno != ENOENT) {
        return err_set_os(err, ERR_IO, errno, "cannot remove '%s'", name);
    }
    return true;
}

bool sink_write_all(int fd, struct str data, const char *name, struct err *err)
{
    while (data.n > 0) {
        ssize_t n = write(fd, data.p, data.n);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return err_set_os(err, ERR_IO, errno, "cannot write '%s'", name);
        }
        data.p += n;
        data.n -= (size_t)n;
    }
    return true;
}

void sink_abort_uploads(struct sink *s, bool (*ours)(void *ctx, const char *name), void *ctx)
{
    struct err err = ERR_INIT;
    int64_t n = 0;
    if (s->s3 == NULL) {
        return;
    }
    if (!s3_blocking_uploads_abort(s->s3, &s->base, ours, ctx, &n, &err)) {
        log_event(LOG_WARN, "stray_uploads_not_aborted", LF_ERR(&err));
    } else if (n > 0) {
        log_event(LOG_INFO, "stray_uploads_aborted", LF_I("uploads", n));
    }
}

int sink_create_tmp(struct sink *s, const char *name, bool folder, char *tmp, size_t tmp_n)
{
    uint64_t own; /* thread ids of two containers on one file system may be equal */
    rng_secret(&own, sizeof own);
    for (int tries = 0; tries < TMP_TRIES; tries++) {
        struct stat st;
        (void)snprintf(tmp, tmp_n, SINK_TMP_PREFIX "%016" PRIx64 "-%u-%s", own, s->serial++, name);
        if (folder && mkdirat(s->dir_fd, tmp, 0777) != 0) {
            return -1;
        }
        int flags = folder ? O_RDONLY | O_DIRECTORY : O_WRONLY | O_CREAT | O_EXCL;
        int fd = openat(s->dir_fd, tmp, flags | O_CLOEXEC, 0666);
        if (fd < 0 && folder && errno == ENOENT) {
            continue;
        }
        if (fd < 0) {
            return -1;
        }
        (void)flock(fd, LOCK_EX | LOCK_NB);
        if (fstat(fd, &st) == 0 && st.st_nlink > 0) {
            return fd;
        }
        (void)close(fd);
    }
    errno = EAGAIN;
    return -1;
}

bool sink_stream_begin(struct sink *s, const char *name, const char *content_type,
                       struct sink_stream **ret, struct err *err)
{
    struct sink_stream *t = xcalloc(1, sizeof *t);
    t->sink = s;
    t->fd = -1;
    ASSERT(strlen(name) <= SINK_NAME_BYTES_MAX);
    (void)snprintf(t->name, sizeof t->name, "%s", name);
    if (s->s3 != NULL) {
        struct s3_uri u = sink_uri_of(s, name);
        if (!s3_multipart_begin(s->s3, &u, content_type, SINK_PART_BYTES, &t->multipart, err)) {
            free(t);
            return false;
        }
    } else {
        t->fd = sink_create_tmp(s, name, false, t->tmp, sizeof t->tmp);
        if (t->fd < 0) {
            (void)err_set_os(err, ERR_IO, errno, "cannot create '%s'", name);
            free(t);
            return false;
        }
    }
    *ret = t;
    return true;
}

/* Report it as not the input's fault; see sink_abort_uploads. */
static bool multipart_failed(struct err *err)
{
    if (strcmp(err->aws_code, "NoSuchUpload") == 0) {
        err->code = ERR_CONFLICT;
        (void)err_wrap(err, "another writer ended first and aborted our upload");
    }
    return false;
}

int64_t sink_stream_size(const struct sink_stream *t)
{
    return t->multipart != NULL ? s3_multipart_size(t->multipart) : lseek(t->fd, 0, SEEK_END);
}

bool sink_stream_add(struct sink_stream *t, struct str data, struct err *err)
{
    if (t->multipart != NULL) {
        return s3_multipart_add(t->multipart, data.p, data.n, err) || multipart_failed(err);
    }
    return sink_write_all(t->fd, data, t->name, err);
}

static bool publish(struct sink_stream *t, bool create_only, struct err *err)
{
    int dir = t->sink->dir_fd;
    if (fsync(t->fd) != 0) {
        return err_set_os(err, ERR_IO, errno, "cannot write '%s'", t->name);
    }
    if (create_only ? linkat(dir, t->tmp, dir, t->name, 0) != 0
                    : renameat(dir, t->tmp, dir, t->name) != 0) {
        return err_set_os(err, errno == EEXIST ? ERR_PRECONDITION : ERR_IO, errno,
                          "cannot create '%s'", t->name);
    }
    if (fsync(dir) != 0) {
        return err_set_os(err, ERR_IO, errno, "cannot write the output folder");
    }
    return true;
}

bool sink_stream_finish(struct sink_stream *t, bool create_only, struct err *err)
{
    bool ok;
    if (t->multipart != NULL) {
        int64_t size;
        ok = s3_multipart_finish(TAKE(t->multipart), create_only, &size, err) ||
             multipart_failed(err);
    } else {
        ok = publish(t, create_only, err);
    }
    sink_stream_abort(t);
    return ok;
}

void sink_stream_abort(struct sink_stream *t)
{
    if (t == NULL) {
        return;
    }
    if (t->multipart != NULL) {
        s3_multipart_abort(t->multipart);
    }
    if (t->fd >= 0) {
        (void)close(t->fd);
        (void)unlinkat(t->sink->dir_fd, t->tmp, 0);
    }
    free(t);
}

bool sink_put(struct sink *s, const char *name, struct str body, const char *content_type,
              bool create_only, struct err *err)
{
    if (s->s3 != NULL) {
        struct s3_uri u = sink_uri_of(s, name);
        return s3_blocking_put(s->s3, &u, body, content_type, create_only, err);
    }
    struct sink_stream *t;
    if (!sink_stream_begin(s, name, content_type, &t, err)) {
        return false;
    }
    if (!sink_stream_add(t, body, err)) {
        sink_stream_abort(t);
        return false;
    }
    return sink_stream_finish(t, create_only, err);
}

bool sink_stream_save(struct sink_stream *t, struct json_out *w, struct buf *tail, struct err *err)
{
    if (t->multipart != NULL) {
        s3_multipart_save(t->multipart, w, tail);
        return true;
    }
    struct stat st;
    if (fdatasync(t->fd) != 0 || fstat(t->fd, &st) != 0) {
        return err_set_os(err, ERR_IO, errno, "cannot write '%s'", t->name);
    }
    json_out_str(w, "file", t->tmp);
    json_out_i64(w, "size", st.st_size);
    return true;
}

void sink_stream_leave(struct sink_stream *t)
{
    if (t == NULL) {
        return;
    }
    if (t->multipart != NULL) {
        s3_multipart_leave(t->multipart);
    }
    if (t->fd >= 0) {
        (void)close(t->fd);
    }
    free(t);
}

const char *sink_stream_kept(const json_t *o)
{
    const char *file = json_string_value(json_object_get(o, "file"));
    return file != NULL ? file : "";
}

/* Restore the file as it was when saved. The process that saved it holds a lock on it while it is
 * alive. */
static bool restore_file(struct sink_stream *t, int64_t size, struct err *err)
{
    struct stat st;
    t->fd = openat(t->sink->dir_fd, t->tmp, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (t->fd < 0) {
        return err_set_os(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, errno, "cannot open '%s'",
                          t->tmp);
    }
    if (flock(t->fd, LOCK_EX | LOCK_NB) != 0) {
        return err_set_os(err, ERR_CONFLICT, errno, "'%s' is being written", t->tmp);
    }
    if (fstat(t->fd, &st) != 0 || st.st_size < size) {
        return err_set(err, ERR_NOT_FOUND, "'%s' is shorter than it was", t->tmp);
    }
    if (ftruncate(t->fd, size) != 0 || lseek(t->fd, 0, SEEK_END) != size) {
        return err_set_os(err, ERR_IO, errno, "cannot write '%s'", t->tmp);
    }
    return true;
}

bool sink_stream_restore(struct sink *s, const char *name, const char *content_type,
                         const json_t *o, struct str *tail, struct sink_stream **ret,
                         struct err *err)
{
    const char *file = sink_stream_kept(o);
    struct str f = str_of(file);
    int64_t size = 0;
    struct sink_stream *t = xcalloc(1, sizeof *t);
    t->sink = s;
    t->fd = -1;
    (void)snprintf(t->name, sizeof t->name, "%s", name);
    bool ok;
    if (s->s3 != NULL) {
        struct s3_uri u = sink_uri_of(s, name);
        ok = s3_multipart_restore(s->s3, &u, content_type, SINK_PART_BYTES, o, tail, &t->multipart,
                                  err);
    } else if (!str_starts(f, SINK_TMP_PREFIX) || f.n >= sizeof t->tmp ||
               strchr(file, '/') != NULL) {
        ok = err_set(err, ERR_MALFORMED, "no file of ours: '%.100s'", file);
    } else {
        (void)snprintf(t->tmp, sizeof t->tmp, "%s", file);
        ok = json_get_i64(o, "size", 0, INT64_MAX, JSON_ABSENT, &size, err) &&
             restore_file(t, size, err);
    }
    if (!ok) {
        sink_stream_leave(t);
        return false;
    }
    *ret = t;
    return true;
}
