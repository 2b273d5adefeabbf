/* See source_pack.h. */
#include "source_pack.h"
#include "common/cleanup.h"
#include "common/tar.h"
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <zlib.h>

#define MTIME_S    INT64_C(315532800) /* 1980: zip, and with it wheels, know no earlier time */
#define GZIP_BITS  (15 + 16)
#define MEM_LEVEL  8
#define CHUNK      65536
#define IGNORE_MAX 65536

struct found {
    char *name; /* below the folder */
    unsigned mode;
};
struct source_walk {
    const char *folder;
    struct buf patterns; /* of the ignore file, NUL after each */
    struct found *files;
    size_t n, cap, bytes;
    struct stat above[SOURCE_DEPTH_MAX]; /* the folders on the way down */
    int depth;
};

static void walk_done(struct source_walk *w)
{
    for (size_t i = 0; i < w->n; i++) {
        free(w->files[i].name);
    }
    free(w->files);
    buf_done(&w->patterns);
}

void source_pack_done(struct source_pack *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->names[i]);
    }
    free(p->names);
    free(p->folder);
    buf_done(&p->gz);
    *p = (struct source_pack){0};
}

static bool add_pattern(struct source_walk *w, struct str line, int line_n, struct err *err)
{
    line = str_trim(line);
    if (line.n == 0 || line.p[0] == '#') {
        return true;
    }
    if (line.p[0] == '!') {
        return err_set(err, ERR_INVALID, "%s/%s:%d: '!' is not known here", w->folder,
                       SOURCE_IGNORE_FILE, line_n);
    }
    buf_add_str(&w->patterns, line);
    buf_add_char(&w->patterns, '\0');
    return (line_n <= SOURCE_PATTERNS_MAX && !w->patterns.overflow) ||
           err_set(err, ERR_TOO_LARGE, "%s/%s has more than %d lines", w->folder,
                   SOURCE_IGNORE_FILE, SOURCE_PATTERNS_MAX);
}

static bool read_patterns(struct source_walk *w, struct err *err)
{
    AUTO_FREE char *path = xasprintf("%s/%s", w->folder, SOURCE_IGNORE_FILE);
    AUTO_FILE FILE *f = fopen(path, "re");
    AUTO_BUF struct buf text = BUF_INIT(IGNORE_MAX);
    if (f == NULL) {
        return errno == ENOENT || err_set_os(err, ERR_IO, errno, "cannot read '%s'", path);
    }
    if (!buf_add_file(&text, f) || memchr(buf_cstr(&text), '\0', text.n) != NULL) {
        return err_set(err, ERR_INVALID, "'%s' is no text of at most %d bytes", path, IGNORE_MAX);
    }
    struct str rest = buf_str(&text);
    bool ok = true;
    for (int i = 1; ok && rest.n > 0; i++) {
        ok = add_pattern(w, str_split(&rest, '\n'), i, err);
    }
    return ok;
}

static bool pattern_matches(const char *pattern, const char *name, bool is_folder)
{
    AUTO_FREE char *p = xstrdup(pattern[0] == '/' ? pattern + 1 : pattern);
    bool of_path = pattern[0] == '/';
    size_t n = strlen(p);
    if (n > 1 && p[n - 1] == '/') {
        if (!is_folder) {
            return false;
        }
        p[n - 1] = '\0';
    }
    of_path |= strchr(p, '/') != NULL;
    const char *last = strrchr(name, '/');
    return fnmatch(p, of_path || last == NULL ? name : last + 1, FNM_PATHNAME) == 0;
}

/* name: below the folder. */
static bool is_left_out(const struct source_walk *w, const char *name, bool is_folder)
{
    static const char *const always[] = {
        ".git", ".hg", ".svn", "__pycache__/", "*.pyc", ".ipynb_checkpoints/", ".DS_Store"};
    if (strcmp(name, SOURCE_IGNORE_FILE) == 0) {
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(always); i++) {
        if (pattern_matches(always[i], name, is_folder)) {
            return true;
        }
    }
    for (size_t at = 0; at < w->patterns.n; at += strlen(w->patterns.p + at) + 1) {
        if (pattern_matches(w->patterns.p + at, name, is_folder)) {
            return true;
        }
    }
    return false;
}

