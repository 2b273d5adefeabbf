/* Reads /proc: smaps_rollup for the memory of a process, task/PID/children for its children. */
#include "memory.h"
#include "common/cleanup.h"
#include "common/str.h"
#include <stdio.h>

#define DEPTH_MAX 4 /* depth of the process tree; ours has three levels */

/* The number after "Name:" in such a file, in kB; -1 when it is absent. */
static int64_t kilobytes(const char *path, const char *name)
{
    AUTO_FILE FILE *f = fopen(path, "re");
    char line[256];
    size_t n = strlen(name);
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, name, n) == 0 && line[n] == ':') {
            struct str v = str_trim(str_of(line + n + 1));
            int64_t kb;
            v.n = strcspn(v.p, " \n");
            return parse_i64(v, 0, INT64_MAX / 1024, &kb, NULL) ? kb : -1;
        }
    }
    return -1;
}

static int64_t tree(int64_t pid, int depth)
{
    char path[96];
    (void)snprintf(path, sizeof path, "/proc/%lld/smaps_rollup", (long long)pid);
    int64_t kb = kilobytes(path, "Pss");
    if (kb < 0) {
        (void)snprintf(path, sizeof path, "/proc/%lld/status", (long long)pid);
        kb = kilobytes(path, "VmRSS");
    }
    int64_t sum = MAX(kb, 0) * 1024;
    (void)snprintf(path, sizeof path, "/proc/%lld/task/%lld/children", (long long)pid,
                   (long long)pid);
    AUTO_FILE FILE *f = depth < DEPTH_MAX ? fopen(path, "re") : NULL;
    long long child;
    while (f != NULL && fscanf(f, "%lld", &child) == 1) {
        sum += tree(child, depth + 1);
    }
    return sum;
}

int64_t memory_of_all(void)
{
    return tree(getpid(), 1);
}
