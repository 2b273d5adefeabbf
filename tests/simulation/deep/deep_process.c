/* What the kernel tells of processes: how much CPU one took, and whether it is gone. */
#include "deep.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* What the kernel tells of a process from its state on (proc(5)); "": there is none. */
static const char *process_stat(int pid, char line[static 1024])
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    bool read = f != NULL && fgets(line, 1024, f) != NULL;
    if (f != NULL) {
        (void)fclose(f);
    }
    const char *name_end = read ? strrchr(line, ')') : NULL;
    return name_end != NULL ? name_end + 1 : "";
}

double process_cpu(int pid)
{
    char line[1024];
    unsigned long t[4] = {0};
    (void)sscanf(process_stat(pid, line),
                 " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu", &t[0], &t[1],
                 &t[2], &t[3]);
    return (double)(t[0] + t[1] + t[2] + t[3]) / (double)sysconf(_SC_CLK_TCK);
}

/* Where many processes begin and end, a number is soon given to another one: one that began after
 * the wait did is not the one that is waited for. */
static bool began_after(int pid, const struct timespec *t)
{
    char line[1024];
    unsigned long long ticks = 0;
    int64_t hz = sysconf(_SC_CLK_TCK);
    (void)sscanf(
        process_stat(pid, line),
        " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
        &ticks);
    return (int64_t)ticks >= t->tv_sec * hz + t->tv_nsec / (1000000000 / hz);
}

void process_wait_gone(int pid)
{
    struct timespec from;
    (void)clock_gettime(CLOCK_BOOTTIME, &from);
    for (int i = 1; pid > 0 && (kill(pid, 0) == 0 || errno == EPERM); i++) {
        const struct timespec pause = {.tv_nsec = 100000};
        (void)nanosleep(&pause, NULL);
        if (i % 1000 == 0 && began_after(pid, &from)) {
            return;
        }
        if (i > 300000) {
            char line[1024];
            deep_die("a server process does not end: %d%.100s", pid, process_stat(pid, line));
        }
    }
}
