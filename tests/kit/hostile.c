/* See hostile.h. */
#include "hostile.h"
#include "common/http.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

void hostile_start(struct hostile *h)
{
    int in[2], out[2];
    ASSERT(pipe2(in, O_CLOEXEC) == 0);
    ASSERT(pipe2(out, O_CLOEXEC) == 0);
    posix_spawn_file_actions_t fa;
    ASSERT(posix_spawn_file_actions_init(&fa) == 0);
    ASSERT(posix_spawn_file_actions_adddup2(&fa, in[0], 0) == 0);
    ASSERT(posix_spawn_file_actions_adddup2(&fa, out[1], 1) == 0);
    char name[] = "python3", script[] = "tests/kit/programs/hostile_server.py";
    char *argv[] = {name, script, NULL};
    pid_t pid;
    ASSERT(posix_spawnp(&pid, name, &fa, NULL, argv, environ) == 0);
    (void)posix_spawn_file_actions_destroy(&fa);
    (void)close(in[0]);
    (void)close(out[1]);
    FILE *f = fdopen(out[0], "r");
    ASSERT(f != NULL);
    *h = (struct hostile){.pid = pid, .stdin_fd = in[1]};
    char line[64] = "";
    ASSERT(fgets(line, sizeof line, f) != NULL);
    ASSERT(sscanf(line, "port %d", &h->port) == 1);
    (void)fclose(f);
}

void hostile_stop(struct hostile *h)
{
    (void)close(h->stdin_fd);
    (void)waitpid(h->pid, NULL, 0);
}

char *hostile_url(const struct hostile *h, const char *path)
{
    return xasprintf("http://127.0.0.1:%d%s", h->port, path);
}

int hostile_count(const struct hostile *h, const char *method_and_path)
{
    struct buf path = BUF_INIT(1024);
    buf_add_cstr(&path, "/count?");
    str_url_encode(&path, str_of(method_and_path), false);
    char *url = hostile_url(h, buf_cstr(&path));
    struct http_request q = {.method = "GET", .url = url, .reply_max = 64};
    struct http_reply r;
    ASSERT(http_fetch(&q, &r, NULL));
    int64_t n = -1;
    ASSERT(parse_i64(buf_str(&r.body), 0, 1000000, &n, NULL));
    http_reply_done(&r);
    buf_done(&path);
    free(url);
    return (int)n;
}

int hostile_closed_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT(fd >= 0);
    ASSERT(bind(fd, (struct sockaddr *)&a, n) == 0); /* bound, never listening */
    ASSERT(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
    (void)close(fd);
    return ntohs(a.sin_port);
}
