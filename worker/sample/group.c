/* Hosts over TCP: see group.h. All hosts run this program on one kind of processor, so doubles go
 * as they are. */
#include "group.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json.h"
#include "job/sagemaker_container.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#define GROUP_POLL_MS  100
#define MAGIC          UINT32_C(0x44525452)
#define RETRY_MS       50
#define HOST_BYTES_MAX 256
#define CONFIG_BYTES   65536

struct hello {
    uint32_t magic;
    uint32_t rank;
    char run[65];
};
struct sum_head {
    uint32_t magic;
    uint32_t stop;
};

struct hosts_group {
    int rank, hosts;
    char names[GROUP_CHUNKS][HOST_BYTES_MAX];
    int port;
    int64_t wait_us;
    const _Atomic int *stop;
    int fds[GROUP_CHUNKS]; /* of the first host: one a host; of others: fds[0] to the first */
    bool begun;            /* from then on a stop is agreed on, not acted on alone */
};

int group_rank(const struct hosts_group *g)
{
    return g->rank;
}

int group_hosts(const struct hosts_group *g)
{
    return g->hosts;
}

bool group_computes(const struct hosts_group *g, int chunk)
{
    return chunk % g->hosts == g->rank;
}

void group_free(struct hosts_group *g)
{
    for (int i = 0; g != NULL && i < GROUP_CHUNKS; i++) {
        if (g->fds[i] >= 0) {
            (void)close(g->fds[i]);
        }
    }
    free(g);
}

static int name_cmp(const void *a, const void *b)
{
    return strcmp(a, b);
}

static bool read_hosts(struct hosts_group *g, struct err *err)
{
    AUTO_FREE char *path = sagemaker_container_path("/opt/ml/input/config/resourceconfig.json");
    AUTO_BUF struct buf text = BUF_INIT(CONFIG_BYTES);
    AUTO_JSON json_t *o = NULL;
    json_t *hosts;
    const char *me;
    g->hosts = 1;
    AUTO_FILE FILE *f = fopen(path, "re");
    if (f == NULL) {
        return true;
    }
    if (!buf_add_file(&text, f)) {
        return err_set(err, ERR_IO, "cannot read '%s'", path);
    }
    if (!json_parse(buf_str(&text), CONFIG_BYTES, &o, err) ||
        !json_get_array(o, "hosts", &hosts, err) ||
        !json_get_required_str(o, "current_host", &me, err)) {
        return err_wrap(err, "resourceconfig.json");
    }
    size_t n = json_array_size(hosts);
    if (n < 1 || n > GROUP_CHUNKS) {
        return err_set(err, ERR_INVALID, "this job has %zu hosts: train-sample runs on 1 to %d", n,
                       GROUP_CHUNKS);
    }
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(hosts, i));
        (void)snprintf(g->names[i], HOST_BYTES_MAX, "%s", name == NULL ? "" : name);
    }
    qsort(g->names, n, sizeof g->names[0], name_cmp);
    g->hosts = (int)n;
    for (g->rank = 0; g->rank < g->hosts && strcmp(g->names[g->rank], me) != 0; g->rank++) {
    }
    return g->rank < g->hosts ||
           err_set(err, ERR_INVALID, "host '%.100s' is not among the job's hosts", me);
}

/* The address of a host: DROVER_HOSTS (name=address,...) of one machine, else by its name. */
static bool address_of(const struct hosts_group *g, const char *name, struct sockaddr_in *ret,
                       struct err *err)
{
    struct str rest = str_of(getenv("DROVER_HOSTS"));
    AUTO_FREE char *text = xstrdup(name);
    while (rest.n > 0) {
        struct str value = str_split(&rest, ',');
        struct str key = str_split(&value, '=');
        if (str_eq_cstr(key, name)) {
            free(text);
            text = str_dup(value);
        }
    }
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (getaddrinfo(text, NULL, &hints, &found) != 0) {
        return err_set(err, ERR_NETWORK, "host '%.100s' has no address", name);
    }
    memcpy(ret, found->ai_addr, sizeof *ret);
    ret->sin_port = htons((uint16_t)g->port);
    freeaddrinfo(found);
    return true;
}

