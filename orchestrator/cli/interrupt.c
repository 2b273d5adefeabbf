/* See interrupt.h. */
#include "interrupt.h"
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* Caught signals stay blocked and pending, so that polling needs no handler and no global. */
bool interrupted(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1);
}

void interrupt_catch(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
}

bool stdout_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};
    return fflush(stdout) != 0 || ferror(stdout) != 0 ||
           (poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0);
}

void pause_ms(int ms)
{
    (void)poll(NULL, 0, ms);
}
