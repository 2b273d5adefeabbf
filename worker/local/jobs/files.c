/* Small file work: see files.h. */
#include "files.h"
#include "common/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#define COPY_CHUNK (64u << 20)

bool files_mkdirs(const char *path, struct err *err)
{
    char p[PATH_MAX];
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof p) {
        return err_set(err, ERR_LIMIT, "path of %zu bytes is too long", n);
    }
    memcpy(p, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (p[i] == '/' || p[i] == '\0') {
            char keep = p[i];
            p[i] = '\0';
            if (mkdir(p, 0755) != 0 && errno != EEXIST) {
                return err_set_os(err, ERR_IO, errno, "cannot make folder '%s'", p);
            }
            p[i] = keep;
        }
    }
    return true;
}

bool files_mkparents(const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/');
    char p[PATH_MAX];
    size_t n = slash == NULL ? 0 : (size_t)(slash - path);
    if (n == 0 || n >= sizeof p) {
        return n == 0 || err_set(err, ERR_LIMIT, "path of %zu bytes is too long", n);
    }
    memcpy(p, path, n);
    p[n] = '\0';
    return files_mkdirs(p, err);
}

bool files_path(char *out, size_t out_n, struct err *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(out, out_n, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= out_n) {
        return err_set(err, ERR_LIMIT, "path is longer than %zu bytes", out_n);
    }
    return true;
}

bool files_write(const char *path, struct str text, struct err *err)
{
    char tmp[PATH_MAX];
    if (!files_path(tmp, sizeof tmp, err, "%s.tmp", path)) {
        return false;
    }
    AUTO_FD int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
        return err_set_os(err, ERR_IO, errno, "cannot create '%s'", tmp);
    }
    ssize_t n = write(fd, text.p, text.n);
    if (n != (ssize_t)text.n) {
        return err_set_os(err, ERR_IO, n < 0 ? errno : ENOSPC, "cannot write '%s'", tmp);
    }
    if (rename(tmp, path) != 0) {
        return err_set_os(err, ERR_IO, errno, "cannot rename to '%s'", path);
    }
    return true;
}

bool files_read(const char *path, struct buf *out, struct err *err)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return err_set_os(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, errno, "cannot open '%s'",
                          path);
    }
    char chunk[16384];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return err_set_os(err, ERR_IO, errno, "cannot read '%s'", path);
        }
        if (n == 0) {
            break;
        }
        buf_add(out, chunk, (size_t)n);
    }
    return !out->overflow || err_set(err, ERR_TOO_LARGE, "'%s' is too large", path);
}

void files_read_head(const char *path, size_t max, struct buf *out)
{
    AUTO_FILE FILE *f = fopen(path, "re");
    char chunk[4096];
    while (f != NULL && max > 0) {
        size_t n = fread(chunk, 1, MIN(max, sizeof chunk), f);
        if (n == 0) {
            break;
        }
        buf_add(out, chunk, n);
        max -= n;
    }
}

bool files_copy(const char *from, const char *to, struct err *err)
{
    AUTO_FD int in = open(from, O_RDONLY | O_CLOEXEC);
    if (in < 0) {
        return err_set_os(err, ERR_IO, errno, "cannot open '%s'", from);
    }
    AUTO_FD int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (out < 0) {
        return err_set_os(err, ERR_IO, errno, "cannot create '%s'", to);
    }
    for (;;) {
        ssize_t n = copy_file_range(in, NULL, out, NULL, COPY_CHUNK, 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return err_set_os(err, ERR_IO, errno, "cannot copy '%s'", from);
        }
        if (n == 0) {
            return true;
        }
    }
}

bool files_place(const char *from, const char *to, struct err *err)
{
    size_t n = strlen(to);
    if (n > 0 && to[n - 1] == '/') {
        return files_mkdirs(to, err);
    }
    return files_mkparents(to, err) && files_copy(from, to, err);
}

static int remove_entry(const char *path, const struct stat *st UNUSED, int flag UNUSED,
                        struct FTW *ftw UNUSED)
{
    (void)remove(path);
    return 0;
}

void files_remove_tree(const char *path)
{
    (void)nftw(path, remove_entry, 32, FTW_DEPTH | FTW_PHYS);
}