static bool may_wait(const struct hosts_group *g, int64_t until_us, const char *what,
                     struct err *err)
{
    if (!g->begun && *g->stop != 0) {
        return err_set(err, ERR_UNAVAILABLE, "stopped");
    }
    return clock_mono_us() < until_us || err_set(err, ERR_NETWORK, "%s", what);
}

/* Send or receive n bytes. */
static bool move(const struct hosts_group *g, int fd, void *p, size_t n, bool out, struct err *err)
{
    int64_t until_us = clock_mono_us() + g->wait_us;
    size_t done = 0;
    while (done < n) {
        struct pollfd pfd = {.fd = fd, .events = out ? POLLOUT : POLLIN};
        if (!may_wait(g, until_us, "another host of the job is silent", err)) {
            return false;
        }
        if (poll(&pfd, 1, GROUP_POLL_MS) <= 0) {
            continue;
        }
        ssize_t k = out ? send(fd, (char *)p + done, n - done, MSG_NOSIGNAL)
                        : recv(fd, (char *)p + done, n - done, 0);
        if (k == 0 || (k < 0 && errno != EAGAIN && errno != EINTR)) {
            return err_set(err, ERR_NETWORK, "another host of the job is gone");
        }
        done += k > 0 ? (size_t)k : 0;
    }
    return true;
}

static void set_up(int fd)
{
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
}

static bool take_hello(struct hosts_group *g, int fd, const char *run, struct err *err)
{
    struct hello h;
    set_up(fd);
    if (!move(g, fd, &h, sizeof h, false, err)) {
        return false;
    }
    if (h.magic != MAGIC || h.rank < 1 || h.rank >= (uint32_t)g->hosts || g->fds[h.rank] >= 0) {
        return err_set(err, ERR_NETWORK, "somebody who is no host of the job has connected");
    }
    h.run[64] = '\0';
    g->fds[h.rank] = fd;
    return strcmp(h.run, run) == 0 ||
           err_set(err, ERR_INVALID, "host '%s' has other rows or settings", g->names[h.rank]);
}

static bool accept_all(struct hosts_group *g, const char *run, struct err *err)
{
    struct sockaddr_in at;
    int on = 1;
    int64_t until_us = clock_mono_us() + g->wait_us;
    if (!address_of(g, g->names[0], &at, err)) {
        return false;
    }
    AUTO_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(fd, GROUP_CHUNKS) != 0) {
        return err_set_os(err, ERR_NETWORK, errno, "cannot listen on port %d", g->port);
    }
    for (int n = 1; n < g->hosts;) {
        struct pollfd pfd = {.fd = fd, .events = POLLIN};
        if (!may_wait(g, until_us, "not all hosts of the job have come", err)) {
            return false;
        }
        if (poll(&pfd, 1, GROUP_POLL_MS) <= 0) {
            continue;
        }
        int one = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        if (one >= 0 && !take_hello(g, one, run, err)) {
            return false;
        }
        n += one >= 0;
    }
    return true;
}

static bool connect_first(struct hosts_group *g, const char *run, struct err *err)
{
    struct sockaddr_in at;
    int64_t until_us = clock_mono_us() + g->wait_us;
    struct hello h = {.magic = MAGIC, .rank = (uint32_t)g->rank};
    (void)snprintf(h.run, sizeof h.run, "%s", run);
    while (g->fds[0] < 0) {
        struct err ignored = ERR_INIT;
        if (!may_wait(g, until_us, "the first host of the job does not answer", err)) {
            return false;
        }
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && address_of(g, g->names[0], &at, &ignored) &&
            connect(fd, (struct sockaddr *)&at, sizeof at) == 0) {
            g->fds[0] = fd;
        } else {
            if (fd >= 0) {
                (void)close(fd);
            }
            (void)poll(NULL, 0, RETRY_MS);
        }
    }
    set_up(g->fds[0]);
    return move(g, g->fds[0], &h, sizeof h, true, err);
}

