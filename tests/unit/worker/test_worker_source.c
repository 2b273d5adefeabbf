/* Aim: whether a file counts as cached or cold, how much of it is then read, and what becomes of a
 * file system that cannot tell, of short reads, interrupts, errors and files that shrink. Method:
 * preadv2 and mincore are replaced by ones that play the page cache and the disk over a real file,
 * and note every call; the archive is walked for real. */
#include "common/cleanup.h"
#include "common/tar.h"
#include "index/tarwalk.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>

#include <cmocka.h>

#define PAIRS       400
#define IMAGE_BYTES 25000

enum cache { CACHED, COLD, HALF, PATCHY, CANNOT_TELL_FAST, CANNOT_TELL_SLOW };
static struct {
    enum cache cache;
    int64_t size; /* of the file */
    int64_t bytes;
    int reads, absent, places;
    size_t short_reads; /* bytes a read gives at most; 0: all */
    int interrupts;     /* every so many reads; 0: none */
    int fail_at;        /* the read that fails with EIO; 0: none */
    bool shrunk;
} world;

static bool is_cached(int64_t at)
{
    switch (world.cache) {
    case CACHED:
        return true;
    case COLD:
    case CANNOT_TELL_FAST:
    case CANNOT_TELL_SLOW:
        return false;
    case HALF:
        return at < world.size / 2 + world.size / 16;
    case PATCHY:
        return at / 65536 % 20 != 0;
    }
    return false;
}

/* Places are asked for in order, eight a file. */
int mincore(void *p UNUSED, size_t n, unsigned char *ret)
{
    assert_int_equal(n, 1);
    bool tells = world.cache != CANNOT_TELL_FAST && world.cache != CANNOT_TELL_SLOW;
    *ret = !tells || is_cached(world.size / 8 * world.places) ? 1 : 0;
    world.places++;
    return 0;
}

static void wait_for_disk(void)
{
    struct timespec t = {0, 200000};
    (void)nanosleep(&t, NULL);
}

ssize_t preadv2(int fd, const struct iovec *v, int n, off_t at, int flags)
{
    bool nowait = (flags & RWF_NOWAIT) != 0;
    assert_int_equal(n, 1);
    world.reads++;
    if (world.interrupts > 0 && world.reads % world.interrupts == 0) {
        errno = EINTR;
        return -1;
    }
    if (nowait && (world.cache == CANNOT_TELL_FAST || world.cache == CANNOT_TELL_SLOW)) {
        errno = EOPNOTSUPP;
        return -1;
    }
    if (nowait && !is_cached(at)) {
        world.absent++;
        errno = EAGAIN;
        return -1;
    }
    if (!nowait && world.cache == CANNOT_TELL_SLOW && v->iov_len < SOURCE_STREAM_BYTES / 4) {
        wait_for_disk();
    }
    if (world.fail_at > 0 && world.reads >= world.fail_at) {
        errno = EIO;
        return -1;
    }
    size_t want = world.short_reads > 0 ? MIN(v->iov_len, world.short_reads) : v->iov_len;
    ssize_t got = world.shrunk && at >= world.size / 2 ? 0 : pread(fd, v->iov_base, want, at);
    world.bytes += MAX(got, 0);
    return got;
}

static void write_archive(char *path)
{
    AUTO_BUF struct buf b = BUF_INIT((size_t)64 << 20);
    AUTO_FREE char *image = xcalloc(1, IMAGE_BYTES);
    for (int i = 0; i < PAIRS; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "%06d.jpg", i);
        tar_add(&b, str_of(name), (struct str){image, IMAGE_BYTES}, 0);
        (void)snprintf(name, sizeof name, "%06d.json", i);
        tar_add(&b, str_of(name), STR("{}"), 0);
        (void)snprintf(name, sizeof name, "%06d.txt", i);
        tar_add(&b, str_of(name), STR("caption"), 0);
    }
    tar_end(&b);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, b.p, b.n), b.n);
    (void)close(fd);
    world.size = (int64_t)b.n;
}

/* Walk it all; members seen. */
static int walk(enum cache cache, enum source_mode mode, struct source *src, struct err *err)
{
    char path[] = "/tmp/drover-source-XXXXXX";
    struct tarwalk w;
    struct tarwalk_member m;
    int n = 0;
    world.cache = cache;
    world.bytes = 0;
    world.reads = world.absent = world.places = 0;
    write_archive(path);
    source_init(src, mode);
    assert_true(source_open_file(src, path, err));
    (void)unlink(path);
    tarwalk_init(&w, src);
    while (tarwalk_next(&w, &m, err)) {
        assert_int_equal(m.offset % TAR_BLOCK, 0);
        assert_int_equal(m.size, n % 3 == 0 ? IMAGE_BYTES : n % 3 == 1 ? 2 : 7);
        n++;
    }
    source_close(src);
    return n;
}

static void reads_all(enum cache cache, enum source_mode mode, struct source *src)
{
    struct err err = ERR_INIT;
    assert_int_equal(walk(cache, mode, src, &err), 3 * PAIRS);
    assert_int_equal(err.code, ERR_NONE);
}

static void test_worker_source__cached_is_hopped_over(void **state UNUSED)
{
    struct source src;
    reads_all(CACHED, SOURCE_AUTO, &src);
    assert_int_equal(src.streamed_files, 0);
    assert_int_equal(world.absent, 0);
    assert_in_range(world.reads, PAIRS, PAIRS + 40); /* one a pair */
    assert_true(world.bytes < world.size / 6);
    assert_int_equal(src.read_bytes, world.bytes);
    source_done(&src);
}

