/* The demo's web: 40 hosts h1..h40.demo.test on 127.0.2.1..40, slow.demo.test on .41,
 * dead.demo.test on .42 (accepts nothing: its backlog is full), and a DNS for them. Every request's
 * path goes to --log FILE, so that a test can count. usage: demo_server --images DIR --ports FILE
 * [--log FILE]; FILE gets "HTTP_PORT DNS_PORT". */
#include "common/base.h"
#include "common/cleanup.h"
#include "common/str.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

#define HOSTS      40
#define SLOW_HOST  41
#define DEAD_HOST  42
#define IMAGES_MAX 4096
#define SLOW_CHUNK 600
#define SLOW_US    150000

struct demo_image {
    char name[32];
    char *p;
    size_t n;
};
struct demo_server {
    struct demo_image images[IMAGES_MAX];
    size_t images_n;
    FILE *log;
    pthread_mutex_t lock;
};
static struct demo_server server;

static void die(const char *what)
{
    (void)fprintf(stderr, "demo_server: %s: %s\n", what, strerror(errno));
    exit(1);
}

static struct sockaddr_in address(int host, uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    a.sin_addr.s_addr = htonl(0x7f000200U + (uint32_t)host);
    return a;
}

static void load_images(struct demo_server *s, const char *dir)
{
    DIR *d = opendir(dir);
    if (d == NULL) {
        die(dir);
    }
    for (const struct dirent *e; (e = readdir(d)) != NULL && s->images_n < IMAGES_MAX;) {
        char path[4096];
        struct demo_image *im = &s->images[s->images_n];
        if (e->d_name[0] == '.' || strlen(e->d_name) >= sizeof im->name) {
            continue;
        }
        (void)snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        AUTO_FILE FILE *f = fopen(path, "re");
        if (f == NULL || fseek(f, 0, SEEK_END) != 0) {
            die(path);
        }
        im->n = (size_t)ftell(f);
        im->p = xmalloc(im->n + 1);
        rewind(f);
        if (fread(im->p, 1, im->n, f) != im->n) {
            die(path);
        }
        (void)snprintf(im->name, sizeof im->name, "%.31s", e->d_name);
        s->images_n++;
    }
    (void)closedir(d);
}

static const struct demo_image *find(const struct demo_server *s, const char *name)
{
    for (size_t i = 0; i < s->images_n; i++) {
        if (strcmp(s->images[i].name, name) == 0) {
            return &s->images[i];
        }
    }
    return NULL;
}

static ssize_t dribble(void *cls, uint64_t pos, char *buf, size_t max)
{
    const struct demo_image *im = cls;
    const struct timespec pause = {0, SLOW_US * 1000L};
    if (pos >= im->n) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    size_t n = MIN(MIN(max, (size_t)SLOW_CHUNK), im->n - (size_t)pos);
    (void)nanosleep(&pause, NULL);
    memcpy(buf, im->p + pos, n);
    return (ssize_t)n;
}

static enum MHD_Result answer(struct MHD_Connection *c, unsigned status, struct MHD_Response *r)
{
    enum MHD_Result ok = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return ok;
}

