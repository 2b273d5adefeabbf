/* Serves what train-sample left: {"caption": "..."} in, {"bytes": N} out, one object or a list.
 * One connection at a time, one request each: small, and nothing to wait for but the client, which
 * has a few seconds. */
#include "serve.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/log.h"
#include "job/job_main.h"
#include "job/sagemaker_container.h"
#include "job/settings.h"
#include "linear_model.h"
#include "worker_protocol.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#define SERVE_POLL_MS  100
#define HEAD_BYTES_MAX ((size_t)16 << 10)
#define BODY_BYTES_MAX ((size_t)1 << 20)
#define ITEMS_MAX      10000
#define CLIENT_US      (10 * USEC_PER_SEC)

struct serve_options {
    char *model;
    char *address;
    int64_t port;
};
#define PORT        8080
#define ANY_ADDRESS "0.0.0.0"
#define AT(field)   offsetof(struct serve_options, field)
static const struct setting settings[] = {
    {"model", NULL, SETTING_TEXT, "/opt/ml/model/model.json", 0, 0, AT(model), NULL,
     "what train-sample left"},
    {"address", NULL, SETTING_TEXT, ANY_ADDRESS, 0, 0, AT(address), NULL, "address to listen on"},
    {"port", NULL, SETTING_INT, "8080", 1, 65535, AT(port), NULL, "port to listen on"},
};

struct serve {
    struct serve_options o;
    struct job_main life;
    struct linear_model model;
    _Atomic int stop;
};

struct serve_request {
    struct buf text; /* head and body, as they came */
    size_t head_n;   /* 0: the head is not whole yet */
    size_t body_n;
};

static void request_done(struct serve_request *q)
{
    buf_done(&q->text);
}

static void answer(int fd, int status, struct str body)
{
    const char *word = status == 200   ? "OK"
                       : status == 400 ? "Bad Request"
                       : status == 404 ? "Not Found"
                       : status == 405 ? "Method Not Allowed"
                                       : "Payload Too Large";
    AUTO_BUF struct buf out = BUF_INIT(BODY_BYTES_MAX);
    size_t done = 0;
    buf_addf(&out,
             "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
             "Connection: close\r\n\r\n",
             status, word, body.n);
    buf_add_str(&out, body);
    int64_t until_us = clock_mono_us() + CLIENT_US;
    while (done < out.n && clock_mono_us() < until_us) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        ssize_t k = poll(&p, 1, SERVE_POLL_MS) > 0
                        ? send(fd, buf_cstr(&out) + done, out.n - done, MSG_NOSIGNAL)
                        : 0;
        if (k < 0 && errno != EAGAIN && errno != EINTR) {
            return;
        }
        done += k > 0 ? (size_t)k : 0;
    }
}

static void refuse(int fd, int status, const char *why)
{
    AUTO_BUF struct buf b = BUF_INIT(4096);
    struct json_out w;
    json_out_init(&w, &b);
    json_out_object(&w, NULL);
    json_out_str(&w, "error", why);
    json_out_end_object(&w);
    answer(fd, status, buf_str(&b));
}

static bool add_answer(const struct serve *s, const json_t *item, struct json_out *w,
                       struct err *err)
{
    const char *caption;
    struct model_row row;
    if (!json_is_object(item)) {
        return err_set(err, ERR_INVALID, "expected {\"caption\": \"...\"} or a list of them");
    }
    if (!json_get_required_str(item, "caption", &caption, err)) {
        return false;
    }
    model_row_make(str_of(caption), 1, &row);
    json_out_object(w, NULL);
    json_out_double(w, "bytes", exp2(MAX(0.0, MIN(2.0, model_predict(&s->model, &row))) * 20.0));
    json_out_end_object(w);
    return true;
}

static void invoke(const struct serve *s, int fd, struct str body)
{
    AUTO_BUF struct buf out = BUF_INIT(BODY_BYTES_MAX / 2);
    AUTO_JSON json_t *in = NULL;
    struct err err = ERR_INIT;
    struct json_out w;
    json_out_init(&w, &out);
    bool ok = json_parse(body, BODY_BYTES_MAX, &in, &err);
    if (ok && json_is_array(in)) {
        ok = json_array_size(in) <= ITEMS_MAX ||
             err_set(&err, ERR_LIMIT, "more than %d items", ITEMS_MAX);
        json_out_array(&w, NULL);
        for (size_t i = 0; ok && i < json_array_size(in); i++) {
            ok = add_answer(s, json_array_get(in, i), &w, &err);
        }
        json_out_end_array(&w);
    } else if (ok) {
        ok = add_answer(s, in, &w, &err);
    }
    if (ok) {
        answer(fd, 200, buf_str(&out));
    } else {
        refuse(fd, 400, err.message);
    }
}

/* The length of the body, by its header. False: none that can be read. */
static bool head_read(struct serve_request *q)
{
    struct str head = {q->text.p, q->head_n};
    int64_t n = 0;
    (void)str_split(&head, '\n');
    while (head.n > 0) {
        struct str value = str_split(&head, '\n');
        struct str name = str_split(&value, ':');
        if (str_ieq_cstr(name, "content-length") &&
            !parse_i64(str_trim(value), 0, INT64_MAX, &n, NULL)) {
            return false;
        }
        if (str_ieq_cstr(name, "transfer-encoding")) {
            return false;
        }
    }
    q->body_n = (size_t)n;
    return true;
}

