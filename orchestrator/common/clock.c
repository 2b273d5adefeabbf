/* See clock.h. */
#include "common/clock.h"

static int64_t read_clock(clockid_t id)
{
    struct timespec ts;
    int rc = clock_gettime(id, &ts);
    ASSERT(rc == 0);
    return (int64_t)ts.tv_sec * USEC_PER_SEC + ts.tv_nsec / 1000;
}

usec_t clock_wall_us(void)
{
    return read_clock(CLOCK_REALTIME);
}

int64_t clock_boot_us(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

int64_t clock_cpu_us(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

int64_t clock_mono_us(void)
{
    return read_clock(CLOCK_MONOTONIC);
}
