/* Limits and the system call filter (libseccomp). A forbidden call kills the process: one image is
 * lost, and the parent starts a new process. */
#include "sandbox.h"
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static bool filter(void)
{
    static const int calls[] = {
        SCMP_SYS(read),         SCMP_SYS(write),
        SCMP_SYS(recvfrom),     SCMP_SYS(sendto),
        SCMP_SYS(close),        SCMP_SYS(brk),
        SCMP_SYS(mmap),         SCMP_SYS(munmap),
        SCMP_SYS(mremap),       SCMP_SYS(madvise),
        SCMP_SYS(mprotect),     SCMP_SYS(futex),
        SCMP_SYS(exit),         SCMP_SYS(exit_group),
        SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigprocmask),
        SCMP_SYS(rt_sigaction), SCMP_SYS(clock_gettime),
        SCMP_SYS(gettimeofday), SCMP_SYS(getrusage),
        SCMP_SYS(getrandom),    SCMP_SYS(getpid),
        SCMP_SYS(gettid),       SCMP_SYS(restart_syscall),
        SCMP_SYS(sched_yield),  SCMP_SYS(sched_getaffinity),
    };
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
    bool ok = ctx != NULL;
    for (size_t i = 0; ok && i < ARRAY_LEN(calls); i++) {
        ok = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, calls[i], 0) == 0;
    }
    /* Allow abort() to signal this process and each picture to set its time limit; no other process
     * and no other limit. */
    ok = ok &&
         seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                          SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid())) == 0 &&
         seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 2, SCMP_A0(SCMP_CMP_EQ, 0),
                          SCMP_A1(SCMP_CMP_EQ, RLIMIT_CPU)) == 0;
    if (ok) {
        /* A kernel or container without seccomp leaves the limits and the process boundary. */
        (void)seccomp_load(ctx);
    }
    if (ctx != NULL) {
        seccomp_release(ctx);
    }
    return ok;
}

bool sandbox_enter(uint64_t memory_max)
{
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGINT, SIG_IGN);
    struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_CORE, &none) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return false;
    }
    if (SANITIZED) {
        return true;
    }
    struct rlimit memory = {memory_max, memory_max};
    return setrlimit(RLIMIT_AS, &memory) == 0 && filter();
}

void sandbox_cpu_seconds(unsigned seconds)
{
    struct rusage u;
    struct rlimit r;
    if (getrusage(RUSAGE_SELF, &u) != 0 || getrlimit(RLIMIT_CPU, &r) != 0) {
        return;
    }
    rlim_t used = (rlim_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1;
    r.rlim_cur = MIN(r.rlim_max, used + seconds);
    (void)setrlimit(RLIMIT_CPU, &r);
}
