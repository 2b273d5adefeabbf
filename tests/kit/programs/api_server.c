/* The API alone, for tests: the real server over a real database, with a bridge that lists a folder
 * instead of S3 (s3://bucket/key is DIR/bucket/key), answers a fixed log and repeats what a model
 * is asked. Tests write the leader's rows. `api_server CONNINFO TOKEN_FILE S3_DIR` prints its port
 * and ends when its stdin does. */
#include "api/server/server.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "store/pg/migrate.h"
#include <fnmatch.h>
#include <glob.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void list(struct bridge *b, const struct bridge_question *q, const char *dir)
{
    struct err err = ERR_INIT;
    struct bridge_reply reply = {0};
    if (strncmp(q->uri, "s3://denied/", 12) == 0) {
        (void)err_set(&err, ERR_FORBIDDEN, "cannot list '%s': AccessDenied: Access Denied", q->uri);
        err.http_status = 403;
        bridge_refuse(b, q->id, &err);
        return;
    }
    AUTO_FREE char *pattern = xasprintf("%s/%s", dir, q->uri + 5);
    glob_t g;
    if (glob(pattern, 0, NULL, &g) == 0) {
        for (size_t i = 0; i < g.gl_pathc; i++) {
            struct stat st;
            AUTO_FREE char *uri = xasprintf("s3:/%s", g.gl_pathv[i] + strlen(dir));
            ASSERT(stat(g.gl_pathv[i], &st) == 0);
            ASSERT(bridge_listing_add(&reply.listing, str_of(uri), st.st_size));
        }
        globfree(&g);
    }
    bridge_answer(b, q->id, &reply);
}

static void tail(struct bridge *b, const struct bridge_question *q)
{
    struct bridge_reply reply = {0};
    buf_init(&reply.json, 4096);
    buf_addf(&reply.json,
             "{\"lines\":[{\"time\":\"2026-01-01T00:00:00Z\",\"host\":\"algo-1\",\"text\":\"log of "
             "%s\"},{\"time\":\"2026-01-01T00:00:01Z\",\"host\":\"algo-1\",\"text\":"
             "\"{\\\"ts\\\":\\\"x\\\",\\\"level\\\":\\\"error\\\",\\\"event\\\":\\\"shard_lost\\\","
             "\\\"shard\\\":7,"
             "\\\"why\\\":\\\"no room\\\"}\"}],\"next\":\"n1\"}",
             q->job);
    bridge_answer(b, q->id, &reply);
}

/* A model that says what it was asked, and has no answer to "no". */
static void invoke(struct bridge *b, const struct bridge_question *q)
{
    struct bridge_reply reply = {0};
    struct err err = ERR_INIT;
    if (str_eq_cstr(q->body, "no")) {
        (void)err_set(&err, ERR_MODEL, "the model answered with 400: no");
        bridge_refuse(b, q->id, &err);
        return;
    }
    buf_init(&reply.json, 4 * 1024 * 1024);
    buf_addf(&reply.json, "\"%s %s ", q->endpoint, q->content_type);
    buf_add_str(&reply.json, q->body);
    buf_add_cstr(&reply.json, "\"");
    (void)snprintf(reply.content_type, sizeof reply.content_type, "%s", q->content_type);
    bridge_answer(b, q->id, &reply);
}

/* A file below DIR in place of an object. */
static void put(struct bridge *b, const struct bridge_question *q, const char *dir)
{
    struct bridge_reply reply = {0};
    AUTO_FREE char *path = xasprintf("%s/%s", dir, q->uri + 5);
    AUTO_FREE char *bytes = xmalloc((size_t)q->size);
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    ASSERT(pread(q->fd, bytes, (size_t)q->size, 0) == q->size);
    AUTO_FILE FILE *f = fopen(path, "we");
    ASSERT(f != NULL && fwrite(bytes, 1, (size_t)q->size, f) == (size_t)q->size);
    bridge_answer(b, q->id, &reply);
}

static void delete (struct bridge *b, const struct bridge_question *q, const char *dir)
{
    struct bridge_reply reply = {0};
    AUTO_FREE char *path = xasprintf("%s/%s", dir, q->uri + 5);
    (void)unlink(path);
    bridge_answer(b, q->id, &reply);
}

