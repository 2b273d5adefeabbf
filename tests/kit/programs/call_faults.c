/* Preloaded into one process: calls of one kind fail, as CALL_FAULTS says, "KIND FIRST COUNT": the
 * FIRST-th call of that kind since the start and the COUNT - 1 after it; or "KIND while PATH": all
 * of them while that file exists. Kinds:
 *   memory      malloc, calloc, realloc: ENOMEM
 *   descriptor  each call that makes a file descriptor: EMFILE
 *   disk        writing, synchronising, renaming regular files: ENOSPC, EIO; of a PostgreSQL's
 *               files only its tables (without room for its log it ends, as it should)
 *   network     connecting, sending, receiving: ECONNREFUSED, ECONNRESET
 *   thread      pthread_create: EAGAIN
 * Calls of libraries count as the program's own. CALL_FAULTS_LOG (a file) gets "hit KIND N" and the
 * callers when a call fails, and at a normal exit "calls KIND N" of each kind.
 * A site is where a call comes from: its caller, and the three innermost functions of the program
 * itself. "sites" logs "site KIND HASH" at the first call of each and lets none fail; "at PATH"
 * lets the first call of each site fail that the file names, a line "KIND HASH" each. */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { MEMORY, DESCRIPTOR, DISK, NETWORK, THREAD, KINDS };

static const char *const kind_names[] = {"memory", "descriptor", "disk", "network", "thread"};
static atomic_long calls[KINDS];
static enum kind wanted = KINDS;
static long first, count;
static char while_path[256];
static int log_fd = -1;
static bool ready;
static _Thread_local bool inside;

enum { FRAMES = 24, OWN_FRAMES = 3, MODULES = 64, SITES = 1 << 16, WANTED_SITES = 64 };
static enum { BY_NUMBER, LIST_SITES, AT_SITES } mode = BY_NUMBER;
static struct module {
    uintptr_t from, to;
} modules[MODULES]; /* the program first */
static int module_count;
static atomic_ulong sites[SITES]; /* those met, by their hash */
static struct wanted_site {
    enum kind kind;
    unsigned long site;
    atomic_bool met;
} wanted_sites[WANTED_SITES];
static int wanted_count;

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    char line[128];
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    if (log_fd >= 0 && n > 0) {
        (void)syscall(SYS_write, log_fd, line, (size_t)n);
    }
}

static int module_at(uintptr_t at)
{
    int m = 0;
    while (m < module_count && (at < modules[m].from || at >= modules[m].to)) {
        m++;
    }
    return m;
}

static int add_module(struct dl_phdr_info *info, size_t size, void *ctx)
{
    (void)size, (void)ctx;
    struct module m = {UINTPTR_MAX, 0};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD) {
            uintptr_t at = info->dlpi_addr + p->p_vaddr;
            m.from = at < m.from ? at : m.from;
            m.to = at + p->p_memsz > m.to ? at + p->p_memsz : m.to;
        }
    }
    if (module_count < MODULES) {
        modules[module_count++] = m;
    }
    return 0;
}

/* The site of a call of that kind: the same number in each run of the same programs. */
static unsigned long site_of(enum kind kind)
{
    void *callers[FRAMES];
    int n = backtrace(callers, FRAMES), own = 0;
    unsigned long ret = (unsigned long)kind + 1;
    bool called = false;
    for (int i = 0; i < n && own < OWN_FRAMES; i++) {
        uintptr_t at = (uintptr_t)callers[i];
        int m = module_at(at);
        if (m == module_at((uintptr_t)&module_at)) {
            continue;
        }
        if (called && m != 0) {
            continue;
        }
        called = true;
        own += m == 0;
        ret = (ret ^ (m < module_count ? at - modules[m].from : 0) ^ (unsigned long)m << 48) *
              0x9E3779B97F4A7C15UL;
        ret ^= ret >> 29;
    }
    return ret | 1;
}

/* Whether nobody met that site before. */
static bool new_site(unsigned long site)
{
    for (size_t i = site % SITES;; i = (i + 1) % SITES) {
        unsigned long there = 0;
        if (atomic_compare_exchange_strong(&sites[i], &there, site)) {
            return true;
        }
        if (there == site) {
            return false;
        }
    }
}

/* Whether the call is the first of a site that is to fail; or lists its site. */
static bool at_site(enum kind kind)
{
    bool ret = false, asked = mode == LIST_SITES;
    for (int i = 0; i < wanted_count; i++) {
        asked |= wanted_sites[i].kind == kind && !atomic_load(&wanted_sites[i].met);
    }
    if (!asked) {
        return false;
    }
    inside = true;
    unsigned long site = site_of(kind);
    for (int i = 0; i < wanted_count; i++) {
        struct wanted_site *w = &wanted_sites[i];
        ret |= w->kind == kind && w->site == site && !atomic_exchange(&w->met, true);
    }
    if (ret || (mode == LIST_SITES && new_site(site))) {
        say("site %s %lx\n", kind_names[kind], site);
    }
    inside = false;
    return ret;
}

