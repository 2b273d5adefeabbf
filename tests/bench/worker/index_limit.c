/* What the machine gives an index at most, on the archives given.
 *   index_limit walk WINDOW FILE...  the header walk alone, files cached: windows of WINDOW bytes,
 * of each header only type and size are looked at, nothing comes out index_limit read FILE...
 * reading alone, files not cached: every byte in order by 1 MiB Prints members and CPU seconds, or
 * bytes and seconds of the clock, as JSON. */
#include "common/base.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BLOCK      512
#define PIECE      ((size_t)1 << 20)
#define WINDOW_MAX ((size_t)64 << 10)

static double clock_of(clockid_t which)
{
    struct timespec t;
    (void)clock_gettime(which, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int64_t walk_file(const char *path, size_t window)
{
    char buf[WINDOW_MAX];
    int64_t members = 0;
    int64_t at = 0;
    int64_t from = 0;
    ssize_t n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ASSERT(fd >= 0);
    for (;;) {
        if (at < from || at + BLOCK > from + n) {
            from = at;
            n = pread(fd, buf, window, at);
            if (n < BLOCK) {
                break;
            }
        }
        const char *h = buf + (at - from);
        int64_t size = 0;
        if (h[0] == '\0') {
            break;
        }
        for (int i = 124; i < 135; i++) {
            size = size << 3 | (h[i] - '0');
        }
        members += h[156] == '0' ? 1 : 0;
        at += BLOCK + (size + BLOCK - 1) / BLOCK * BLOCK;
    }
    (void)close(fd);
    return members;
}

static int64_t read_file(const char *path)
{
    static char buf[PIECE];
    int64_t bytes = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ASSERT(fd >= 0);
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    for (ssize_t n = read(fd, buf, PIECE); n > 0; n = read(fd, buf, PIECE)) {
        bytes += n;
    }
    (void)close(fd);
    return bytes;
}

int main(int argc, char **argv)
{
    bool walk = argc > 3 && strcmp(argv[1], "walk") == 0;
    bool read_all = argc > 2 && strcmp(argv[1], "read") == 0;
    if (!walk && !read_all) {
        (void)fprintf(stderr, "usage: index_limit walk WINDOW FILE... | read FILE...\n");
        return 2;
    }
    clockid_t which = walk ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
    size_t window = walk ? MIN(strtoul(argv[2], NULL, 10), WINDOW_MAX) : 0;
    int64_t n = 0;
    double began = clock_of(which);
    for (int i = walk ? 3 : 2; i < argc; i++) {
        n += walk ? walk_file(argv[i], window) : read_file(argv[i]);
    }
    (void)printf("{\"n\":%lld,\"s\":%.6f}\n", (long long)n, clock_of(which) - began);
    return 0;
}
