/* Finding shards. */
#include "shards.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "io/sink.h"
#include "job/manifest.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

void shards_done(struct shards *s)
{
    free(s->at);
    free(s->folder);
    buf_done(&s->text_);
    *s = (struct shards){0};
}

static bool is_shard(const char *name)
{
    return name[0] != '.' && str_ends(str_of(name), ".tar");
}

static uint32_t add_text(struct shards *s, const char *text)
{
    size_t at = s->text_.n;
    buf_add(&s->text_, text, strlen(text) + 1);
    return (uint32_t)at;
}

static bool add(struct shards *s, const char *path, const char *etag, int64_t size,
                int64_t mtime_ns, struct err *err)
{
    if (s->n == SHARDS_MAX) {
        return err_set(err, ERR_LIMIT,
                       "more than %d shards: make an index of each part, or larger shards "
                       "(number_sample_per_shard)",
                       SHARDS_MAX);
    }
    ARRAY_ROOM(s->at, s->n, s->cap_);
    s->at[s->n++] = (struct shard_entry){add_text(s, path), add_text(s, etag), size, mtime_ns};
    return s->text_.overflow
               ? err_set(err, ERR_LIMIT, "the shards' names take more than %zu bytes", s->text_.max)
               : true;
}

static int entry_cmp(const void *a, const void *b, void *text)
{
    const struct shard_entry *x = a;
    const struct shard_entry *y = b;
    const char *t = text;
    return strcmp(t + x->path, t + y->path);
}

/* A file's size and time stand for its content, as an ETag does. */
static bool add_file(struct shards *s, const char *path, const struct stat *st, struct err *err)
{
    int64_t ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
    return add(s, path, "", st->st_size, ns, err);
}

struct above { /* the enclosing folders: a link back to one of them would be an endless loop */
    dev_t dev[SHARDS_DEPTH_MAX];
    ino_t ino[SHARDS_DEPTH_MAX];
    int n;
};

static bool walk_folder(struct shards *s, int fd, const char *below, struct above *above,
                        struct err *err);

static bool enter(struct shards *s, int dir_fd, const char *name, const char *path,
                  struct above *above, struct err *err)
{
    struct stat st;
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        (void)err_set_os(err, ERR_IO, errno, "cannot open folder '%s%s'", s->folder, path);
        if (fd >= 0) {
            (void)close(fd);
        }
        return false;
    }
    bool again = above->n == SHARDS_DEPTH_MAX;
    for (int i = 0; i < above->n; i++) {
        again = again || (above->dev[i] == st.st_dev && above->ino[i] == st.st_ino);
    }
    if (again) {
        (void)close(fd);
        return err_set(err, ERR_INVALID, "folder '%s%s' leads back into itself or is too deep",
                       s->folder, path);
    }
    above->dev[above->n] = st.st_dev;
    above->ino[above->n++] = st.st_ino;
    bool ok = walk_folder(s, fd, path, above, err);
    above->n--;
    return ok;
}

/* Visit one entry. Where the file system supplies d_type only shards need a stat. */
static bool visit(struct shards *s, int dir_fd, const struct dirent *e, const char *below,
                  struct above *above, struct err *err)
{
    bool folder = e->d_type == DT_DIR;
    bool file = e->d_type == DT_REG;
    bool shard = is_shard(e->d_name);
    struct stat st;
    if (e->d_name[0] == '.') {
        return true;
    }
    if (e->d_type == DT_UNKNOWN || e->d_type == DT_LNK || (file && shard)) {
        if (fstatat(dir_fd, e->d_name, &st, 0) != 0) {
            return err_set_os(err, ERR_IO, errno, "cannot look at '%s%s%s'", s->folder, below,
                              e->d_name);
        }
        folder = S_ISDIR(st.st_mode);
        file = S_ISREG(st.st_mode);
    }
    if (!folder && !(file && shard)) {
        return true;
    }
    AUTO_FREE char *path = xasprintf("%s%s%s", below, e->d_name, folder ? "/" : "");
    return folder ? enter(s, dir_fd, e->d_name, path, above, err) : add_file(s, path, &st, err);
}

/* Takes fd. below: the path from the input to here, with '/' at its end unless empty. */
static bool walk_folder(struct shards *s, int fd, const char *below, struct above *above,
                        struct err *err)
{
    DIR *d = fdopendir(fd);
    bool ok = true;
    if (d == NULL) {
        (void)close(fd);
        return err_set_os(err, ERR_IO, errno, "cannot list folder '%s%s'", s->folder, below);
    }
    for (;;) {
        errno = 0;
        struct dirent *e = readdir(d);
        if (e == NULL) {
            ok = errno == 0 ||
                 err_set_os(err, ERR_IO, errno, "cannot list folder '%s%s'", s->folder, below);
            break;
        }
        ok = visit(s, dirfd(d), e, below, above, err);
        if (!ok) {
            break;
        }
    }
    (void)closedir(d);
    return ok;
}

