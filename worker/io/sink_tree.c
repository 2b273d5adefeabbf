/* Folders of small files, in a folder and in S3. */
#include "sink_tree.h"
#include "common/cleanup.h"
#include "sink_internal.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define TREE_FILES_MAX      (4u << 20)
#define TREE_TEXT_BYTES_MAX (256u << 20)

struct tree_file {
    size_t name; /* in the text of all names */
    int64_t size;
};
struct sink_tree {
    struct sink *sink;
    char name[SINK_NAME_BYTES_MAX + 1];
    struct sink_tree_size size;
    /* In a folder. */
    int fd;
    char tmp[SINK_NAME_BYTES_MAX + 64];
    /* In S3: what was sent, to tell it from what was there before. */
    struct sink_uploads *uploads;
    struct sink_uploads_group group;
    struct tree_file *sent;
    size_t sent_n, sent_cap;
    struct buf names;
};

static void tree_free(struct sink_tree *t)
{
    if (t->fd >= 0) {
        (void)close(t->fd);
    }
    free(t->sent);
    buf_done(&t->names);
    free(t);
}

bool sink_tree_begin(struct sink *s, const char *name, struct sink_tree **ret, struct err *err)
{
    struct sink_tree *t = xcalloc(1, sizeof *t);
    t->sink = s;
    t->fd = -1;
    buf_init(&t->names, TREE_TEXT_BYTES_MAX);
    ASSERT(strlen(name) <= SINK_NAME_BYTES_MAX);
    (void)snprintf(t->name, sizeof t->name, "%s", name);
    bool ok;
    if (s->s3 != NULL) {
        ok = sink_uploads_of(s, &t->uploads, err);
    } else {
        t->fd = sink_create_tmp(s, name, true, t->tmp, sizeof t->tmp);
        ok = t->fd >= 0 || err_set_os(err, ERR_IO, errno, "cannot create folder '%s'", name);
    }
    if (!ok) {
        tree_free(t);
        return false;
    }
    *ret = t;
    return true;
}

static bool put_file(struct sink_tree *t, const char *file, struct str data, struct err *err)
{
    int fd = openat(t->fd, file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        return err_set_os(err, ERR_IO, errno, "cannot create '%s/%s'", t->name, file);
    }
    bool ok = sink_write_all(fd, data, file, err);
    if (close(fd) != 0 && ok) {
        ok = err_set_os(err, ERR_IO, errno, "cannot write '%s/%s'", t->name, file);
    }
    return ok;
}

static bool send_file(struct sink_tree *t, const char *file, struct str data,
                      const char *content_type, struct err *err)
{
    char key[SINK_NAME_BYTES_MAX + 1];
    int n = snprintf(key, sizeof key, "%s/%s", t->name, file);
    ASSERT(n > 0 && (size_t)n < sizeof key);
    if (sink_uploads_failed(t->uploads, &t->group)) {
        return sink_uploads_wait(t->uploads, &t->group, err);
    }
    ARRAY_ROOM(t->sent, t->sent_n, t->sent_cap);
    t->sent[t->sent_n++] = (struct tree_file){t->names.n, (int64_t)data.n};
    buf_add(&t->names, file, strlen(file) + 1);
    if (t->names.overflow) {
        return err_set(err, ERR_LIMIT, "folder '%s' has too many files", t->name);
    }
    sink_uploads_put(t->uploads, &t->group, key, data, content_type);
    return true;
}

bool sink_tree_put(struct sink_tree *t, const char *file, struct str data, const char *content_type,
                   struct err *err)
{
    t->size.files++;
    t->size.bytes += (int64_t)data.n;
    return t->uploads != NULL ? send_file(t, file, data, content_type, err)
                              : put_file(t, file, data, err);
}

/* One flush of the file system instead of one for each file. */
static bool publish(struct sink_tree *t, struct err *err)
{
    int dir = t->sink->dir_fd;
    if (syncfs(t->fd) != 0) {
        return err_set_os(err, ERR_IO, errno, "cannot write folder '%s'", t->name);
    }
    if (renameat(dir, t->tmp, dir, t->name) != 0) { /* an empty folder may be replaced */
        bool there = errno == EEXIST || errno == ENOTEMPTY;
        return err_set_os(err, there ? ERR_PRECONDITION : ERR_IO, errno,
                          "cannot create folder '%s'", t->name);
    }
    if (fsync(dir) != 0) {
        return err_set_os(err, ERR_IO, errno, "cannot write the output folder");
    }
    return true;
}

static int file_cmp(const void *a, const void *b, void *names)
{
    const struct tree_file *x = a;
    const struct tree_file *y = b;
    const char *text = names;
    return strcmp(text + x->name, text + y->name);
}