/* Whether this call of that kind is one of those that fail. */
static bool fails(enum kind kind, int error)
{
    if (!ready || inside) {
        return false;
    }
    long n = atomic_fetch_add(&calls[kind], 1) + 1;
    bool at = mode != BY_NUMBER && at_site(kind);
    if (!at && kind != wanted) {
        return false;
    }
    if (while_path[0] != '\0') {
        int before = errno;
        bool full = access(while_path, F_OK) == 0;
        errno = full ? error : before;
        return full;
    }
    if (!at && (n < first || n >= first + count)) {
        return false;
    }
    inside = true;
    if ((at || n == first) && log_fd >= 0) {
        void *callers[24];
        int depth = backtrace(callers, 24);
        say("hit %s %ld\n", kind_names[kind], n);
        backtrace_symbols_fd(callers, depth, log_fd);
    }
    inside = false;
    errno = error;
    return true;
}

static enum kind kind_of(const char *name)
{
    for (int k = 0; k < KINDS; k++) {
        if (strcmp(name, kind_names[k]) == 0) {
            return (enum kind)k;
        }
    }
    return KINDS;
}

static void read_sites(const char *path)
{
    char name[16];
    unsigned long site;
    FILE *f = fopen(path, "re");
    while (f != NULL && wanted_count < WANTED_SITES && fscanf(f, "%15s %lx", name, &site) == 2) {
        wanted_sites[wanted_count].kind = kind_of(name);
        wanted_sites[wanted_count++].site = site;
    }
    if (f != NULL) {
        (void)fclose(f);
    }
}

__attribute__((constructor)) static void begin(void)
{
    char path_of_sites[256];
    const char *spec = getenv("CALL_FAULTS");
    const char *path = getenv("CALL_FAULTS_LOG");
    char name[16] = "";
    void *warm[1];
    (void)backtrace(warm, 1); /* loads what it needs before any call may fail */
    if (path != NULL) {
        log_fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                              0600);
    }
    if (spec == NULL) {
        return;
    }
    dl_iterate_phdr(add_module, NULL);
    if (strcmp(spec, "sites") == 0) {
        mode = LIST_SITES;
    } else if (sscanf(spec, "at %255s", path_of_sites) == 1) {
        mode = AT_SITES;
        read_sites(path_of_sites);
    } else if (sscanf(spec, "%15s while %255s", name, while_path) != 2 &&
               sscanf(spec, "%15s %ld %ld", name, &first, &count) != 3) {
        return;
    }
    wanted = mode == BY_NUMBER ? kind_of(name) : KINDS;
    ready = true;
}

__attribute__((destructor)) static void end(void)
{
    for (int k = 0; ready && k < KINDS; k++) {
        say("calls %s %ld\n", kind_names[k], atomic_load(&calls[k]));
    }
}

/* The next definition of a function. Not cached: dlsym is quick, and these calls are few. */
#define REAL(name) ((__typeof__(&name))real(#name))
static void *real(const char *name)
{
    bool was = inside;
    inside = true;
    void *at = dlsym(RTLD_NEXT, name);
    inside = was;
    if (at == NULL) {
        abort();
    }
    return at;
}

static bool regular(int fd)
{
    struct stat st;
    int before = errno;
    bool ret = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && fd != log_fd;
    errno = before;
    return ret;
}

void *malloc(size_t n)
{
    return fails(MEMORY, ENOMEM) ? NULL : __libc_malloc(n);
}
void *calloc(size_t n, size_t size)
{
    return fails(MEMORY, ENOMEM) ? NULL : __libc_calloc(n, size);
}
void *realloc(void *p, size_t n)
{
    return n != 0 && fails(MEMORY, ENOMEM) ? NULL : __libc_realloc(p, n);
}

#define MODE_OF(flags, mode)                                                                       \
    do {                                                                                           \
        if (((flags) & (O_CREAT | O_TMPFILE)) != 0) {                                              \
            va_list ap;                                                                            \
            va_start(ap, flags);                                                                   \
            (mode) = va_arg(ap, mode_t);                                                           \
            va_end(ap);                                                                            \
        }                                                                                          \
    } while (0)
int open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    MODE_OF(flags, mode);
    return fails(DESCRIPTOR, EMFILE) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
