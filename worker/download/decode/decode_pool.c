/* Fork server, children, and the parent's side of a child. Shared memory of a child: [struct
 * wire][struct bboxes][body, IMAGE_BODY_BYTES_MAX][answer: image then exif]. One byte on the socket
 * says "your turn". What the child wrote is untrusted and checked. */
#include "decode_pool.h"
#include "common/cleanup.h"
#include "sandbox.h"
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#define BOXES_AT  ((size_t)4096)
#define BODY_AT   (BOXES_AT + ((size_t)32 << 10))
#define ANSWER_AT (BODY_AT + IMAGE_BODY_BYTES_MAX)
#define ANSWER_N  ((size_t)IMAGE_OUT_BYTES_MAX + IMAGE_EXIF_BYTES_MAX)
#define SHM_N     (ANSWER_AT + ANSWER_N)
#define KEEP_N    (BODY_AT + (1u << 20)) /* pages beyond are released after a large image */
#define HEAP_KEPT (24 << 20)             /* of a child between two images */

#define END_PAUSE_NS 2000000 /* interval between two checks for ended children */
#define END_PAUSES   500     /* maximum number of these checks */

_Static_assert(BOXES_AT + sizeof(struct bboxes) <= BODY_AT, "boxes have room");

struct decode_head {
    uint64_t body_n;
    uint64_t image_n;
    uint64_t exif_n;
    int32_t result;
    int32_t width, height, original_width, original_height;
    char hash[IMAGE_HASH_HEX_N];
};
struct decode_pool {
    pthread_mutex_t lock;
    int fork_server_fd;
    pid_t fork_server;
};
struct decode_pool_child {
    struct decode_pool *pool;
    int shm_fd;
    uint8_t *shm;
    int fd; /* -1: has to be made */
};

struct recipe { /* the settings of a child */
    const struct image_options *o;
    struct decode_pool_limits limits;
};

static void child_image(uint8_t *shm, const struct image_options *o, struct decoded *d)
{
    struct decode_head *w = (struct decode_head *)(void *)shm;
    struct str body = {(const char *)shm + BODY_AT, MIN(w->body_n, IMAGE_BODY_BYTES_MAX)};
    const struct bboxes *boxes = (const struct bboxes *)(const void *)(shm + BOXES_AT);
    ASSERT(boxes->n >= 0 && boxes->n <= BBOX_MAX);
    d->width = d->height = d->original_width = d->original_height = 0;
    decode_one(body, boxes, o, d);
    ASSERT(d->image.n + d->exif.n <= ANSWER_N);
    if (d->image.n > 0) {
        memcpy(shm + ANSWER_AT, d->image.p, d->image.n);
    }
    if (d->exif.n > 0) {
        memcpy(shm + ANSWER_AT + d->image.n, d->exif.p, d->exif.n);
    }
    w->result = (int32_t)d->result;
    w->image_n = d->image.n;
    w->exif_n = d->exif.n;
    w->width = d->width;
    w->height = d->height;
    w->original_width = d->original_width;
    w->original_height = d->original_height;
    memcpy(w->hash, d->hash, sizeof w->hash);
}

NORETURN static void child_run(int shm_fd, int fd, const struct recipe *r)
{
    uint8_t *shm = mmap(NULL, SHM_N, PROT_READ | PROT_WRITE, MAP_SHARED, shm_fd, 0);
    if (shm == MAP_FAILED) {
        _exit(1);
    }
    (void)close(shm_fd);
    struct decoded d = {.image = BUF_INIT(IMAGE_OUT_BYTES_MAX),
                        .exif = BUF_INIT(IMAGE_EXIF_BYTES_MAX)};
    FILE *quiet = fopen("/dev/null", "we"); /* dav1d writes about each bad byte; asserts go to 2 */
    if (quiet != NULL) {
        (void)setvbuf(quiet, NULL, _IONBF, 0); /* a buffer would be sized by fstat, which kills */
        stderr = quiet;
    }
    if (!sandbox_enter(r->limits.memory_max)) {
        _exit(1);
    }
    /* Keep freed memory: otherwise the kernel clears each page again for each image. */
    (void)mallopt(M_MMAP_THRESHOLD, HEAP_KEPT);
    (void)mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
    char turn;
    while (recv(fd, &turn, 1, 0) == 1) {
        sandbox_cpu_seconds(r->limits.cpu_seconds_max);
        child_image(shm, r->o, &d);
        if (send(fd, &turn, 1, MSG_NOSIGNAL) != 1) {
            break;
        }
    }
    _exit(0);
}