static const struct tree_file *find_sent(const struct sink_tree *t, const char *name)
{
    size_t lo = 0;
    size_t hi = t->sent_n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strcmp(t->names.p + t->sent[mid].name, name);
        if (c == 0) {
            return &t->sent[mid];
        }
        if (c < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return NULL;
}

static bool check_ours(const char *name, const char *file, struct err *err)
{
    return (file[0] >= '0' && file[0] <= '9') || file[0] == '\0' || /* S3's mark of a folder */
           err_set(err, ERR_INVALID, "folder '%s' has '%.100s' in it: it is no folder of a shard",
                   name, file);
}

/* Every object whose name begins so. */
static bool list_from(struct sink *s, const char *name, struct s3_listing *ret, struct err *err)
{
    struct s3_uri from = sink_uri_of(s, name);
    return s3_blocking_list(s->s3, &from, TREE_FILES_MAX, ret, err);
}

/* False when something of another writer or another kind is there. */
static bool check_names(const struct sink_tree *t, const struct s3_listing *l, struct err *err)
{
    size_t skip = strlen(t->sink->base.key);
    size_t name_n = strlen(t->name);
    for (size_t i = 0; i < l->n; i++) {
        const char *name = l->objects[i].key + skip;
        char next = name[name_n];
        if (next == '.' || next == '_') {
            return err_set(err, ERR_CONFLICT,
                           "'%s' exists: another writer is at work in the same output folder",
                           name);
        }
        if (next == '/' && !check_ours(t->name, name + name_n + 1, err)) {
            return false;
        }
    }
    return true;
}

/* Compare what is there with what was sent: remove what another, ended writer has left. */
static bool settle(struct sink_tree *t, const struct s3_listing *l, struct err *err)
{
    size_t skip = strlen(t->sink->base.key);
    size_t name_n = strlen(t->name);
    size_t found = 0;
    for (size_t i = 0; i < l->n; i++) {
        const char *name = l->objects[i].key + skip;
        if (name[name_n] != '/') {
            continue; /* of a longer number */
        }
        const struct tree_file *f = find_sent(t, name + name_n + 1);
        if (f == NULL) {
            sink_uploads_delete(t->uploads, &t->group, name);
        } else if (f->size != l->objects[i].size) {
            return err_set(err, ERR_CONFLICT,
                           "'%s' has %lld bytes, %lld were written: another writer is at work in "
                           "the same output folder",
                           name, (long long)l->objects[i].size, (long long)f->size);
        } else {
            found++;
        }
    }
    return found == t->sent_n ||
           err_set(err, ERR_CONFLICT,
                   "folder '%s' has %zu of the %zu files written: another writer is at work in the "
                   "same output folder",
                   t->name, found, t->sent_n);
}

static bool finish_s3(struct sink_tree *t, struct err *err)
{
    struct s3_listing l = {0};
    struct err late = ERR_INIT;
    if (!sink_uploads_wait(t->uploads, &t->group, err) || !list_from(t->sink, t->name, &l, err)) {
        return false;
    }
    if (t->sent_n > 0) {
        qsort_r(t->sent, t->sent_n, sizeof *t->sent, file_cmp, t->names.p);
    }
    bool ok = check_names(t, &l, err) && settle(t, &l, err);
    s3_listing_done(&l);
    bool removed = sink_uploads_wait(t->uploads, &t->group, ok ? err : &late);
    return ok && removed;
}

bool sink_tree_finish(struct sink_tree *t, struct sink_tree_size *ret, struct err *err)
{
    bool ok = t->uploads != NULL ? finish_s3(t, err) : publish(t, err);
    *ret = t->size;
    if (ok) {
        tree_free(t);
    } else {
        sink_tree_abort(t);
    }
    return ok;
}

void sink_tree_abort(struct sink_tree *t)
{
    struct err err = ERR_INIT;
    if (t == NULL) {
        return;
    }
    if (t->uploads != NULL) {
        sink_uploads_drop(t->uploads, &t->group);
    } else if (!sink_remove_folder(t->sink, t->tmp, &err)) {
        err_clear(&err); /* the next run's sweep removes it */
    }
    tree_free(t);
}

/* Open an output's folder; *ret NULL: there is none. */
static bool open_folder(struct sink *s, const char *name, DIR **ret, struct err *err)
{
    int fd = openat(s->dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    *ret = fd >= 0 ? fdopendir(fd) : NULL;
    return *ret != NULL || errno == ENOENT ||
           err_set_os(err, ERR_IO, errno, "cannot list folder '%s'", name);
}

bool sink_remove_folder(struct sink *s, const char *name, struct err *err)
{
    DIR *d;
    if (!open_folder(s, name, &d, err)) {
        return false;
    }
    for (struct dirent *e = d != NULL ? readdir(d) : NULL; e != NULL; e = readdir(d)) {
        bool dots = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
        if (!dots && unlinkat(dirfd(d), e->d_name, 0) != 0 && errno != ENOENT) {
            (void)err_set_os(err, ERR_IO, errno, "cannot remove '%s/%.100s'", name, e->d_name);
            (void)closedir(d);
            return false;
        }
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    return unlinkat(s->dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT ||
           err_set_os(err, ERR_IO, errno, "cannot remove folder '%s'", name);
}

static bool folder_size(struct sink *s, const char *name, struct sink_tree_size *ret,
                        struct err *err)
{
    DIR *d;
    if (!open_folder(s, name, &d, err)) {
        return false;
    }
    for (struct dirent *e = d != NULL ? readdir(d) : NULL; e != NULL; e = readdir(d)) {
        struct stat st;
        if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode)) {
            ret->files++;
            ret->bytes += st.st_size;
        }
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    return true;
}

bool sink_tree_size(struct sink *s, const char *name, struct sink_tree_size *ret, struct err *err)
{
    *ret = (struct sink_tree_size){0};
    if (s->s3 == NULL) {
        return folder_size(s, name, ret, err);
    }
    char below[SINK_NAME_BYTES_MAX + 2];
    struct s3_listing l = {0};
    (void)snprintf(below, sizeof below, "%s/", name);
    if (!list_from(s, below, &l, err)) {
        return false;
    }
    for (size_t i = 0; i < l.n; i++) {
        ret->files++;
        ret->bytes += l.objects[i].size;
    }
    s3_listing_done(&l);
    return true;
}

static bool check_folder(struct sink *s, const char *name, struct err *err)
{
    DIR *d;
    if (!open_folder(s, name, &d, err)) {
        return false;
    }
    bool ok = true;
    for (struct dirent *e = d != NULL ? readdir(d) : NULL; ok && e != NULL; e = readdir(d)) {
        bool dots = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
        ok = dots || check_ours(name, e->d_name, err);
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    return ok;
}

/* Have the objects of a folder removed; *ret_n: how many. */
static bool delete_below(struct sink *s, const char *name, struct sink_uploads_group *g,
                         int64_t *ret_n, struct err *err)
{
    char below[SINK_NAME_BYTES_MAX + 2];
    struct s3_listing l = {0};
    struct sink_uploads *u;
    (void)snprintf(below, sizeof below, "%s/", name);
    if (!sink_uploads_of(s, &u, err) || !list_from(s, below, &l, err)) {
        return false;
    }
    size_t skip = strlen(s->base.key);
    bool ok = true;
    for (size_t i = 0; ok && i < l.n; i++) {
        ok = check_ours(name, l.objects[i].key + skip + strlen(below), err);
    }
    for (size_t i = 0; ok && i < l.n; i++) {
        sink_uploads_delete(u, g, l.objects[i].key + skip);
    }
    *ret_n = (int64_t)l.n;
    s3_listing_done(&l);
    return ok;
}

bool sink_tree_delete_many(struct sink *s, const char *const *names, size_t n, _Atomic int64_t *all,
                           _Atomic int64_t *done, struct err *err)
{
    struct sink_uploads_group g = {.err = ERR_INIT, .done = done};
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        char name[SINK_NAME_BYTES_MAX + 1];
        int64_t objects = 0;
        ASSERT(str_ends(str_of(names[i]), "/") && strlen(names[i]) < sizeof name);
        (void)snprintf(name, sizeof name, "%.*s", (int)strlen(names[i]) - 1, names[i]);
        if (s->s3 == NULL) {
            ok = sink_tree_delete(s, name, err);
            *done += ok ? 1 : 0;
        } else {
            ok = delete_below(s, name, &g, &objects, err) &&
                 (!sink_uploads_failed(s->uploads, &g) || sink_uploads_wait(s->uploads, &g, err));
            *all += objects - 1;
        }
    }
    if (s->uploads != NULL && !ok) {
        sink_uploads_drop(s->uploads, &g);
    }
    return ok && (s->uploads == NULL || sink_uploads_wait(s->uploads, &g, err));
}

bool sink_tree_delete(struct sink *s, const char *name, struct err *err)
{
    struct sink_uploads_group g = {.err = ERR_INIT};
    int64_t n;
    if (s->s3 == NULL) {
        return check_folder(s, name, err) && sink_remove_folder(s, name, err);
    }
    return delete_below(s, name, &g, &n, err) && sink_uploads_wait(s->uploads, &g, err);
}
