/* Writes and lists archives with the library's tar code, for
 * tests/integration/common/tar_interop.py.
 *   tar_tool create MTIME FILE... > archive      tar_tool list ARCHIVE */
#include "common/cleanup.h"
#include "common/hash.h"
#include "common/tar.h"
#include <stdio.h>

#define ARCHIVE_MAX ((size_t)64 << 20)

static bool read_file(const char *path, struct buf *out)
{
    AUTO_FILE FILE *f = fopen(path, "rb");
    if (f == NULL) {
        perror(path);
        return false;
    }
    return buf_add_file(out, f);
}

static int create(int64_t mtime_s, char **files, int n)
{
    AUTO_BUF struct buf out = BUF_INIT(ARCHIVE_MAX);
    for (int i = 0; i < n; i++) {
        AUTO_BUF struct buf data = BUF_INIT(ARCHIVE_MAX);
        if (!read_file(files[i], &data)) {
            return 1;
        }
        tar_add(&out, str_of(files[i]), buf_str(&data), mtime_s);
    }
    tar_end(&out);
    return !out.overflow && fwrite(out.p, 1, out.n, stdout) == out.n ? 0 : 1;
}

static int list(const char *path)
{
    AUTO_BUF struct buf archive = BUF_INIT(ARCHIVE_MAX);
    struct tar_reader r;
    struct tar_member m;
    struct err err = ERR_INIT;
    if (!read_file(path, &archive)) {
        return 1;
    }
    tar_reader_init(&r, buf_str(&archive));
    while (tar_next(&r, &m, &err)) {
        char hex[SHA256_HEX_N];
        hash_sha256_hex(archive.p + m.offset, (size_t)m.size, hex);
        (void)printf("%lld\t%lld\t%lld\t%s\t" STR_FMT "\n", (long long)m.offset, (long long)m.size,
                     (long long)m.mtime_s, hex, STR_ARG(m.name));
    }
    if (err.code != ERR_NONE) {
        (void)fprintf(stderr, "%s\n", err.message);
        return 2;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int64_t mtime_s;
    if (argc >= 3 && strcmp(argv[1], "create") == 0 &&
        parse_i64(str_of(argv[2]), 0, INT64_MAX, &mtime_s, NULL)) {
        return create(mtime_s, argv + 3, argc - 3);
    }
    if (argc == 3 && strcmp(argv[1], "list") == 0) {
        return list(argv[2]);
    }
    (void)fprintf(stderr, "usage: tar_tool create MTIME FILE... | list ARCHIVE\n");
    return 64;
}