static bool add_file(struct source_walk *w, const char *name, const struct stat *st,
                     struct err *err)
{
    w->bytes += (size_t)st->st_size;
    if (w->n == SOURCE_FILES_MAX || w->bytes > SOURCE_BYTES_MAX) {
        return err_set(
            err, ERR_TOO_LARGE,
            "'%s' has more than %d files or %zu MB; leave data out by " SOURCE_IGNORE_FILE,
            w->folder, SOURCE_FILES_MAX, SOURCE_BYTES_MAX >> 20);
    }
    ARRAY_ROOM(w->files, w->n, w->cap);
    w->files[w->n++] = (struct found){xstrdup(name), (st->st_mode & S_IXUSR) != 0 ? 0755 : 0644};
    return true;
}

static bool enter(struct source_walk *w, const char *name, const struct stat *st, struct err *err)
{
    for (int i = 0; i < w->depth; i++) {
        if (w->above[i].st_dev == st->st_dev && w->above[i].st_ino == st->st_ino) {
            return err_set(err, ERR_INVALID, "'%s/%s' is a link to a folder above itself",
                           w->folder, name);
        }
    }
    if (w->depth == SOURCE_DEPTH_MAX) {
        return err_set(err, ERR_TOO_LARGE, "'%s/%s' is deeper than %d folders", w->folder, name,
                       SOURCE_DEPTH_MAX);
    }
    w->above[w->depth++] = *st;
    return true;
}

static bool walk_folder(struct source_walk *w, const char *below, struct err *err);

static bool take_entry(struct source_walk *w, const char *name, struct err *err)
{
    struct stat st;
    AUTO_FREE char *path = xasprintf("%s/%s", w->folder, name);
    if (!str_is_utf8(str_of(name))) {
        return err_set(err, ERR_INVALID, "the name of a file in '%s' is not UTF-8", w->folder);
    }
    if (is_left_out(w, name, true) && is_left_out(w, name, false)) {
        return true;
    }
    if (stat(path, &st) != 0) {
        return err_set_os(err, ERR_IO, errno, "cannot read '%s'", path);
    }
    if (is_left_out(w, name, S_ISDIR(st.st_mode))) {
        return true;
    }
    if (S_ISREG(st.st_mode)) {
        return add_file(w, name, &st, err);
    }
    if (!S_ISDIR(st.st_mode)) {
        return err_set(err, ERR_INVALID, "'%s' is neither a file nor a folder", path);
    }
    bool ok = enter(w, name, &st, err) && walk_folder(w, name, err);
    w->depth -= ok;
    return ok;
}

static void close_folder(DIR **d)
{
    if (*d != NULL) {
        (void)closedir(*d);
    }
}

static bool walk_folder(struct source_walk *w, const char *below, struct err *err)
{
    AUTO_FREE char *path = xasprintf("%s/%s", w->folder, below);
    CLEANUP(close_folder)
    DIR *d = opendir(path);
    if (d == NULL) {
        return err_set_os(err, ERR_IO, errno, "cannot read the folder '%s'", path);
    }
    for (;;) {
        errno = 0;
        const struct dirent *e = readdir(d);
        if (e == NULL) {
            return errno == 0 || err_set_os(err, ERR_IO, errno, "cannot read '%s'", path);
        }
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
            continue;
        }
        AUTO_FREE char *name =
            below[0] == '\0' ? xstrdup(e->d_name) : xasprintf("%s/%s", below, e->d_name);
        if (!take_entry(w, name, err)) {
            return false;
        }
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct found *)a)->name, ((const struct found *)b)->name);
}

