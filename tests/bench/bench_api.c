/* Client of the API for bench_system.py: posts a file of parts, or gets a path again and again, and
 * prints microseconds. Method: one kept connection over raw sockets, so that what is measured is
 * droverd and the loopback, not a library. Usage: bench_api PORT TOKEN_FILE post PATH FILE
 *                                                 bench_api PORT TOKEN_FILE get PATH N */
#include "common/base.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/str.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define WARM_UP    100
#define ANSWER_MAX (1024 * 1024)

struct bench_client {
    int fd;
    char token[160];
    char answer[ANSWER_MAX];
};

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_api: %s\n", what);
    exit(1);
}

static void client_open(struct bench_client *c, const char *port, const char *token_file)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)strtoul(port, NULL, 10))};
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int one = 1;
    AUTO_FD int fd = open(token_file, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, c->token, sizeof c->token - 1);
    if (n <= 0) {
        die("no token");
    }
    c->token[strcspn(c->token, "\n")] = '\0';
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (const struct sockaddr *)&in, sizeof in) != 0 ||
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0) {
        die("cannot connect");
    }
}

static void put(struct bench_client *c, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t done = send(c->fd, p, n, MSG_NOSIGNAL);
        if (done <= 0) {
            die("the server hung up");
        }
        p += done;
        n -= (size_t)done;
    }
}

/* One request and its whole answer; the status, and where the body begins. */
static int ask(struct bench_client *c, const char *head, struct str body, const char **ret_body)
{
    put(c, head, strlen(head));
    put(c, body.p, body.n);
    size_t n = 0;
    for (;;) {
        ssize_t got = recv(c->fd, c->answer + n, sizeof c->answer - 1 - n, 0);
        if (got <= 0) {
            die("no answer");
        }
        n += (size_t)got;
        c->answer[n] = '\0';
        const char *end = strstr(c->answer, "\r\n\r\n");
        const char *length = strcasestr(c->answer, "content-length:");
        if (end != NULL && length != NULL &&
            n >= (size_t)(end + 4 - c->answer) + strtoul(length + 15, NULL, 10)) {
            *ret_body = end + 4;
            return (int)strtol(c->answer + 9, NULL, 10);
        }
    }
}

static char *head_of(const struct bench_client *c, const char *method, const char *path, size_t n)
{
    return xasprintf("%s %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n"
                     "Idempotency-Key: k%lld\r\nContent-Type: application/x-ndjson\r\n"
                     "Content-Length: %zu\r\n\r\n",
                     method, path, c->token, (long long)clock_mono_us(), n);
}

/* From the first byte of the body to the 201. */
static void post(struct bench_client *c, const char *path, const char *file)
{
    struct stat st;
    AUTO_FD int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        die("cannot read the parts");
    }
    size_t n = (size_t)st.st_size;
    void *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (p == MAP_FAILED) {
        die("cannot map the parts");
    }
    AUTO_FREE char *head = head_of(c, "POST", path, n);
    const char *body;
    int64_t began_us = clock_mono_us();
    if (ask(c, head, (struct str){p, n}, &body) != 201) {
        die(body);
    }
    (void)printf("%lld\n", (long long)(clock_mono_us() - began_us));
    (void)munmap(p, n);
}

static int compare(const void *a, const void *b)
{
    int64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x < y ? -1 : x > y;
}

/* p50, p99 and the longest of n GETs. */
static void get(struct bench_client *c, const char *path, size_t n)
{
    AUTO_FREE int64_t *took_us = xcalloc(n + 1, sizeof *took_us);
    AUTO_FREE char *head = head_of(c, "GET", path, 0);
    const char *body;
    for (size_t i = 0; i < n + WARM_UP; i++) {
        int64_t began_us = clock_mono_us();
        if (ask(c, head, STR(""), &body) != 200) {
            die(body);
        }
        took_us[i < WARM_UP ? 0 : i - WARM_UP] = clock_mono_us() - began_us;
    }
    qsort(took_us, n, sizeof *took_us, compare);
    (void)printf("%lld %lld %lld\n", (long long)took_us[n / 2], (long long)took_us[n * 99 / 100],
                 (long long)took_us[n - 1]);
}

int main(int argc, char **argv)
{
    static struct bench_client c;
    if (argc != 6) {
        die("PORT TOKEN_FILE post PATH FILE | PORT TOKEN_FILE get PATH N");
    }
    client_open(&c, argv[1], argv[2]);
    if (strcmp(argv[3], "post") == 0) {
        post(&c, argv[4], argv[5]);
    } else {
        get(&c, argv[4], strtoul(argv[5], NULL, 10));
    }
    (void)close(c.fd);
    return 0;
}