static bool send_fd(int sock, int fd)
{
    char byte = 'f';
    struct iovec iov = {&byte, 1};
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } u = {0};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    if (fd >= 0) {
        m.msg_control = u.space;
        m.msg_controllen = sizeof u.space;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    return sendmsg(sock, &m, MSG_NOSIGNAL) == 1;
}

/* Receive a descriptor; -1 when the other side is gone or sent none. */
static int recv_fd(int sock, bool *ret_gone)
{
    char byte;
    struct iovec iov = {&byte, 1};
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } u = {0};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = u.space, .msg_controllen = sizeof u.space};
    ssize_t n;
    do {
        n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    *ret_gone = n != 1;
    int fd = -1;
    struct cmsghdr *c = n == 1 ? CMSG_FIRSTHDR(&m) : NULL;
    if (c != NULL && c->cmsg_type == SCM_RIGHTS) {
        memcpy(&fd, CMSG_DATA(c), sizeof fd);
    }
    return fd;
}

static int decoder_fork(int control, int shm_fd, const struct recipe *r)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return -1;
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(0);
        }
        (void)close(control);
        (void)close(pair[0]);
        child_run(shm_fd, pair[1], r);
    }
    (void)close(pair[1]);
    if (pid < 0) {
        (void)close(pair[0]);
        return -1;
    }
    return pair[0];
}

/* Children end when their sockets close; a stopped or stuck one is killed at our end. */
NORETURN static void fork_server_end(void)
{
    const struct timespec pause = {0, END_PAUSE_NS};
    pid_t pid = waitpid(-1, NULL, WNOHANG);
    for (int i = 0; i < END_PAUSES && pid >= 0; i++) {
        if (pid == 0) {
            (void)nanosleep(&pause, NULL);
        }
        pid = waitpid(-1, NULL, WNOHANG);
    }
    _exit(0);
}

NORETURN static void fork_server_run(int control, const struct recipe *r)
{
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGINT, SIG_IGN);
    for (;;) {
        bool gone;
        int shm_fd = recv_fd(control, &gone);
        /* Reaped here and not by the kernel: only then is their CPU time counted as ours. A child
         * that died is replaced at once, so none stays unreaped for long. */
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
        if (gone) {
            fork_server_end();
        }
        int fd = shm_fd < 0 ? -1 : decoder_fork(control, shm_fd, r);
        if (!send_fd(control, fd)) {
            _exit(0);
        }
        if (fd >= 0) {
            (void)close(fd);
        }
        if (shm_fd >= 0) {
            (void)close(shm_fd);
        }
    }
}

bool decode_pool_new(const struct image_options *o, struct decode_pool **ret, struct err *err)
{
    static const struct decode_pool_limits usual = {DECODE_POOL_MEMORY_MAX,
                                                    DECODE_POOL_CPU_SECONDS_MAX};
    return decode_pool_new_limited(o, &usual, ret, err);
}

bool decode_pool_new_limited(const struct image_options *o, const struct decode_pool_limits *limits,
                             struct decode_pool **ret, struct err *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return err_set_os(err, ERR_INTERNAL, errno, "socketpair");
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0) {
        (void)close(pair[0]);
        (void)close(pair[1]);
        return err_set_os(err, ERR_INTERNAL, errno, "fork");
    }
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(0);
        }
        (void)close(pair[0]);
        fork_server_run(pair[1], &(struct recipe){o, *limits});
    }
    (void)close(pair[1]);
    struct decode_pool *p = xcalloc(1, sizeof *p);
    (void)pthread_mutex_init(&p->lock, NULL);
    p->fork_server_fd = pair[0];
    p->fork_server = pid;
    *ret = p;
    return true;
}

void decode_pool_free(struct decode_pool *p)
{
    if (p == NULL) {
        return;
    }
    (void)close(p->fork_server_fd);
    (void)waitpid(p->fork_server, NULL, 0);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}

static bool child_start(struct decode_pool_child *c, struct err *err)
{
    bool gone = false;
    (void)pthread_mutex_lock(&c->pool->lock);
    int fd =
        send_fd(c->pool->fork_server_fd, c->shm_fd) ? recv_fd(c->pool->fork_server_fd, &gone) : -1;
    (void)pthread_mutex_unlock(&c->pool->lock);
    if (fd < 0) {
        return err_set(err, ERR_INTERNAL, "cannot make a decoding process");
    }
    c->fd = fd;
    return true;
}

