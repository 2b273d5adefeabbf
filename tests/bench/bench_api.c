/* Figures of the API: 1 M parts by POST /campaigns/{id}/parts, from the first byte sent to the 201,
 * and GET of a campaign of 1 M parts. Method: the real server over a private cluster (nothing that
 * makes commits durable is off), raw sockets as client, a campaign of its own each run, median of
 * the runs. Prints JSON lines. Usage: bench_api [DIR] */
#include "api/server.h"
#include "common/clock.h"
#include "store/migrate.h"
#include "store/private_db.h"
#include "store/query.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define PARTS      1000000
#define RUNS       3
#define GETS       10000
#define BODY_MAX   (256 * 1024 * 1024)
#define ANSWER_MAX (64 * 1024)

struct bench {
    struct api *api;
    struct bridge *bridge;
    char token[160];
    int fd;
    char answer[ANSWER_MAX];
};

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_api: %s\n", what);
    exit(1);
}

static void must(bool ok, const struct err *err)
{
    if (!ok) {
        die(err->message);
    }
}

static void client_open(struct bench *b)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(api_port(b->api))};
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int one = 1;
    b->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (b->fd < 0 || connect(b->fd, (const struct sockaddr *)&in, sizeof in) != 0 ||
        setsockopt(b->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0) {
        die("cannot connect");
    }
}

static void put(struct bench *b, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t done = send(b->fd, p, n, MSG_NOSIGNAL);
        if (done <= 0) {
            die("the server hung up");
        }
        p += done;
        n -= (size_t)done;
    }
}

