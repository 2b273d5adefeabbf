/* The small process above one job. It runs the job alone from download to upload, so the job
 * continues while drover-local is dead. It reports by marks: files
 * ROOT/state/marks/<name>.{train,upload,end}, each written atomically. `end` is the exit record:
 * {"at":us,"outcome":O,"exit_code":N,"text":"failure file, or the reason"} where O is exit,
 * stopped, max_runtime, max_wait, interrupted, error or lost. */
#pragma once
#include "common/json.h"
#include "common/units.h"
#include <limits.h>
#include <sys/types.h>

#define HOSTS_MAX 256
/* Networks 127.64.1 to 127.191.250 are those of jobs, from there to 127.223.250 of endpoints. */
#define NETS_OF_JOBS 32000
#define NETS_MAX     40000

struct job_host {
    int k;             /* algo-k, from 1 */
    char ml[PATH_MAX]; /* stands for /opt/ml */
    pid_t pid;         /* 0: not running */
    int pipe_fd;       /* its output; -1 when closed */
    int log_fd;
    int64_t log_bytes;
    bool midline;
    bool exited;
    int exit_code; /* 128 + signal when killed by one */
};
struct supervisor {
    char folder[PATH_MAX];
    json_t *spec;
    const char *name; /* of the spec, as all below */
    const char *root;
    const char *region;
    const json_t *request;
    int64_t seq;
    int hosts_n;
    struct job_host *hosts; /* hosts[hosts_n] */
    int inotify_fd;         /* -1: none was to be had, it looks every 200 ms */
    int signal_fd;
    struct feed_plan *plans; /* plans[plans_n], of the Pipe channels */
    size_t plans_n;
    pid_t *feeders;   /* see feed.c; NULL: not started */
    bool feeder_lost; /* one ended by itself */
    json_t *synced;   /* files equal to their objects; see checkpoints.c */
    bool stop;        /* asked to end */
    usec_t stop_at;
};

/* `drover-local supervise FOLDER`; the exit status of the process. */
int supervise_main(const char *folder);
/* Handle events until `until` (wall clock) or until something has happened. False: asked to end
 * without a record. */
bool supervise_pump(struct supervisor *s, usec_t until) MUST_CHECK;
/* Take the folder's lock, read its spec, watch it. False: *ret_taken says whether another process
 * has the lock, else err. The lock is held until the process ends. */
bool supervise_open(struct supervisor *s, const char *folder, bool *ret_taken,
                    struct err *err) MUST_CHECK;
void supervise_close(struct supervisor *s);
/* Report to drover-local: ROOT/state/marks/<name>.<kind>. */
void supervise_mark(const struct supervisor *s, const char *kind, const char *outcome, int code,
                    const char *text);
/* As docker does: TERM goes to each host's first process, KILL to all of them. */
void supervise_signal(const struct supervisor *s, int signo);
/* Member of the spec. */
int64_t supervise_i64(const struct supervisor *s, const char *key);