static void identity(struct bridge *b, const struct bridge_question *q)
{
    struct bridge_reply reply = {0};
    buf_init(&reply.json, 256);
    buf_add_cstr(&reply.json, "{\"account\":\"111122223333\","
                              "\"arn\":\"arn:aws:iam::111122223333:user/test\","
                              "\"skew_seconds\":0}");
    bridge_answer(b, q->id, &reply);
}

/* AWS takes it, and somebody there looks at it. */
static void quota(struct bridge *b, const struct bridge_question *q)
{
    struct bridge_reply reply = {0};
    buf_init(&reply.json, 256);
    buf_addf(&reply.json, "{\"id\":\"%032llx\",\"status\":\"PENDING\"}", (long long)q->id);
    bridge_answer(b, q->id, &reply);
}

static void serve(struct bridge *b, const char *dir)
{
    struct bridge_question q;
    struct pollfd p[2] = {{.fd = bridge_fd(b), .events = POLLIN},
                          {.fd = STDIN_FILENO, .events = POLLIN}};
    while (poll(p, 2, -1) >= 0 && p[1].revents == 0) {
        while (bridge_take(b, &q)) {
            if (q.kind == BRIDGE_S3_LIST) {
                list(b, &q, dir);
            } else if (q.kind == BRIDGE_INVOKE) {
                invoke(b, &q);
            } else if (q.kind == BRIDGE_S3_PUT) {
                put(b, &q, dir);
            } else if (q.kind == BRIDGE_S3_DELETE) {
                delete (b, &q, dir);
            } else if (q.kind == BRIDGE_IDENTITY) {
                identity(b, &q);
            } else if (q.kind == BRIDGE_IMAGE) { /* as a registry that does not tell */
                struct err err = ERR_INIT;
                (void)err_set(&err, ERR_AWS, "BatchGetImage: AccessDeniedException");
                bridge_refuse(b, q.id, &err);
            } else if (q.kind == BRIDGE_SUBNETS) {
                struct err err = ERR_INIT;
                (void)err_set(&err, ERR_AWS, "DescribeSubnets: UnauthorizedOperation");
                bridge_refuse(b, q.id, &err);
            } else if (q.kind == BRIDGE_QUOTA) {
                quota(b, &q);
            } else {
                tail(b, &q);
            }
        }
    }
}

/* A number from the environment; 0 when it is not set. */
static long env_number(const char *name)
{
    const char *v = getenv(name);
    return v != NULL ? strtol(v, NULL, 10) : 0;
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct bridge *b = NULL;
    struct api *a = NULL;
    static struct api_status status;
    if (argc < 4) {
        return 2;
    }
    struct api_config cfg = {
        .conninfo = argv[1],
        .mail = {.url = "smtp://127.0.0.1:1", .from = "drover@example.com", .ca_file = ""},
        .token_file = argv[2],
        .status = &status,
        .version = "test",
        .rate_per_s = env_number("API_RATE"),
        .failures_forget_us = env_number("API_FORGET_SECONDS") * USEC_PER_SEC,
        .connections = (int)env_number("API_CONNECTIONS"),
        .bodies_max = env_number("API_BODIES_MAX"),
        .spooled_max = env_number("API_SPOOLED_MAX"),
        .body_us = env_number("API_BODY_SECONDS") * USEC_PER_SEC,
        .streams_per_address = (int)env_number("API_STREAMS_PER_ADDRESS"),
        .trusted_proxies = getenv("API_TRUSTED_PROXIES"),
        .defaults = {.role = "arn:aws:iam::111122223333:role/test",
                     .worker_image = "worker:test",
                     .bucket = "s3://acme",
                     .region = "us-east-1"}};
    atomic_store(&status.db_ok, true);
    atomic_store(&status.creates_per_s_u, env_number("API_CREATES_PER_S") * 1000000);
    if (!migrate_run(argv[1], NULL, &err) || !bridge_new(&b, &err) ||
        !api_start(&cfg, b, &a, &err)) {
        (void)fprintf(stderr, "api_server: %s\n", err.message);
        return 1;
    }
    (void)printf("%u\n", api_port(a));
    (void)fflush(stdout);
    serve(b, argv[3]);
    bridge_close(b);
    api_stop(a);
    bridge_free(b);
    return 0;
}
