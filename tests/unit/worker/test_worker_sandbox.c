/* Aim: a decoder that crashes, asks the kernel for what it may not, or takes more than its memory
 * or time costs the picture it was at and no other, however often it happens. Method: each
 * forbidden call in a process of its own; signals to decoding processes in the middle of a picture,
 * twenty in a row; pictures that need more than a pool's limits. */
#include "download/decode/decode_pool.h"
#include "download/decode/sandbox.h"
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FILTERED 0 /* a sanitizer needs the calls and the memory */
#else
#define FILTERED 1
#endif
#define MEMORY_MAX (UINT64_C(1) << 40)

/* cmocka catches crashes, a worker does not. */
static void crash_as_ever(void)
{
    static const int signals[] = {SIGSEGV, SIGFPE, SIGILL, SIGBUS, SIGSYS};
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        (void)signal(signals[i], SIG_DFL);
    }
}

/* How a process ends that enters the sandbox and does this; its exit status is 0 when fn returns.
 */
static int ends(uint64_t memory_max, void (*fn)(void))
{
    int status = 0;
    crash_as_ever();
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (!sandbox_enter(memory_max)) {
            _exit(99);
        }
        fn();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void a_socket(void)
{
    (void)!socket(AF_INET, SOCK_STREAM, 0);
}
static void a_file(void)
{
    (void)!open("/etc/hostname", O_RDONLY | O_CLOEXEC);
}
static void a_process(void)
{
    if (fork() == 0) {
        _exit(0);
    }
}
static void a_program(void)
{
    char *argv[] = {NULL};
    (void)execve("/bin/true", argv, argv);
}
static void a_debugger(void)
{
    (void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}
static void a_signal_to_the_parent(void)
{
    (void)kill(getppid(), 0);
}
static void a_signal_to_a_thread_of_the_parent(void)
{
    (void)syscall(SYS_tgkill, getppid(), getppid(), 0);
}
static void more_memory(void)
{
    struct rlimit r = {RLIM_INFINITY, RLIM_INFINITY};
    (void)setrlimit(RLIMIT_AS, &r);
}
static void limits_of_the_parent(void)
{
    struct rlimit r = {1, 1};
    (void)prlimit(getppid(), RLIMIT_CPU, &r, NULL);
}
static void a_link(void)
{
    (void)!symlink("/x", "/tmp/drover-sandbox-link");
}
static void another_user(void)
{
    (void)!setuid(0);
}
static void a_driver(void)
{
    (void)syscall(SYS_ioctl, 0, 0, 0);
}
static void a_new_namespace(void)
{
    (void)syscall(SYS_unshare, 0);
}

static void test_worker_sandbox__a_forbidden_call_ends_the_process(void **state UNUSED)
{
    static void (*const calls[])(void) = {a_socket,
                                          a_file,
                                          a_process,
                                          a_program,
                                          a_debugger,
                                          a_signal_to_the_parent,
                                          a_signal_to_a_thread_of_the_parent,
                                          more_memory,
                                          limits_of_the_parent,
                                          a_link,
                                          another_user,
                                          a_driver,
                                          a_new_namespace};
    for (size_t i = 0; FILTERED && i < ARRAY_LEN(calls); i++) {
        int status = ends(MEMORY_MAX, calls[i]);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS) {
            fail_msg("call %zu: ended with %x", i, (unsigned)status);
        }
    }
}

static void what_decoders_need(void)
{
    char byte = 'x';
    int pair[2];
    sandbox_cpu_seconds(5);
    volatile char *p = malloc((size_t)50 << 20);
    if (p == NULL) {
        _exit(1);
    }
    p[1 << 20] = 1;
    free((void *)(uintptr_t)p);
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    (void)pair;
    _exit(write(STDOUT_FILENO, &byte, 0) == 0 ? 0 : 2);
}
static void an_abort(void)
{
    abort();
}
static void a_bad_address(void)
{
    (void)raise(SIGSEGV);
}

static void test_worker_sandbox__what_decoding_needs_is_left(void **state UNUSED)
{
    assert_int_equal(ends(MEMORY_MAX, what_decoders_need), 0);
    assert_int_equal(WTERMSIG(ends(MEMORY_MAX, an_abort)), SIGABRT); /* and says how it died */
    if (FILTERED) {
        assert_int_equal(WTERMSIG(ends(MEMORY_MAX, a_bad_address)), SIGSEGV);
    }
    assert_int_equal(ends(MEMORY_MAX, a_socket) == 0, !FILTERED);
}

static void for_ever(void)
{
    sandbox_cpu_seconds(0); /* until the next whole second of what it has used */
    for (volatile unsigned i = 0;; i++) {
    }
}
static void two_hundred_megabytes(void)
{
    void *p = malloc((size_t)200 << 20);
    _exit(p == NULL ? 7 : 0);
}

static void test_worker_sandbox__time_and_memory_have_an_end(void **state UNUSED)
{
    assert_int_equal(WTERMSIG(ends(MEMORY_MAX, for_ever)), SIGXCPU);
    if (FILTERED) {
        assert_int_equal(WEXITSTATUS(ends((uint64_t)100 << 20, two_hundred_megabytes)), 7);
    }
}

/* The youngest: one that died may not be buried yet. */
static pid_t last_child(pid_t of)
{
    char path[64];
    int pid = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)of, (int)of);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    while (fscanf(f, "%d", &pid) == 1) {
    }
    (void)fclose(f);
    assert_true(pid > 0);
    return pid;
}

