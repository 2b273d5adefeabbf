/* Assertions and allocation: the only two causes of an immediate exit. */
#include "common/base.h"
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define EXIT_NO_MEMORY 71 /* EX_OSERR of sysexits.h */

/* Nobody may read stderr: a process that ends does not wait for that. */
static void last_words(const char *text, size_t n)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&p, 1, 100) == 1 && (p.revents & POLLOUT) != 0) {
        (void)!write(STDERR_FILENO, text, n);
    }
}

void assert_failed(const char *cond, const char *file, int line, const char *func)
{
    char text[512];
    int n = snprintf(text, sizeof text, "assertion failed: %s at %s:%d in %s\n", cond, file, line,
                     func);
    last_words(text, MIN((size_t)MAX(n, 0), sizeof text - 1));
    abort();
}

/* Uses only write(2) and _exit: stdio may need memory. */
void out_of_memory(void)
{
    static const char line[] = "out of memory: the process ends and is to be started again\n";
    last_words(line, sizeof line - 1);
    _exit(EXIT_NO_MEMORY);
}

void *xmalloc(size_t n)
{
    void *p = malloc(n == 0 ? 1 : n);
    if (p == NULL) {
        out_of_memory();
    }
    return p;
}

void *xcalloc(size_t n, size_t size)
{
    void *p = n == 0 || size == 0 ? calloc(1, 1) : calloc(n, size);
    if (p == NULL) {
        out_of_memory();
    }
    return p;
}

void *xrealloc(void *p, size_t n)
{
    void *q = realloc(p, n == 0 ? 1 : n);
    if (q == NULL) {
        out_of_memory();
    }
    return q;
}

void *array_room(void *items, size_t n, size_t *cap, size_t size)
{
    if (n < *cap) {
        return items;
    }
    *cap = MAX((size_t)16, *cap * 2);
    return xrealloc(items, *cap * size);
}

char *xstrdup(const char *s)
{
    return xstrndup(s, strlen(s));
}

char *xstrndup(const char *s, size_t n)
{
    n = strnlen(s, n);
    char *p = xmalloc(n + 1);
    memcpy(p, s, n);
    p[n] = '\0';
    return p;
}

char *xasprintf(const char *fmt, ...)
{
    char *p = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&p, fmt, ap);
    va_end(ap);
    if (n < 0 || p == NULL) {
        out_of_memory();
    }
    return p;
}