static void squeeze(z_stream *z, struct buf *piece, int flush, struct buf *out)
{
    Bytef chunk[CHUNK];
    z->next_in = (Bytef *)piece->p;
    z->avail_in = (uInt)piece->n;
    do {
        z->next_out = chunk;
        z->avail_out = sizeof chunk;
        (void)deflate(z, flush);
        buf_add(out, chunk, sizeof chunk - z->avail_out);
    } while (z->avail_out == 0);
    buf_reset(piece);
}

static bool squeeze_file(const struct source_walk *w, const struct found *f, z_stream *z,
                         struct buf *out, struct err *err)
{
    AUTO_FREE char *path = xasprintf("%s/%s", w->folder, f->name);
    AUTO_BUF struct buf bytes = BUF_INIT(SOURCE_BYTES_MAX);
    AUTO_BUF struct buf member = BUF_INIT(SOURCE_BYTES_MAX + 16 * (size_t)TAR_BLOCK);
    AUTO_FILE FILE *in = fopen(path, "re");
    if (in == NULL || !buf_add_file(&bytes, in)) {
        return bytes.overflow ? err_set(err, ERR_TOO_LARGE, "'%s' is too large", path)
                              : err_set_os(err, ERR_IO, errno, "cannot read '%s'", path);
    }
    tar_add_mode(&member, str_of(f->name), buf_str(&bytes), MTIME_S, f->mode);
    squeeze(z, &member, Z_NO_FLUSH, out);
    return !out->overflow || err_set(err, ERR_TOO_LARGE,
                                     "'%s' is larger than %zu MB when it is packed; leave data out "
                                     "by " SOURCE_IGNORE_FILE,
                                     w->folder, SOURCE_PACKED_MAX >> 20);
}

/* zlib writes no name and no time into the head of its gzip. */
static bool squeeze_all(const struct source_walk *w, struct buf *out, struct err *err)
{
    AUTO_BUF struct buf end = BUF_INIT(4 * (size_t)TAR_BLOCK);
    z_stream z = {0};
    ASSERT(deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_BITS, MEM_LEVEL,
                        Z_DEFAULT_STRATEGY) == Z_OK);
    bool ok = true;
    for (size_t i = 0; ok && i < w->n; i++) {
        ok = squeeze_file(w, &w->files[i], &z, out, err);
    }
    tar_end(&end);
    squeeze(&z, &end, Z_FINISH, out);
    (void)deflateEnd(&z);
    return ok && (!out->overflow || err_set(err, ERR_TOO_LARGE, "'%s' is too large", w->folder));
}

static bool look_at_folder(struct source_walk *w, struct err *err)
{
    struct stat st;
    if (stat(w->folder, &st) != 0) {
        return err_set_os(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, errno,
                          "cannot read the folder '%s'", w->folder);
    }
    if (!S_ISDIR(st.st_mode)) {
        return err_set(err, ERR_INVALID, "'%s' is not a folder", w->folder);
    }
    return enter(w, "", &st, err) && read_patterns(w, err) && walk_folder(w, "", err) &&
           (w->n > 0 || err_set(err, ERR_INVALID, "'%s' has no file", w->folder));
}

bool source_pack(const char *folder, struct source_pack *ret, struct err *err)
{
    CLEANUP(walk_done)
    struct source_walk w = {.folder = folder, .patterns = BUF_INIT(IGNORE_MAX)};
    *ret = (struct source_pack){.gz = BUF_INIT(SOURCE_PACKED_MAX)};
    if (!look_at_folder(&w, err)) {
        return false;
    }
    qsort(w.files, w.n, sizeof *w.files, by_name);
    if (!squeeze_all(&w, &ret->gz, err)) {
        source_pack_done(ret);
        return false;
    }
    hash_sha256_hex(ret->gz.p, ret->gz.n, ret->sha256);
    ret->folder = xstrdup(folder);
    ret->names = xcalloc(w.n, sizeof *ret->names);
    for (; ret->n < w.n; ret->n++) {
        ret->names[ret->n] = xstrdup(w.files[ret->n].name);
    }
    return true;
}

bool source_pack_has(const struct source_pack *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++) {
        if (strcmp(p->names[i], name) == 0) {
            return true;
        }
    }
    return false;
}