static pid_t decoder(void)
{
    return last_child(last_child(getpid()));
}

static void picture(int w, int h, struct buf *out)
{
    struct image_options o = {.format = IMAGE_PNG, .quality = 1};
    struct image im;
    assert_true(image_alloc(w, h, 3, &im));
    memset(im.px, 9, (size_t)w * (size_t)h * 3);
    assert_int_equal(image_encode(&im, &o, out), IMAGE_OK);
    image_done(&im);
}

static const struct image_options plain = {
    .mode = RESIZE_NO, .format = IMAGE_PNG, .quality = 1, .max_area = 1e18, .max_aspect = 1e18};

struct bench {
    struct decode_pool *pool;
    struct decode_pool_child *child;
    struct decoded d;
    struct buf small;
};

static void bench_init(struct bench *b, const struct image_options *o,
                       const struct decode_pool_limits *l)
{
    struct err err = ERR_INIT;
    crash_as_ever();
    *b = (struct bench){
        .d = {.image = BUF_INIT(IMAGE_OUT_BYTES_MAX), .exif = BUF_INIT(IMAGE_EXIF_BYTES_MAX)},
        .small = BUF_INIT(1u << 20)};
    picture(20, 10, &b->small);
    assert_true(l != NULL ? decode_pool_new_limited(o, l, &b->pool, &err)
                          : decode_pool_new(o, &b->pool, &err));
    assert_true(decode_pool_child_new(b->pool, &b->child, &err));
}

static void bench_done(struct bench *b)
{
    decode_pool_child_free(b->child);
    decode_pool_free(b->pool);
    buf_done(&b->d.image);
    buf_done(&b->d.exif);
    buf_done(&b->small);
}

/* Did the child die of it? */
static bool dies_of(struct bench *b, struct str body)
{
    struct err err = ERR_INIT;
    bool died = false;
    buf_reset(&b->d.image);
    buf_reset(&b->d.exif);
    assert_true(decode_pool_decode(b->child, body, NULL, &b->d, &died, &err));
    return died;
}

static void still_decodes(struct bench *b)
{
    assert_false(dies_of(b, buf_str(&b->small)));
    assert_int_equal(b->d.result, IMAGE_OK);
    assert_int_equal(b->d.width, 20);
}

struct blow {
    pid_t pid;
    int sig;
};