static void test_worker_source__cold_is_read_in_order(void **state UNUSED)
{
    struct source src;
    reads_all(COLD, SOURCE_AUTO, &src);
    assert_int_equal(src.streamed_files, 1);
    assert_int_equal(world.absent, 0); /* known before the first read */
    assert_int_equal(world.places, 8);
    assert_true(world.bytes >= world.size - TAR_BLOCK);
    assert_true(world.bytes <
                world.size + 20 * 4096); /* a page where two pieces meet is read twice */
    assert_true(world.reads < world.size / (int64_t)SOURCE_STREAM_BYTES + 4);
    source_done(&src);
}

static void test_worker_source__turns_cold_on_the_way(void **state UNUSED)
{
    struct source src;
    reads_all(HALF, SOURCE_AUTO, &src);
    assert_int_equal(src.streamed_files, 1);
    assert_true(world.bytes > world.size / 3);
    assert_true(world.bytes < world.size * 2 / 3);
    assert_in_range(world.absent, 3, 20);
    source_done(&src);
}

static void test_worker_source__a_few_missing_pages_do_not_matter(void **state UNUSED)
{
    struct source src;
    reads_all(PATCHY, SOURCE_AUTO, &src);
    assert_int_equal(src.streamed_files, 0);
    assert_true(world.absent > 5);
    assert_true(world.bytes < world.size / 5);
    source_done(&src);
}

static void test_worker_source__time_tells_where_the_file_system_cannot(void **state UNUSED)
{
    struct source src;
    reads_all(CANNOT_TELL_FAST, SOURCE_AUTO, &src);
    assert_true(world.bytes < world.size / 3 ||
                src.streamed_files == 1); /* a busy machine is slow */
    source_done(&src);
    reads_all(CANNOT_TELL_SLOW, SOURCE_AUTO, &src);
    assert_int_equal(src.streamed_files, 1);
    assert_true(world.bytes > world.size * 9 / 10);
    source_done(&src);
}

static void test_worker_source__modes_are_kept(void **state UNUSED)
{
    struct source src;
    reads_all(COLD, SOURCE_WALK, &src);
    assert_int_equal(src.streamed_files, 0);
    assert_true(world.bytes < world.size / 6);
    source_done(&src);
    reads_all(CACHED, SOURCE_STREAM, &src);
    assert_true(world.bytes >= world.size - TAR_BLOCK);
    source_done(&src);
}

static void test_worker_source__short_reads_and_interrupts(void **state UNUSED)
{
    static const enum cache caches[] = {CACHED, COLD, HALF, PATCHY, CANNOT_TELL_FAST};
    for (size_t i = 0; i < ARRAY_LEN(caches); i++) {
        struct source src;
        world.short_reads = 1000;
        world.interrupts = 3;
        reads_all(caches[i], SOURCE_AUTO, &src);
        world.short_reads = 0;
        world.interrupts = 0;
        source_done(&src);
    }
}

static void test_worker_source__errors_say_where(void **state UNUSED)
{
    static const enum cache caches[] = {CACHED, COLD, CANNOT_TELL_FAST};
    for (size_t i = 0; i < ARRAY_LEN(caches); i++) {
        struct source src;
        struct err err = ERR_INIT;
        world.fail_at = 6;
        assert_true(walk(caches[i], SOURCE_AUTO, &src, &err) < 3 * PAIRS);
        assert_int_equal(err.code, ERR_IO);
        assert_int_equal(err.os_errno, EIO);
        assert_non_null(strstr(err.message, "at byte"));
        world.fail_at = 0;
        source_done(&src);
        world.shrunk = true;
        assert_true(walk(caches[i], SOURCE_AUTO, &src, &err) < 3 * PAIRS);
        assert_int_equal(err.code, ERR_CONFLICT);
        world.shrunk = false;
        source_done(&src);
    }
}

static void test_worker_source__stops_when_asked(void **state UNUSED)
{
    struct source src;
    struct err err = ERR_INIT;
    _Atomic int stop = 1;
    const char *p = "";
    source_init(&src, SOURCE_AUTO);
    src.stop = &stop;
    source_open_memory(&src, STR("bytes"), 1);
    assert_false(source_need(&src, 0, 1, &p, &err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    stop = 0;
    assert_true(source_need(&src, 4, 1, &p, &err));
    assert_int_equal(*p, 's');
    source_done(&src);
}

static void test_worker_source__refuses_what_is_no_file(void **state UNUSED)
{
    struct source src;
    struct err err = ERR_INIT;
    source_init(&src, SOURCE_AUTO);
    assert_false(source_open_file(&src, "/nonexistent/x.tar", &err));
    assert_int_equal(err.os_errno, ENOENT);
    assert_false(source_open_file(&src, "/dev/null", &err));
    assert_int_equal(err.code, ERR_INVALID);
    source_done(&src);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worker_source__cached_is_hopped_over),
        cmocka_unit_test(test_worker_source__cold_is_read_in_order),
        cmocka_unit_test(test_worker_source__turns_cold_on_the_way),
        cmocka_unit_test(test_worker_source__a_few_missing_pages_do_not_matter),
        cmocka_unit_test(test_worker_source__time_tells_where_the_file_system_cannot),
        cmocka_unit_test(test_worker_source__modes_are_kept),
        cmocka_unit_test(test_worker_source__short_reads_and_interrupts),
        cmocka_unit_test(test_worker_source__errors_say_where),
        cmocka_unit_test(test_worker_source__stops_when_asked),
        cmocka_unit_test(test_worker_source__refuses_what_is_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