/* One request; the status, the body in b->answer. */
static int ask(struct bench *b, const char *method, const char *path, struct str body)
{
    AUTO_FREE char *head =
        xasprintf("%s %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\nIdempotency-Key: "
                  "k%lld\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                  method, path, b->token, (long long)clock_mono_us(), body.n);
    put(b, head, strlen(head));
    put(b, body.p, body.n);
    size_t n = 0;
    for (;;) {
        ssize_t got = recv(b->fd, b->answer + n, sizeof b->answer - 1 - n, 0);
        if (got <= 0) {
            die("no answer");
        }
        n += (size_t)got;
        b->answer[n] = '\0';
        const char *end = strstr(b->answer, "\r\n\r\n");
        const char *length = strcasestr(b->answer, "content-length:");
        if (end != NULL && length != NULL &&
            n >= (size_t)(end + 4 - b->answer) + strtoul(length + 15, NULL, 10)) {
            memmove(b->answer + 4096, end + 4, strlen(end + 4) + 1);
            return (int)strtol(b->answer + 9, NULL, 10);
        }
    }
}

static const char *body_of(const struct bench *b)
{
    return b->answer + 4096;
}

static void campaign_make(struct bench *b, char path[static 128])
{
    static const char spec[] =
        "{\"version\":1,\"name\":\"bench\",\"stages\":[{\"name\":\"download\",\"worker\":"
        "\"download\",\"fan_out\":{\"from\":\"api\"},\"instance_type\":\"ml.c5.xlarge\","
        "\"max_runtime\":\"1h\",\"hyperparameters\":{\"url_list\":\"{uri}\",\"output_folder\":"
        "\"s3://bench/out/{part:05d}/\"}}]}";
    if (ask(b, "POST", "/v1/campaigns", STR(spec)) != 201) {
        die(body_of(b));
    }
    const char *id = strstr(body_of(b), "c-");
    (void)snprintf(path, 128, "/v1/campaigns/%.*s", (int)strcspn(id, "\""), id);
}

static int compare(const void *a, const void *b)
{
    int64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x < y ? -1 : x > y;
}

static void insert(struct bench *b, struct str lines, char path[static 128])
{
    int64_t took_us[RUNS];
    for (int i = 0; i < RUNS; i++) {
        campaign_make(b, path);
        AUTO_FREE char *parts = xasprintf("%s/parts?last=true", path);
        int64_t began_us = clock_mono_us();
        if (ask(b, "POST", parts, lines) != 201) {
            die(body_of(b));
        }
        took_us[i] = clock_mono_us() - began_us;
    }
    qsort(took_us, RUNS, sizeof took_us[0], compare);
    (void)printf(
        "{\"name\":\"parts_insert_per_s\",\"value\":%lld,\"unit\":\"1/s\",\"n\":%d,\"note\":"
        "\"POST of %zu bytes, first byte to 201, median of %d campaigns; best %lld\"}\n",
        (long long)(PARTS * USEC_PER_SEC / took_us[RUNS / 2]), PARTS, lines.n, RUNS,
        (long long)(PARTS * USEC_PER_SEC / took_us[0]));
    (void)fflush(stdout);
}

static void summary(struct bench *b, const char *path)
{
    int64_t *took_us = xcalloc(GETS, sizeof *took_us);
    for (int i = -100; i < GETS; i++) { /* the first hundred warm up */
        int64_t began_us = clock_mono_us();
        if (ask(b, "GET", path, STR("")) != 200) {
            die(body_of(b));
        }
        took_us[MAX(i, 0)] = clock_mono_us() - began_us;
    }
    if (strstr(body_of(b), "\"total\" : 1000000") == NULL) {
        die("the summary does not count a million parts");
    }
    qsort(took_us, GETS, sizeof took_us[0], compare);
    (void)printf(
        "{\"name\":\"summary_get_us_p99\",\"value\":%lld,\"unit\":\"us\",\"n\":%d,\"note\":"
        "\"GET of a campaign of %d parts over HTTP, keep-alive; p50 %lld\"}\n",
        (long long)took_us[GETS * 99 / 100], GETS, PARTS, (long long)took_us[GETS / 2]);
    free(took_us);
}

static void serve(struct bench *b, const char *dir, const char *conninfo)
{
    struct err err = ERR_INIT;
    AUTO_FREE char *token_file = xasprintf("%s.token", dir);
    struct api_config cfg = {.conninfo = conninfo,
                             .token_file = token_file,
                             .defaults = {.role = "arn:aws:iam::111122223333:role/bench",
                                          .worker_image = "worker:bench"}};
    must(bridge_new(&b->bridge, &err) && api_start(&cfg, b->bridge, &b->api, &err), &err);
    AUTO_FD int fd = open(token_file, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, b->token, sizeof b->token - 1);
    if (n <= 0) {
        die("no token");
    }
    b->token[strcspn(b->token, "\n")] = '\0';
    (void)unlink(token_file);
}

/* What autovacuum and the checkpointer would do by and by, at once: the figure is of a store at
 * rest. */
static void settle(const char *conninfo)
{
    struct err err = ERR_INIT;
    struct store *s;
    must(store_open(conninfo, STORE_ADMIN, &s, &err) && store_plain(s, "VACUUM (ANALYZE)", &err) &&
             store_plain(s, "CHECKPOINT", &err),
         &err);
    store_close(s);
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    static struct bench b;
    char conninfo[PRIVATE_DB_CONNINFO_MAX], path[128];
    const char *dir = argc > 1 ? argv[1] : "build/bench/pg";
    struct store *admin;
    must(private_db_start(dir, conninfo, sizeof conninfo, &err) &&
             store_open(conninfo, STORE_ADMIN, &admin, &err) &&
             store_plain(admin, "DROP DATABASE IF EXISTS bench WITH (FORCE)", &err) &&
             store_plain(admin, "CREATE DATABASE bench", &err),
         &err);
    store_close(admin);
    AUTO_FREE char *db = xasprintf("%s dbname=bench", conninfo);
    must(migrate_run(db, NULL, &err), &err);
    serve(&b, dir, db);
    client_open(&b);
    struct buf lines = BUF_INIT(BODY_MAX);
    for (int i = 0; i < PARTS; i++) {
        buf_addf(&lines, "{\"uri\":\"s3://laion/meta/part-%07d.parquet\",\"size\":%d}\n", i,
                 100000000 + i);
    }
    insert(&b, buf_str(&lines), path);
    settle(db);
    summary(&b, path);
    buf_done(&lines);
    (void)close(b.fd);
    bridge_close(b.bridge);
    api_stop(b.api);
    bridge_free(b.bridge);
    must(private_db_stop(dir, PRIVATE_DB_FAST, &err), &err);
    return 0;
}
