/* /proc/thread-self/schedstat: nanoseconds on a processor, nanoseconds runnable without one. */
#include "own_time.h"
#include "common/str.h"
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

static void look(struct own_time *o)
{
    char text[100];
    ssize_t n = o->fd >= 0 ? pread(o->fd, text, sizeof text, 0) : -1;
    if (n > 0) {
        struct str rest = {text, (size_t)n};
        int64_t on;
        int64_t waited;
        if (parse_i64(str_split(&rest, ' '), 0, INT64_MAX, &on, NULL) &&
            parse_i64(str_split(&rest, ' '), 0, INT64_MAX, &waited, NULL)) {
            o->worked_us = on / 1000;
            o->waited_us = waited / 1000;
            return;
        }
    }
    struct timespec ts;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    o->worked_us = (int64_t)ts.tv_sec * USEC_PER_SEC + ts.tv_nsec / 1000;
}

void own_time_init(struct own_time *o)
{
    *o = (struct own_time){.fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)};
    look(o);
}

void own_time_done(struct own_time *o)
{
    if (o->fd >= 0) {
        (void)close(o->fd);
    }
    o->fd = -1;
}

void own_time_take(struct own_time *o, int64_t *ret_worked_us, int64_t *ret_waited_us)
{
    struct own_time before = *o;
    look(o);
    *ret_worked_us = MAX(o->worked_us - before.worked_us, 0);
    *ret_waited_us = MAX(o->waited_us - before.waited_us, 0);
}
