/* Reading and inflating blocks. A gzip file may have several members, one after the other. */
#include "text_file.h"
#include "common/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <zlib.h>

#define GZIP_ONLY (16 + MAX_WBITS)

struct text_file {
    char *name;
    int fd;
    bool gzip;
    bool ended;     /* gzip: at the end of a member */
    int64_t read_n; /* bytes of the file so far */
    z_stream z;
    uint8_t in[TEXT_FILE_BLOCK_BYTES];
    uint8_t out[TEXT_FILE_BLOCK_BYTES];
};

bool text_file_open(const char *path, const char *name, bool gzip, struct text_file **ret,
                    struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return err_set_os(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, errno, "cannot open '%s'",
                          name);
    }
    struct text_file *f = xcalloc(1, sizeof *f);
    f->name = xstrdup(name);
    f->fd = fd;
    f->gzip = gzip;
    f->ended = true;
    if (gzip) {
        int rc = inflateInit2(&f->z, GZIP_ONLY);
        ASSERT(rc == Z_OK);
    }
    *ret = f;
    return true;
}

void text_file_free(struct text_file *f)
{
    if (f == NULL) {
        return;
    }
    if (f->gzip) {
        (void)inflateEnd(&f->z);
    }
    (void)close(f->fd);
    free(f->name);
    free(f);
}

static bool read_block(struct text_file *f, size_t *ret, struct err *err)
{
    for (;;) {
        ssize_t n = read(f->fd, f->in, sizeof f->in);
        if (n >= 0) {
            *ret = (size_t)n;
            f->read_n += n;
            return true;
        }
        if (errno != EINTR) {
            return err_set_os(err, ERR_IO, errno, "cannot read '%s'", f->name);
        }
    }
}

/* Make input available, and begin the next member. *ret_end: nothing is left. */
static bool fill(struct text_file *f, bool *ret_end, struct err *err)
{
    *ret_end = false;
    if (f->z.avail_in == 0) {
        size_t n;
        if (!read_block(f, &n, err)) {
            return false;
        }
        f->z.next_in = f->in;
        f->z.avail_in = (uInt)n;
        if (n == 0) {
            *ret_end = true;
            return (f->ended && f->read_n > 0) ||
                   err_set(err, ERR_INVALID, "'%s' is %s", f->name,
                           f->read_n == 0 ? "empty: not a gzip file"
                                          : "a truncated gzip file: it ends before its checksum");
        }
    }
    if (f->ended) {
        (void)inflateReset(&f->z);
        f->ended = false;
    }
    return true;
}

static bool next_inflated(struct text_file *f, struct str *ret, struct err *err)
{
    size_t got = 0;
    while (got == 0) {
        bool end;
        if (!fill(f, &end, err)) {
            return false;
        }
        if (end) {
            break;
        }
        f->z.next_out = f->out;
        f->z.avail_out = sizeof f->out;
        int rc = inflate(&f->z, Z_NO_FLUSH);
        got = sizeof f->out - f->z.avail_out;
        if (rc == Z_STREAM_END) {
            f->ended = true;
        } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
            return err_set(err, ERR_INVALID, "'%s' is not a gzip file, or a damaged one: %s",
                           f->name, f->z.msg != NULL ? f->z.msg : "no reason given");
        }
    }
    *ret = (struct str){(const char *)f->out, got};
    return true;
}

bool text_file_next(struct text_file *f, struct str *ret, struct err *err)
{
    size_t n;
    if (f->gzip) {
        return next_inflated(f, ret, err);
    }
    bool first = f->read_n == 0;
    if (!read_block(f, &n, err)) {
        return false;
    }
    if (first && n >= 2 && f->in[0] == 0x1f && f->in[1] == 0x8b) {
        return err_set(err, ERR_INVALID, "'%s' is a gzip file: its input_format ends with .gz",
                       f->name);
    }
    *ret = (struct str){(const char *)f->in, n};
    return true;
}
