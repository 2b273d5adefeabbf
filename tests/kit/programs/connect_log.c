/* Preloaded into the worker. Writes each address it connects or sends to into the file CONNECT_LOG,
 * one "ADDR PORT" per line, even when the attempt fails, and each file opened with fopen, as
 * OpenSSL opens certificates, into FILE_LOG as "file PATH". */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void add(const char *path, const char *line, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, line, n) != (ssize_t)n) {
        abort(); /* a log with gaps proves nothing */
    }
    (void)close(fd);
}

static void note(const struct sockaddr *sa)
{
    char addr[INET6_ADDRSTRLEN] = "?";
    char line[INET6_ADDRSTRLEN + 16];
    unsigned port = 0;
    const char *path = getenv("CONNECT_LOG");
    if (path == NULL || sa == NULL) {
        return;
    }
    if (sa->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, sa, sizeof in);
        port = ntohs(in.sin_port);
        (void)inet_ntop(AF_INET, &in.sin_addr, addr, sizeof addr);
    } else if (sa->sa_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, sa, sizeof in);
        port = ntohs(in.sin6_port);
        (void)inet_ntop(AF_INET6, &in.sin6_addr, addr, sizeof addr);
    } else {
        return;
    }
    int n = snprintf(line, sizeof line, "%s %u\n", addr, port);
    add(path, line, (size_t)n);
}

static FILE *open_noted(const char *fn, const char *name, const char *mode)
{
    FILE *(*real)(const char *, const char *);
    void *at = dlsym(RTLD_NEXT, fn);
    memcpy(&real, &at, sizeof real);
    const char *path = getenv("FILE_LOG");
    if (path != NULL) {
        char line[4200];
        int n = snprintf(line, sizeof line, "file %.4096s\n", name);
        add(path, line, (size_t)n);
    }
    return real(name, mode);
}

FILE *fopen(const char *name, const char *mode)
{
    return open_noted("fopen", name, mode);
}

FILE *fopen64(const char *name, const char *mode)
{
    return open_noted("fopen64", name, mode);
}

int connect(int fd, const struct sockaddr *sa, socklen_t n)
{
    int (*real)(int, const struct sockaddr *, socklen_t);
    void *at = dlsym(RTLD_NEXT, "connect");
    memcpy(&real, &at, sizeof real);
    note(sa);
    return real(fd, sa, n);
}

ssize_t sendto(int fd, const void *p, size_t n, int flags, const struct sockaddr *sa,
               socklen_t sa_n)
{
    ssize_t (*real)(int, const void *, size_t, int, const struct sockaddr *, socklen_t);
    void *at = dlsym(RTLD_NEXT, "sendto");
    memcpy(&real, &at, sizeof real);
    note(sa);
    return real(fd, p, n, flags, sa, sa_n);
}