/* The child is stopped, so that it is the picture's middle whenever this comes. */
static void *strike(void *arg)
{
    const struct blow *w = arg;
    const struct timespec while_it_waits = {0, 5000000};
    (void)nanosleep(&while_it_waits, NULL);
    assert_int_equal(kill(w->pid, w->sig), 0);
    (void)kill(w->pid, SIGCONT);
    return NULL;
}

static void test_worker_sandbox__twenty_crashes_in_a_row_cost_twenty_pictures(void **state UNUSED)
{
    static const int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGKILL,
                                  SIGSYS,  SIGXCPU, SIGFPE, SIGILL};
    struct bench b;
    bench_init(&b, &plain, NULL);
    still_decodes(&b);
    pid_t last = 0;
    for (int i = 0; i < 20; i++) {
        struct blow w = {decoder(), signals[(size_t)i % ARRAY_LEN(signals)]};
        assert_int_not_equal(w.pid, last); /* a new one each time */
        last = w.pid;
        assert_int_equal(kill(w.pid, SIGSTOP), 0);
        pthread_t t;
        assert_int_equal(pthread_create(&t, NULL, strike, &w), 0);
        bool died = dies_of(&b, buf_str(&b.small));
        assert_int_equal(pthread_join(t, NULL), 0);
        assert_true(died);
        assert_int_equal(b.d.image.n, 0);
    }
    still_decodes(&b);
    still_decodes(&b);
    bench_done(&b);
}

static void test_worker_sandbox__a_picture_over_the_memory_limit_costs_itself(void **state UNUSED)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld", &pages), 1);
    (void)fclose(f);
    /* What it has by being forked from here, what it shares, and 60 of the 75 MB needed. */
    struct decode_pool_limits l = {(uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) +
                                       (uint64_t)IMAGE_BODY_BYTES_MAX + IMAGE_OUT_BYTES_MAX +
                                       ((uint64_t)60 << 20),
                                   10};
    struct buf large = BUF_INIT((size_t)64 << 20);
    picture(5000, 5000, &large);
    struct bench b;
    bench_init(&b, &plain, NULL);
    assert_false(dies_of(&b, buf_str(&large)));
    assert_int_equal(b.d.result, IMAGE_OK); /* the usual limits are not in its way */
    bench_done(&b);
    bench_init(&b, &plain, &l);
    for (int i = 0; i < 3; i++) {
        still_decodes(&b);
        bool died = dies_of(&b, buf_str(&large));
        assert_int_equal(died || b.d.result != IMAGE_OK, FILTERED);
    }
    still_decodes(&b);
    bench_done(&b);
    buf_done(&large);
}

static void test_worker_sandbox__a_picture_over_the_time_limit_costs_itself(void **state UNUSED)
{
    struct image_options o = plain;
    o.mode = RESIZE_KEEP_LARGEST;
    o.size = 11000; /* from 20: much work for WebP */
    o.format = IMAGE_WEBP;
    o.quality = 100;
    struct decode_pool_limits l = {DECODE_POOL_MEMORY_MAX, 0}; /* until the next whole second */
    struct bench b;
    bench_init(&b, &o, &l);
    assert_true(dies_of(&b, buf_str(&b.small)));
    assert_false(dies_of(&b, STR("no picture")));
    assert_int_equal(b.d.result, IMAGE_BAD);
    bench_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worker_sandbox__a_forbidden_call_ends_the_process),
        cmocka_unit_test(test_worker_sandbox__what_decoding_needs_is_left),
        cmocka_unit_test(test_worker_sandbox__time_and_memory_have_an_end),
        cmocka_unit_test(test_worker_sandbox__twenty_crashes_in_a_row_cost_twenty_pictures),
        cmocka_unit_test(test_worker_sandbox__a_picture_over_the_memory_limit_costs_itself),
        cmocka_unit_test(test_worker_sandbox__a_picture_over_the_time_limit_costs_itself),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