bool group_open(int port, int64_t wait_us, const _Atomic int *stop, struct hosts_group **ret,
                struct err *err)
{
    struct hosts_group *g = xcalloc(1, sizeof *g);
    *g = (struct hosts_group){.port = port, .wait_us = wait_us, .stop = stop};
    for (int i = 0; i < GROUP_CHUNKS; i++) {
        g->fds[i] = -1;
    }
    if (!read_hosts(g, err)) {
        group_free(g);
        return false;
    }
    *ret = g;
    return true;
}

bool group_begin(struct hosts_group *g, const char *run, struct linear_model *m, struct err *err)
{
    bool ok = true;
    if (g->rank > 0) {
        ok = connect_first(g, run, err) && move(g, g->fds[0], m, sizeof *m, false, err);
    } else if (g->hosts > 1) {
        ok = accept_all(g, run, err);
    }
    for (int i = 1; ok && g->rank == 0 && i < g->hosts; i++) {
        ok = move(g, g->fds[i], m, sizeof *m, true, err);
    }
    g->begun = ok;
    return ok;
}

static void add(struct model_gradient *to, const struct model_gradient *g)
{
    for (int i = 0; i < MODEL_FEATURES; i++) {
        to->sum[i] += g->sum[i];
    }
    to->loss += g->loss;
}

/* The others: send the own pieces, take the sum. */
static bool sum_there(struct hosts_group *g, const struct model_gradient *chunks, bool *stop,
                      struct model_gradient *ret, struct err *err)
{
    struct sum_head head = {MAGIC, *stop};
    bool ok = move(g, g->fds[0], &head, sizeof head, true, err);
    for (int c = 0; ok && c < GROUP_CHUNKS; c++) {
        struct model_gradient copy = chunks[c];
        ok = !group_computes(g, c) || move(g, g->fds[0], &copy, sizeof copy, true, err);
    }
    ok = ok && move(g, g->fds[0], &head, sizeof head, false, err) &&
         move(g, g->fds[0], ret, sizeof *ret, false, err);
    *stop = ok && head.stop != 0;
    return ok;
}

bool group_sum(struct hosts_group *g, const struct model_gradient *chunks, bool *stop,
               struct model_gradient *ret, struct err *err)
{
    struct model_gradient all[GROUP_CHUNKS];
    struct sum_head head;
    bool any = *stop;
    if (g->rank > 0) {
        return sum_there(g, chunks, stop, ret, err);
    }
    memcpy(all, chunks, sizeof all);
    for (int i = 1; i < g->hosts; i++) {
        if (!move(g, g->fds[i], &head, sizeof head, false, err)) {
            return err_wrap(err, "host '%s'", g->names[i]);
        }
        any = any || head.stop != 0;
        for (int c = i; c < GROUP_CHUNKS; c += g->hosts) {
            if (!move(g, g->fds[i], &all[c], sizeof all[c], false, err)) {
                return err_wrap(err, "host '%s'", g->names[i]);
            }
        }
    }
    *ret = (struct model_gradient){.loss = 0};
    for (int c = 0; c < GROUP_CHUNKS; c++) {
        add(ret, &all[c]);
    }
    head = (struct sum_head){MAGIC, any};
    for (int i = 1; i < g->hosts; i++) {
        if (!move(g, g->fds[i], &head, sizeof head, true, err) ||
            !move(g, g->fds[i], ret, sizeof *ret, true, err)) {
            return err_wrap(err, "host '%s'", g->names[i]);
        }
    }
    *stop = any;
    return true;
}
