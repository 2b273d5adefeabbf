/* See serve.h. */
#include "serve.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/http.h"
#include "local/jobs/container.h"
#include "local/jobs/files.h"
#include "local/jobs/transfer.h"
#include "model_files.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

#define SERVE_PORT     8080 /* of the contract; another only when this machine has it taken */
#define NET_TRIES      100
#define NET_TRIES_8080 50
#define PING_EVERY_US  (50 * USEC_PER_MSEC)
#define PING_LIMIT_US  (2 * USEC_PER_SEC)
#define REST_US        (60 * USEC_PER_SEC)
#define RESTART_US     (200 * USEC_PER_MSEC)

struct fleet_server {
    struct supervisor s;
    int port;
    bool ready[HOSTS_MAX];
    usec_t restart_at[HOSTS_MAX]; /* 0: it runs */
    bool told;
};

static bool address_is_free(const char *address, int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int on = 1;
    AUTO_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && inet_pton(AF_INET, address, &at.sin_addr) == 1 &&
           setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
           bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 1) == 0;
}

/* A network whose addresses are free on this machine: other programs of it play AWS, too. */
static bool net_find(struct fleet_server *f)
{
    uint32_t from = hash_crc32(f->s.folder, strlen(f->s.folder));
    char address[20];
    for (int i = 0; i < NET_TRIES; i++) {
        bool all = true;
        f->s.seq =
            NETS_OF_JOBS + (int64_t)((from + (uint32_t)i * 7919) % (NETS_MAX - NETS_OF_JOBS));
        f->port = i < NET_TRIES_8080 ? SERVE_PORT : SERVE_PORT + i;
        for (int k = 1; all && k <= f->s.hosts_n; k++) {
            container_address(f->s.seq, k, address);
            all = address_is_free(address, f->port);
        }
        if (all) {
            return true;
        }
    }
    return false;
}

static bool folders_prepare(struct fleet_server *f, struct err *err)
{
    char path[PATH_MAX];
    char bucket[64];
    model_files_bucket(f->s.request, bucket, sizeof bucket);
    for (int i = 0; i < f->s.hosts_n; i++) {
        struct job_host *h = &f->s.hosts[i];
        h->k = i + 1;
        if (!files_path(h->ml, sizeof h->ml, err, "%s/algo-%d/ml", f->s.folder, h->k) ||
            !files_path(path, sizeof path, err, "%s/model", h->ml)) {
            return false;
        }
        files_remove_tree(h->ml);
        if (!files_mkdirs(path, err)) {
            return false;
        }
        if (transfer_denied(&f->s, bucket)) {
            return err_set(err, ERR_FORBIDDEN,
                           "Failed to download model data for container \"container_1\": access to "
                           "bucket %s is denied (403)",
                           bucket);
        }
        if (!model_files_fetch(f->s.root, f->s.request, path, err)) {
            return false;
        }
    }
    return true;
}

static void port_tell(struct fleet_server *f)
{
    char port[8];
    json_t *env = json_object_get(f->s.spec, "env");
    (void)snprintf(port, sizeof port, "%d", f->port);
    (void)json_object_set_new(env, "SAGEMAKER_BIND_TO_PORT", json_string(port));
}

static bool host_answers(const struct fleet_server *f, int k)
{
    char address[20];
    struct http_reply reply;
    struct err err = ERR_INIT;
    container_address(f->s.seq, k, address);
    AUTO_FREE char *url = xasprintf("http://%s:%d/ping", address, f->port);
    struct http_request q = {.method = "GET",
                             .url = url,
                             .reply_max = 1u << 16,
                             .connect_timeout_us = PING_LIMIT_US,
                             .timeout_us = PING_LIMIT_US};
    if (!http_fetch(&q, &reply, &err)) {
        return false;
    }
    bool ok = reply.status == 200;
    http_reply_done(&reply);
    return ok;
}

/* Ask those that have not answered yet. */
static void hosts_ping(struct fleet_server *f)
{
    int ready = 0;
    for (int i = 0; i < f->s.hosts_n; i++) {
        if (!f->ready[i] && f->s.hosts[i].pid > 0) {
            f->ready[i] = host_answers(f, i + 1);
        }
        ready += f->ready[i];
    }
    if (!f->told && ready == f->s.hosts_n) {
        char address[20];
        char text[32];
        container_address(f->s.seq, 1, address);
        *(strrchr(address, '.') + 1) = '\0';
        (void)snprintf(text, sizeof text, "%s %d", address, f->port);
        supervise_mark(&f->s, "ready", "ready", 0, text);
        f->told = true;
    }
}

/* SageMaker starts a container that ended again. */
static void hosts_restart(struct fleet_server *f)
{
    struct err err = ERR_INIT;
    usec_t now = clock_wall_us();
    for (int i = 0; i < f->s.hosts_n; i++) {
        struct job_host *h = &f->s.hosts[i];
        if (h->pid > 0) {
            continue;
        }
        if (f->restart_at[i] == 0) {
            f->restart_at[i] = now + RESTART_US;
            f->ready[i] = false;
        } else if (now >= f->restart_at[i]) {
            fd_closep(&h->log_fd);
            h->log_fd = -1;
            h->exited = false;
            f->restart_at[i] = 0;
            if (!container_spawn(&f->s, h, &err)) {
                (void)fprintf(stderr, "serve: %s\n", err.message);
            }
        }
    }
}

static bool waits(const struct fleet_server *f)
{
    for (int i = 0; i < f->s.hosts_n; i++) {
        if (!f->ready[i] || f->s.hosts[i].pid <= 0) {
            return true;
        }
    }
    return false;
}

static void hosts_end(struct fleet_server *f)
{
    usec_t until = clock_wall_us() + MIN(supervise_i64(&f->s, "stop_grace_us"), 30 * USEC_PER_SEC);
    bool left = true;
    supervise_signal(&f->s, SIGTERM);
    while (left && clock_wall_us() < until && supervise_pump(&f->s, until)) {
        left = false;
        for (int i = 0; i < f->s.hosts_n; i++) {
            left = left || f->s.hosts[i].pid > 0;
        }
    }
    supervise_signal(&f->s, SIGKILL);
}

static void serve(struct fleet_server *f)
{
    struct err err = ERR_INIT;
    if (!net_find(f)) {
        supervise_mark(&f->s, "end", "error", 0, "no network of this machine is free");
        return;
    }
    port_tell(f);
    if (!folders_prepare(f, &err)) {
        supervise_mark(&f->s, "end", "error", 0, err.message);
        return;
    }
    for (int i = 0; i < f->s.hosts_n; i++) {
        f->restart_at[i] = 1; /* due */
    }
    while (!f->s.stop) {
        hosts_restart(f);
        hosts_ping(f);
        if (!supervise_pump(&f->s, clock_wall_us() + (waits(f) ? PING_EVERY_US : REST_US))) {
            return; /* killed */
        }
    }
    hosts_end(f);
}

int serve_main(const char *folder)
{
    struct fleet_server *f = xcalloc(1, sizeof *f);
    struct err err = ERR_INIT;
    bool taken;
    int status = 0;
    if (supervise_open(&f->s, folder, &taken, &err)) {
        container_strays_kill(f->s.folder);
        if (supervise_pump(&f->s, 0) && !f->s.stop) {
            serve(f);
        }
    } else if (!taken) {
        (void)fprintf(stderr, "serve: %s\n", err.message);
        status = 1;
    }
    supervise_close(&f->s);
    free(f);
    return status;
}
