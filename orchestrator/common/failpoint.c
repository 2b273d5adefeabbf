/* Failpoints: see failpoint.h. Empty unless compiled with -DFAILPOINTS. */
#include "common/failpoint.h"
#ifdef FAILPOINTS
#include "common/str.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define FAILPOINTS_MAX 32  /* entries of DROVER_FAILPOINT */
#define SEEN_MAX       512 /* names written to DROVER_FAILPOINT_LIST */

enum failpoint_action { FAILPOINT_KILL, FAILPOINT_PAUSE, FAILPOINT_ERROR };
struct failpoint {
    char name[64];
    enum failpoint_action action;
    int64_t skip;
    int64_t times; /* remaining activations; 1 by default */
};
static struct {
    pthread_mutex_t lock;
    bool ready;
    struct failpoint at[FAILPOINTS_MAX];
    size_t n;
    char seen[SEEN_MAX][64];
    size_t seen_n;
} failpoints = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Ends the process: a misspelt entry would let a test pass without testing anything. */
NORETURN static void refuse(struct str entry)
{
    (void)fprintf(stderr, "DROVER_FAILPOINT: cannot use '" STR_FMT "'\n", STR_ARG(entry));
    _exit(2);
}

static void read_entry(struct str entry)
{
    struct str rest = entry;
    struct str name = str_split(&rest, ':');
    struct str action = str_split(&rest, ':');
    struct failpoint f = {.times = 1};
    if (failpoints.n == FAILPOINTS_MAX || name.n == 0 || name.n >= sizeof f.name) {
        refuse(entry);
    }
    memcpy(f.name, name.p, name.n);
    if (str_eq_cstr(action, "kill")) {
        f.action = FAILPOINT_KILL;
    } else if (str_eq_cstr(action, "pause")) {
        f.action = FAILPOINT_PAUSE;
    } else if (str_eq_cstr(action, "error")) {
        f.action = FAILPOINT_ERROR;
    } else {
        refuse(entry);
    }
    struct str skip = str_split(&rest, ':');
    if ((skip.n > 0 && !parse_i64(skip, 0, INT32_MAX, &f.skip, NULL)) ||
        (rest.n > 0 && !parse_i64(rest, 1, INT32_MAX, &f.times, NULL))) {
        refuse(entry);
    }
    failpoints.at[failpoints.n++] = f;
}

static void read_environment(void)
{
    struct str all = str_of(getenv("DROVER_FAILPOINT"));
    while (all.n > 0) {
        struct str entry = str_trim(str_split(&all, ','));
        if (entry.n > 0) {
            read_entry(entry);
        }
    }
    failpoints.ready = true;
}

static void note_passed(const char *name)
{
    const char *file = getenv("DROVER_FAILPOINT_LIST");
    if (file == NULL || file[0] == '\0') {
        return;
    }
    for (size_t i = 0; i < failpoints.seen_n; i++) {
        if (strcmp(failpoints.seen[i], name) == 0) {
            return;
        }
    }
    ASSERT(failpoints.seen_n < SEEN_MAX);
    (void)snprintf(failpoints.seen[failpoints.seen_n++], sizeof failpoints.seen[0], "%s", name);
    int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
        return;
    }
    char line[80];
    int n = snprintf(line, sizeof line, "%s\n", name);
    (void)!write(fd, line, (size_t)n); /* one write: several processes share the file */
    (void)close(fd);
}

bool failpoint_hit(const char *name)
{
    bool act = false;
    enum failpoint_action action = FAILPOINT_ERROR;
    ASSERT(strlen(name) < sizeof failpoints.seen[0]);
    (void)pthread_mutex_lock(&failpoints.lock);
    if (!failpoints.ready) {
        read_environment();
    }
    note_passed(name);
    for (size_t i = 0; i < failpoints.n && !act; i++) {
        struct failpoint *f = &failpoints.at[i];
        if (strcmp(f->name, name) != 0) {
            continue;
        }
        if (f->skip > 0) {
            f->skip--;
            continue;
        }
        if (f->times == 0) {
            continue;
        }
        f->times--;
        act = true;
        action = f->action;
        (void)fprintf(stderr, "failpoint_hit %s\n", name);
    }
    (void)pthread_mutex_unlock(&failpoints.lock);
    if (!act) {
        return false;
    }
    switch (action) {
    case FAILPOINT_KILL:
        (void)raise(SIGKILL);
        return true;
    case FAILPOINT_PAUSE:
        (void)raise(SIGSTOP);
        return false;
    case FAILPOINT_ERROR:
        return true;
    }
    return false;
}
#endif