static struct MHD_Response *text(const char *s)
{
    return MHD_create_response_from_buffer(strlen(s), (void *)(uintptr_t)s, MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result serve(struct MHD_Connection *c, const char *url)
{
    const char *slash = strrchr(url, '/');
    const struct demo_image *im = slash != NULL ? find(&server, slash + 1) : NULL;
    struct MHD_Response *r;
    if (strncmp(url, "/img/", 5) == 0 && im != NULL) {
        r = MHD_create_response_from_buffer(im->n, im->p, MHD_RESPMEM_PERSISTENT);
        return answer(c, 200, r);
    }
    if (strncmp(url, "/slow/", 6) == 0 && im != NULL) {
        r = MHD_create_response_from_callback(im->n, SLOW_CHUNK, dribble, (void *)(uintptr_t)im,
                                              NULL);
        return answer(c, 200, r);
    }
    if (strncmp(url, "/moved/", 7) == 0 && im != NULL) {
        char to[64];
        (void)snprintf(to, sizeof to, "/img/%s", im->name);
        r = text("");
        (void)MHD_add_response_header(r, "Location", to);
        return answer(c, 302, r);
    }
    if (strncmp(url, "/page/", 6) == 0) {
        r = text("<!doctype html><title>parked</title><p>This domain is for sale.");
        (void)MHD_add_response_header(r, "Content-Type", "text/html");
        return answer(c, 200, r);
    }
    return answer(c, 404, text("not here\n"));
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, const char *body,
                                  size_t *body_n, void **state)
{
    static int seen;
    (void)cls;
    (void)method;
    (void)version;
    (void)body;
    *body_n = 0;
    if (*state == NULL) {
        *state = &seen;
        return MHD_YES;
    }
    if (server.log != NULL) {
        const char *s = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "s");
        (void)pthread_mutex_lock(&server.lock);
        (void)fprintf(server.log, "%s%s%s\n", url, s != NULL ? "?s=" : "", s != NULL ? s : "");
        (void)fflush(server.log);
        (void)pthread_mutex_unlock(&server.lock);
    }
    return serve(c, url);
}

/* A listener that accepts nothing, its backlog filled: connecting to it times out. */
static void dead_host(uint16_t port)
{
    struct sockaddr_in a = address(DEAD_HOST, port);
    int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;
    (void)setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (l < 0 || bind(l, (struct sockaddr *)&a, sizeof a) != 0 || listen(l, 0) != 0) {
        die("dead host");
    }
    for (int i = 0; i < 3; i++) {
        int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(s, (struct sockaddr *)&a, sizeof a);
    }
}

/* Host number of a name in the DNS wire form; 0: no such name. */
static int host_of(const uint8_t *q, size_t n)
{
    char name[64] = "";
    size_t label = q[0];
    static const uint8_t tail[] = "\x04"
                                  "demo"
                                  "\x04"
                                  "test";
    if (label == 0 || label > 20 || n < 1 + label + sizeof tail ||
        memcmp(q + 1 + label, tail, sizeof tail) != 0) {
        return 0;
    }
    memcpy(name, q + 1, label);
    int64_t k = 0;
    if (strcmp(name, "slow") == 0) {
        return SLOW_HOST;
    }
    if (strcmp(name, "dead") == 0) {
        return DEAD_HOST;
    }
    return name[0] == 'h' && parse_i64(str_of(name + 1), 1, HOSTS, &k, NULL) ? (int)k : 0;
}

static void *dns_thread(void *arg)
{
    int s = *(int *)arg;
    for (;;) {
        uint8_t m[512];
        struct sockaddr_in from;
        socklen_t from_n = sizeof from;
        ssize_t got = recvfrom(s, m, sizeof m - 32, 0, (struct sockaddr *)&from, &from_n);
        if (got < 17) {
            continue;
        }
        size_t q = 12;
        while (q < (size_t)got && m[q] != 0) {
            q += m[q] + 1U;
        }
        size_t end = q + 5;
        if (end > (size_t)got) {
            continue;
        }
        int host = host_of(m + 12, (size_t)got - 12);
        bool is_a = m[q + 1] == 0 && m[q + 2] == 1;
        m[2] = 0x84;
        m[3] = host > 0 ? 0x00 : 0x03;
        memset(m + 6, 0, 6);
        size_t n = end;
        if (host > 0 && is_a) {
            const uint8_t rr[] = {0xc0, 12, 0, 1, 0,   1, 0, 0,
                                  0,    60, 0, 4, 127, 0, 2, (uint8_t)host};
            m[7] = 1;
            memcpy(m + n, rr, sizeof rr);
            n += sizeof rr;
        }
        (void)sendto(s, m, n, 0, (struct sockaddr *)&from, from_n);
    }
    return NULL;
}

static uint16_t bound_port(int s)
{
    struct sockaddr_in a;
    socklen_t n = sizeof a;
    return getsockname(s, (struct sockaddr *)&a, &n) == 0 ? ntohs(a.sin_port) : 0;
}

static uint16_t start_dns(void)
{
    static int s;
    pthread_t t;
    struct sockaddr_in a = address(1, 0);
    s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s < 0 || bind(s, (struct sockaddr *)&a, sizeof a) != 0 ||
        pthread_create(&t, NULL, dns_thread, &s) != 0) {
        die("dns");
    }
    return bound_port(s);
}

static bool start_hosts(uint16_t port)
{
    struct MHD_Daemon *d[SLOW_HOST + 1] = {NULL};
    for (int k = 1; k <= SLOW_HOST; k++) {
        struct sockaddr_in a = address(k, port);
        unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD;
        flags |= k == SLOW_HOST ? MHD_USE_THREAD_PER_CONNECTION : MHD_USE_EPOLL;
        d[k] = MHD_start_daemon(flags, port, NULL, NULL, on_request, NULL, MHD_OPTION_SOCK_ADDR, &a,
                                MHD_OPTION_CONNECTION_LIMIT, 2000U, MHD_OPTION_CONNECTION_TIMEOUT,
                                30U, MHD_OPTION_LISTENING_ADDRESS_REUSE, 1U, MHD_OPTION_END);
        if (d[k] == NULL) {
            while (--k >= 1) {
                MHD_stop_daemon(d[k]);
            }
            return false;
        }
    }
    return true;
}

static uint16_t start_http(void)
{
    for (int tries = 0; tries < 20; tries++) {
        struct sockaddr_in a = address(1, 0);
        AUTO_FD int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (probe < 0 || bind(probe, (struct sockaddr *)&a, sizeof a) != 0) {
            die("port");
        }
        uint16_t port = bound_port(probe);
        (void)close(probe);
        probe = -1;
        if (start_hosts(port)) {
            return port;
        }
    }
    die("no free port");
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {{"images", required_argument, NULL, 'i'},
                                          {"ports", required_argument, NULL, 'p'},
                                          {"log", required_argument, NULL, 'l'},
                                          {NULL, 0, NULL, 0}};
    const char *images = NULL;
    const char *ports = NULL;
    sigset_t stop;
    int signo;
    for (int o; (o = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        if (o == 'i') {
            images = optarg;
        } else if (o == 'p') {
            ports = optarg;
        } else if (o == 'l') {
            server.log = fopen(optarg, "ae");
        }
    }
    if (images == NULL || ports == NULL) {
        errno = EINVAL;
        die("usage: demo_server --images DIR --ports FILE [--log FILE]");
    }
    (void)sigemptyset(&stop);
    (void)sigaddset(&stop, SIGTERM);
    (void)sigaddset(&stop, SIGINT);
    (void)sigaddset(&stop, SIGHUP); /* images are there now: read them */
    (void)pthread_sigmask(SIG_BLOCK, &stop, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)pthread_mutex_init(&server.lock, NULL);
    uint16_t http = start_http();
    uint16_t dns = start_dns();
    dead_host(http);
    char temp[4096];
    (void)snprintf(temp, sizeof temp, "%s.tmp", ports);
    FILE *f = fopen(temp, "we");
    if (f == NULL || fprintf(f, "%u %u\n", http, dns) < 0 || fclose(f) != 0 ||
        rename(temp, ports) != 0) {
        die(ports);
    }
    while (sigwait(&stop, &signo) == 0 && signo == SIGHUP) {
        if (server.images_n == 0) {
            load_images(&server, images);
        }
    }
    return 0;
}