/* Read until head and body are there. Returns 0, the status of a refusal, or -1: no answer. */
static int request_read(struct serve *s, int fd, struct serve_request *q)
{
    int64_t until_us = clock_mono_us() + CLIENT_US;
    while (q->head_n == 0 || q->text.n < q->head_n + q->body_n) {
        char piece[4096];
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (clock_mono_us() > until_us || s->stop != 0) {
            return -1;
        }
        if (poll(&p, 1, SERVE_POLL_MS) <= 0) {
            continue;
        }
        ssize_t k = recv(fd, piece, sizeof piece, 0);
        if (k == 0 || (k < 0 && errno != EAGAIN && errno != EINTR)) {
            return -1;
        }
        buf_add(&q->text, piece, k > 0 ? (size_t)k : 0);
        ptrdiff_t end = q->head_n == 0 ? str_find(buf_str(&q->text), STR("\r\n\r\n")) : -1;
        q->head_n = end >= 0 ? (size_t)end + 4 : q->head_n;
        if (end >= 0 && !head_read(q)) {
            return 400;
        }
        if ((q->head_n == 0 && q->text.n > HEAD_BYTES_MAX) || q->body_n > BODY_BYTES_MAX ||
            q->text.overflow) {
            return 413;
        }
    }
    return 0;
}

static void serve_one(struct serve *s, int fd)
{
    CLEANUP(request_done)
    struct serve_request q = {.text = BUF_INIT(HEAD_BYTES_MAX + BODY_BYTES_MAX)};
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    int status = request_read(s, fd, &q);
    if (status != 0) {
        if (status > 0) {
            refuse(fd, status, "the request cannot be read, or is larger than 1 MiB");
        }
        return;
    }
    struct str rest = buf_str(&q.text);
    struct str method = str_split(&rest, ' ');
    struct str path = str_split(&rest, ' ');
    bool ping = str_eq_cstr(path, "/ping");
    if (!ping && !str_eq_cstr(path, "/invocations")) {
        refuse(fd, 404, "there are /ping and /invocations");
    } else if (!str_eq_cstr(method, ping ? "GET" : "POST")) {
        refuse(fd, 405, ping ? "GET /ping" : "POST /invocations");
    } else if (ping) {
        answer(fd, 200, STR("{}"));
    } else {
        invoke(s, fd, (struct str){q.text.p + q.head_n, q.body_n});
    }
}

static bool listen_at(const struct serve_options *o, int *ret, struct err *err)
{
    int on = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)o->port)};
    if (inet_pton(AF_INET, o->address, &at.sin_addr) != 1) {
        return err_set(err, ERR_INVALID, "'%.60s' is no IPv4 address", o->address);
    }
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 64) != 0) {
        (void)err_set_os(err, ERR_IO, errno, "cannot listen on port %d", (int)o->port);
        (void)close(fd);
        return false;
    }
    *ret = fd;
    return true;
}

static enum job_main_end run(void *ctx, struct err *err)
{
    struct serve *s = ctx;
    AUTO_FREE char *path = sagemaker_container_path(s->o.model);
    AUTO_FD int fd = -1;
    char ignored[65];
    if (!model_load(path, &s->model, ignored, err) || !listen_at(&s->o, &fd, err)) {
        return JOB_MAIN_FAILED;
    }
    job_main_drains(&s->life);
    log_event(LOG_INFO, "serving", LF_I("port", s->o.port), LF_I("step", s->model.step));
    while (s->stop == 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int one = poll(&p, 1, SERVE_POLL_MS) > 0 ? accept4(fd, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (one >= 0) {
            serve_one(s, one);
            (void)close(one);
        }
    }
    return JOB_MAIN_DONE;
}

static void on_tick(void *ctx, int64_t asked_us)
{
    struct serve *s = ctx;
    s->stop = asked_us >= 0 ? 1 : s->stop;
}

/* drover-local runs many containers on one machine: each has an address of its own, and another
 * port when 8080 is taken. SAGEMAKER_BIND_TO_PORT is SageMaker's, for containers behind each
 * other. */
static void address_of_host(struct serve_options *o)
{
    const char *address = getenv("DROVER_HOST_ADDRESS");
    const char *port = getenv("SAGEMAKER_BIND_TO_PORT");
    if (address != NULL && strcmp(o->address, ANY_ADDRESS) == 0) {
        free(o->address);
        o->address = xstrdup(address);
    }
    if (port != NULL && o->port == PORT && !parse_i64(str_of(port), 1, 65535, &o->port, NULL)) {
        o->port = PORT;
    }
}

/* An endpoint's container has no hyperparameters. */
static bool load_options(const json_t *hyperparameters UNUSED, int argc, char *const *argv,
                         void *options, struct buf *faults)
{
    struct serve_options o = {0};
    if (!settings_load(settings, ARRAY_LEN(settings), &o, NULL, argc, argv, NULL, faults)) {
        settings_done(settings, ARRAY_LEN(settings), &o);
        return false;
    }
    address_of_host(&o);
    memcpy(options, &o, sizeof o);
    return true;
}

void serve_help(struct buf *out)
{
    settings_help(settings, ARRAY_LEN(settings), out);
}

int serve_main(int argc, char *const *argv)
{
    struct serve *s = xcalloc(1, sizeof *s);
    job_main_begin();
    if (!job_main_settings(load_options, argc, argv, &s->o)) {
        free(s);
        return WP_EXIT_USAGE;
    }
    s->life = (struct job_main){.failed_event = "serving_failed",
                                .stopped = "SIGTERM",
                                .stop_us = 20 * USEC_PER_SEC,
                                .work = run,
                                .tick = on_tick,
                                .ctx = s};
    int rc = job_main_run(&s->life);
    settings_done(settings, ARRAY_LEN(settings), &s->o);
    free(s);
    return rc;
}
