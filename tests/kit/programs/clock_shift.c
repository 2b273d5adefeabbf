/* Preloaded into one process: its wall clock is CLOCK_SHIFT_S seconds ahead (negative: behind) of
 * everybody else's. The clocks that only count on are left alone. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long shift_s(void)
{
    const char *s = getenv("CLOCK_SHIFT_S");
    return s != NULL ? strtol(s, NULL, 10) : 0;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
    int rc = (int)syscall(SYS_clock_gettime, id, ts);
    if (rc == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        ts->tv_sec += shift_s();
    }
    return rc;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    struct timespec ts;
    (void)zone;
    int rc = clock_gettime(CLOCK_REALTIME, &ts);
    tv->tv_sec = ts.tv_sec;
    tv->tv_usec = ts.tv_nsec / 1000;
    return rc;
}

time_t time(time_t *ret)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    if (ret != NULL) {
        *ret = ts.tv_sec;
    }
    return ts.tv_sec;
}