bool decode_pool_child_new(struct decode_pool *p, struct decode_pool_child **ret, struct err *err)
{
    struct decode_pool_child *c = xcalloc(1, sizeof *c);
    *c = (struct decode_pool_child){.pool = p, .fd = -1, .shm = MAP_FAILED};
    c->shm_fd = memfd_create("drover-decode", MFD_CLOEXEC);
    if (c->shm_fd < 0 || ftruncate(c->shm_fd, (off_t)SHM_N) != 0) {
        (void)err_set_os(err, ERR_INTERNAL, errno, "memfd");
        decode_pool_child_free(c);
        return false;
    }
    c->shm = mmap(NULL, SHM_N, PROT_READ | PROT_WRITE, MAP_SHARED, c->shm_fd, 0);
    if (c->shm == MAP_FAILED) {
        (void)err_set_os(err, ERR_INTERNAL, errno, "mmap");
        decode_pool_child_free(c);
        return false;
    }
    if (!child_start(c, err)) {
        decode_pool_child_free(c);
        return false;
    }
    *ret = c;
    return true;
}

void decode_pool_child_free(struct decode_pool_child *c)
{
    if (c == NULL) {
        return;
    }
    if (c->fd >= 0) {
        (void)close(c->fd);
    }
    if (c->shm != MAP_FAILED) {
        (void)munmap(c->shm, SHM_N);
    }
    if (c->shm_fd >= 0) {
        (void)close(c->shm_fd);
    }
    free(c);
}

static bool take_answer(struct decode_pool_child *c, struct decoded *ret)
{
    struct decode_head w;
    memcpy(&w, c->shm, sizeof w); /* copied once: the child could change it meanwhile */
    if (w.result < IMAGE_OK || w.result > IMAGE_OUT_TOO_LARGE || w.image_n > IMAGE_OUT_BYTES_MAX ||
        w.exif_n > IMAGE_EXIF_BYTES_MAX || w.width < 0 || w.height < 0 || w.original_width < 0 ||
        w.original_height < 0) {
        return false;
    }
    w.hash[sizeof w.hash - 1] = '\0';
    buf_add(&ret->image, c->shm + ANSWER_AT, w.image_n);
    buf_add(&ret->exif, c->shm + ANSWER_AT + w.image_n, w.exif_n);
    ret->result = (enum image_result)w.result;
    ret->width = w.width;
    ret->height = w.height;
    ret->original_width = w.original_width;
    ret->original_height = w.original_height;
    memcpy(ret->hash, w.hash, sizeof ret->hash);
    return str_is_utf8(str_of(ret->hash)) && (ret->exif.n == 0 || str_is_utf8(buf_str(&ret->exif)));
}

static bool exchange(struct decode_pool_child *c)
{
    char turn = 't';
    ssize_t n = send(c->fd, &turn, 1, MSG_NOSIGNAL);
    if (n != 1) {
        return false;
    }
    do {
        n = recv(c->fd, &turn, 1, 0);
    } while (n < 0 && errno == EINTR);
    return n == 1;
}

bool decode_pool_decode(struct decode_pool_child *c, struct str body, const struct bboxes *boxes,
                        struct decoded *ret, bool *ret_died, struct err *err)
{
    ASSERT(body.n <= IMAGE_BODY_BYTES_MAX);
    struct decode_head w = {.body_n = body.n};
    memcpy(c->shm, &w, sizeof w);
    int boxes_n = boxes != NULL ? boxes->n : 0;
    ASSERT(boxes_n >= 0 && boxes_n <= BBOX_MAX);
    memcpy(c->shm + BOXES_AT, &boxes_n, sizeof boxes_n);
    if (boxes_n > 0) {
        memcpy(c->shm + BOXES_AT + offsetof(struct bboxes, at), boxes->at,
               (size_t)boxes_n * sizeof *boxes->at);
    }
    if (body.n > 0) {
        memcpy(c->shm + BODY_AT, body.p, body.n);
    }
    bool ok = exchange(c) && take_answer(c, ret);
    if (BODY_AT + body.n > KEEP_N || ret->image.n > (1u << 20)) {
        (void)fallocate(c->shm_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)BODY_AT,
                        (off_t)(SHM_N - BODY_AT));
    }
    *ret_died = !ok;
    if (!ok) {
        (void)close(c->fd);
        c->fd = -1;
        buf_reset(&ret->image);
        buf_reset(&ret->exif);
        return child_start(c, err);
    }
    return true;
}