int open64(const char *path, int flags, ...)
{
    mode_t mode = 0;
    MODE_OF(flags, mode);
    return fails(DESCRIPTOR, EMFILE) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
int openat(int dir, const char *path, int flags, ...)
{
    mode_t mode = 0;
    MODE_OF(flags, mode);
    return fails(DESCRIPTOR, EMFILE) ? -1 : (int)syscall(SYS_openat, dir, path, flags, mode);
}
FILE *fopen(const char *path, const char *mode)
{
    return fails(DESCRIPTOR, EMFILE) ? NULL : REAL(fopen)(path, mode);
}
int socket(int domain, int type, int protocol)
{
    return fails(DESCRIPTOR, EMFILE) ? -1 : (int)syscall(SYS_socket, domain, type, protocol);
}
int accept(int fd, struct sockaddr *restrict sa, socklen_t *restrict n)
{
    return fails(DESCRIPTOR, EMFILE) ? -1 : REAL(accept)(fd, sa, n);
}
int accept4(int fd, struct sockaddr *restrict sa, socklen_t *restrict n, int flags)
{
    return fails(DESCRIPTOR, EMFILE) ? -1 : REAL(accept4)(fd, sa, n, flags);
}
int pipe(int fds[2])
{
    return fails(DESCRIPTOR, EMFILE) ? -1 : (int)syscall(SYS_pipe2, fds, 0);
}
int pipe2(int fds[2], int flags)
{
    return fails(DESCRIPTOR, EMFILE) ? -1 : (int)syscall(SYS_pipe2, fds, flags);
}
int socketpair(int domain, int type, int protocol, int fds[2])
{
    return fails(DESCRIPTOR, EMFILE) ? -1
                                     : (int)syscall(SYS_socketpair, domain, type, protocol, fds);
}
int eventfd(unsigned n, int flags)
{
    return fails(DESCRIPTOR, EMFILE) ? -1 : (int)syscall(SYS_eventfd2, n, flags);
}
int timerfd_create(int clock, int flags)
{
    return fails(DESCRIPTOR, EMFILE) ? -1 : (int)syscall(SYS_timerfd_create, clock, flags);
}
int epoll_create1(int flags)
{
    return fails(DESCRIPTOR, EMFILE) ? -1 : (int)syscall(SYS_epoll_create1, flags);
}

ssize_t write(int fd, const void *data, size_t n)
{
    return regular(fd) && fails(DISK, ENOSPC) ? -1 : REAL(write)(fd, data, n);
}
ssize_t writev(int fd, const struct iovec *parts, int n)
{
    return regular(fd) && fails(DISK, ENOSPC) ? -1 : REAL(writev)(fd, parts, n);
}
/* Whether the file belongs to one of a PostgreSQL's tables. */
static bool of_table(int fd)
{
    char link[64], path[512];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    return strstr(path, "/base/") != NULL;
}
ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
    return ready && of_table(fd) && fails(DISK, ENOSPC) ? -1 : REAL(pwrite)(fd, data, n, at);
}
int posix_fallocate(int fd, off_t at, off_t n)
{
    return ready && of_table(fd) && fails(DISK, ENOSPC) ? ENOSPC : REAL(posix_fallocate)(fd, at, n);
}
int fsync(int fd)
{
    return fails(DISK, EIO) ? -1 : REAL(fsync)(fd);
}
int rename(const char *from, const char *to)
{
    return fails(DISK, EIO) ? -1 : REAL(rename)(from, to);
}

int connect(int fd, const struct sockaddr *sa, socklen_t n)
{
    return fails(NETWORK, ECONNREFUSED) ? -1 : REAL(connect)(fd, sa, n);
}
/* A connection that was reset is over for both ends. */
static bool reset(int fd)
{
    bool ret = fails(NETWORK, ECONNRESET);
    if (ret) {
        (void)shutdown(fd, SHUT_RDWR);
        errno = ECONNRESET;
    }
    return ret;
}
ssize_t send(int fd, const void *data, size_t n, int flags)
{
    return reset(fd) ? -1 : REAL(send)(fd, data, n, flags);
}
ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
    return reset(fd) ? -1 : REAL(sendmsg)(fd, m, flags);
}
ssize_t recv(int fd, void *data, size_t n, int flags)
{
    return reset(fd) ? -1 : REAL(recv)(fd, data, n, flags);
}

int pthread_create(pthread_t *restrict ret, const pthread_attr_t *restrict attr,
                   void *(*run)(void *), void *restrict ctx)
{
    return fails(THREAD, EAGAIN) ? EAGAIN : REAL(pthread_create)(ret, attr, run, ctx);
}