static bool list_folder(struct shards *s, const char *input, struct err *err)
{
    struct stat st;
    struct above above = {.n = 0};
    if (stat(input, &st) != 0) {
        return err_set_os(err, errno == ENOENT ? ERR_INVALID : ERR_IO, errno, "cannot open '%s'",
                          input);
    }
    if (!S_ISDIR(st.st_mode)) {
        const char *slash = strrchr(input, '/');
        s->folder = slash == NULL ? xstrdup("") : xstrndup(input, (size_t)(slash - input) + 1);
        return add_file(s, slash == NULL ? input : slash + 1, &st, err);
    }
    size_t n = strlen(input);
    s->folder = xasprintf("%s%s", input, n > 0 && input[n - 1] == '/' ? "" : "/");
    return enter(s, AT_FDCWD, input, "", &above, err);
}

struct below { /* what is listed */
    struct shards *to;
    size_t skip;      /* bytes of a key before its path */
    const char *only; /* the path of the one that is meant; NULL: all */
};

static bool take_object(void *ctx, const struct s3_object *o, struct err *err)
{
    const struct below *b = ctx;
    const char *path = o->key + b->skip;
    const char *slash = strrchr(path, '/');
    bool hidden = path[0] == '.' || strstr(path, "/.") != NULL;
    bool wanted = b->only == NULL || strcmp(path, b->only) == 0;
    return hidden || !wanted || !is_shard(slash != NULL ? slash + 1 : path) ||
           add(b->to, path, o->etag, o->size, 0, err);
}

static bool list_s3(struct shards *s, const char *input, struct err *err)
{
    struct s3_blocking *s3;
    if (!s3_parse_uri(str_of(input), &s->base, err)) {
        return false;
    }
    char *key = s->base.key;
    size_t n = strlen(key);
    bool one = str_ends(str_of(key), ".tar");
    if (n > 0 && key[n - 1] != '/' && !one && n + 1 < sizeof s->base.key) {
        key[n] = '/';
        key[n + 1] = '\0';
    }
    if (!s3_blocking_new(S3_TRIES, &s3, err)) {
        return false;
    }
    s3_blocking_be_patient(s3, SINK_S3_PATIENCE_US);
    struct s3_uri listed = s->base;
    struct below b = {.to = s, .skip = strlen(key)};
    if (one) { /* the path below the input is its file name */
        const char *slash = strrchr(key, '/');
        b.skip = slash != NULL ? (size_t)(slash + 1 - key) : 0;
        b.only = listed.key + b.skip;
        key[b.skip] = '\0';
    }
    bool ok = s3_blocking_list_each(s3, &listed, take_object, &b, err);
    s3_blocking_free(s3);
    return ok;
}

/* The output of a part without rows. */
static bool is_finished_and_empty(const char *input)
{
    AUTO_JSON json_t *manifest = NULL;
    struct sink *sink = NULL;
    struct err err = ERR_INIT;
    const json_t *successes = NULL;
    if (sink_open(input, &sink, &err) && manifest_load(sink, &manifest, &err)) {
        successes = json_object_get(manifest, "successes");
    }
    sink_free(sink);
    return json_is_integer(successes) && json_integer_value(successes) == 0;
}

bool shards_list(const char *input, struct shards *ret, struct err *err)
{
    struct shards s = {.text_ = BUF_INIT(SHARDS_TEXT_BYTES_MAX)};
    bool ok =
        str_starts(str_of(input), "s3://") ? list_s3(&s, input, err) : list_folder(&s, input, err);
    if (ok && s.n == 0 && !is_finished_and_empty(input)) {
        ok = err_set(err, ERR_INVALID,
                     "there is no .tar below '%s': index reads shards of output_format webdataset",
                     input);
    }
    if (!ok) {
        shards_done(&s);
        return false;
    }
    if (s.n > 0) {
        qsort_r(s.at, s.n, sizeof *s.at, entry_cmp, s.text_.p);
    }
    *ret = s;
    return true;
}

void shards_forget_times(struct shards *s)
{
    for (size_t i = 0; i < s->n; i++) {
        s->at[i].mtime_ns = 0;
    }
}

const char *shards_path(const struct shards *s, size_t i)
{
    ASSERT(i < s->n);
    return s->text_.p + s->at[i].path;
}

bool shards_open(const struct shards *s, size_t i, struct source *src, struct err *err)
{
    const char *path = shards_path(s, i);
    if (s->folder != NULL) {
        AUTO_FREE char *full = xasprintf("%s%s", s->folder, path);
        return source_open_file(src, full, err);
    }
    struct s3_uri u = s->base;
    size_t n = strlen(u.key);
    if (n + strlen(path) >= sizeof u.key) {
        return err_set(err, ERR_INVALID, "'%s': the key is too long", path);
    }
    memcpy(u.key + n, path, strlen(path) + 1);
    source_open_s3(src, &u, s->at[i].size, s->text_.p + s->at[i].etag);
    return true;
}
