/* The deep simulation's program: one private PostgreSQL, a database a worker, a process for a few
 * seeds.
 *
 *     deep [--first N] [--seeds N] [--jobs N] [--twice N] [--tell] [--until-wrong]
 *          [--dir DIR]: of the cluster, which stays there and is used again
 *          [--cells N]: which of the operation table nobody has met; red below N of them
 *          [--with MOVE,...]: only worlds that have them all (deep_swarm.c names them)
 *          [--large]: campaigns of 20 to 40 parts, no pipelines; else most have 3 to 14
 *     deep --days N --clock CLOCK_SHIFT_SO: each seed is N days of operation
 *
 * Prints TAP; a seed that breaks a promise is named with the promise and how to replay it. */
#include "common/log.h"
#include "deep_cluster.h"
#include "deep_verbs.h"
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define REAL_SECONDS_MAX 120
#define CALM_MAX_US      (96 * HOUR)
#define WORKERS_MAX      16
#define SEEDS_A_PROCESS  100
#define LOOKS            3 /* of the judge, before the calm */

struct options {
    uint64_t first, seeds, twice; /* so many of the first ones run twice */
    int jobs, days;
    bool tell, until_wrong, large;
    int cells;                      /* -1: none is told */
    const char *dir, *with, *clock; /* with: only worlds that have such; NULL: all */
};
struct result {
    uint64_t seed, hash;
    bool wrong;
    char verdict[512];
    bool late;
    int64_t campaigns, tasks, jobs, lustres, endpoints, crashes, cuts, takeovers, verbs, statements,
        virtual_s, poisons, listings, lies, restores;
    struct verb_cells cells;
};

static void look(void *ctx, int64_t arg)
{
    (void)ctx;
    judge_now();
    judge_shown(true);
    if (arg < LOOKS - 1) {
        event_at(deep->now_us + deep->calm_us / LOOKS, look, NULL, arg + 1);
    }
}

static void begin_calm(void)
{
    deep->calm = true;
    deep->db_down_until_us = 0;
    aws_makes_room();
    lies_disturbed();
    trace("the calm begins");
    people_care();
    poison_calm();
    figures_calm();
    locks_calm();
}

static void world_close(void)
{
    locks_end();
    secrets_end();
    store_world_close();
    procs_free();
    for (int i = 0; i < deep->campaigns_n; i++) {
        free(deep->campaigns[i].yaml);
    }
    poison_end();
    figures_end();
    free(deep->jobs);
    free(deep->lustres);
    free(deep->hosted);
    free(deep->heap);
}

static void world_begin(uint64_t seed, const char *conninfo, const struct options *o)
{
    deep = xcalloc(1, sizeof *deep);
    deep->tell = o->tell;
    deep->days = o->days;
    deep->large = o->large;
    deep->hash = 14695981039346656037u;
    swarm_draw(deep, seed);
    if (deep->days > 0) {
        days_draw(deep);
    }
    clocks_start();
    store_world_open(conninfo);
    store_world_reset();
    clocks_database_start();
    aws_world_init();
    restores_start();
    listing_draw();
    silence_draw();
    lies_draw();
    outputs_draw();
    rates_draw();
    people_start();
    crowds_start();
    verbs_start();
    seldom_start();
    faults_start();
    poison_start();
    figures_start();
    locks_start();
    secrets_start();
    shown_start();
    if (deep->days > 0) {
        days_start();
    }
    event_at(deep->calm_us / LOOKS, look, NULL, 0);
}

static void run_world(uint64_t seed, const char *conninfo, const struct options *o,
                      struct result *ret)
{
    world_begin(seed, conninfo, o);
    while (!deep->wrong && deep->now_us < deep->calm_us && event_next()) {
    }
    if (!deep->wrong) {
        begin_calm();
    }
    for (int64_t next_us = 0;
         !deep->wrong && deep->now_us < deep->calm_us + CALM_MAX_US && event_next();) {
        if (deep->now_us >= next_us) {
            next_us = deep->now_us + 2 * MINUTE;
            if (!figures_keep(0) && judge_over()) {
                break;
            }
        }
    }
    if (!deep->wrong) {
        judge_end();
        judge_shown(true);
        secrets_judge();
    }
    if (!deep->wrong) {
        seldom_end();
    }
    if (deep->days > 0 && !deep->wrong) {
        days_judge();
    }
    trace("the end");
    int64_t endpoints_n = 0;
    for (size_t i = 0; i < deep->hosted_n; i++) {
        endpoints_n += deep->hosted[i].kind == HOSTING_ENDPOINT;
    }
    world_close();
    *ret = (struct result){
        .seed = seed,
        .hash = deep->hash,
        .wrong = deep->wrong,
        .campaigns = deep->campaigns_n,
        .jobs = deep->accepted,
        .lustres = (int64_t)deep->lustres_n,
        .endpoints = endpoints_n,
        .crashes = deep->crashes,
        .cuts = deep->cuts,
        .verbs = deep->verbs,
        .poisons = deep->poisons_n,
        .listings = deep->listings_n,
        .lies = deep->lies_n,
        .restores = deep->restores_n,
        .statements = deep->statements,
        .virtual_s = deep->now_us / SEC,
        .tasks = sql_i64(0, "SELECT coalesce(sum(tasks), 0)::bigint FROM stage_input"),
        .takeovers = sql_i64(0, "SELECT epoch FROM lease")};
    verbs_take(&ret->cells);
    (void)snprintf(ret->verdict, sizeof ret->verdict, "%s", deep->verdict);
    free(deep);
}

static struct {
    int fd;
    uint64_t seed;
} child;

/* A simulator that cannot go on says why as the verdict of the seed it is at. */
static void tell_last_words(const char *text)
{
    struct result r = {.seed = child.seed, .wrong = true};
    (void)snprintf(r.verdict, sizeof r.verdict, "the simulator cannot go on: %s", text);
    if (write(child.fd, &r, sizeof r) != (ssize_t)sizeof r) {
        _exit(3);
    }
    _exit(0);
}

/* A process for a few seeds, since a session of PostgreSQL that has planned nothing yet costs more
 * than a small world. Each seed's result is written as it ends. */
static _Noreturn void run_child(const struct options *o, const uint64_t *seeds, int n,
                                const char *conninfo, int fd)
{
    int null = open("/dev/null", O_WRONLY);
    if (!o->tell && null >= 0) {
        (void)dup2(null, STDERR_FILENO);
    }
    log_set_level(o->tell ? LOG_INFO : LOG_ERROR);
    child.fd = fd;
    deep_last_words = tell_last_words;
    for (int i = 0; i < n; i++) {
        struct result r;
        child.seed = seeds[i];
        (void)alarm(REAL_SECONDS_MAX * (unsigned)MAX(1, o->days));
        run_world(seeds[i], conninfo, o, &r);
        if (write(fd, &r, sizeof r) != (ssize_t)sizeof r) {
            _exit(3);
        }
    }
    _exit(0);
}

static void tell_end(int status, struct result *ret)
{
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
        ret->late = true;
        (void)snprintf(ret->verdict, sizeof ret->verdict, "not over after %d real seconds",
                       REAL_SECONDS_MAX);
    } else {
        (void)snprintf(ret->verdict, sizeof ret->verdict, "the process ended: status %d, signal %d",
                       WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                       WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
}

/* How many seeds have a result. When a process dies, its last seed failed. */
static int run_seeds(const struct options *o, const uint64_t *seeds, int n, const char *conninfo,
                     struct result *ret)
{
    int fds[2], got = 0, status = 0;
    if (pipe(fds) != 0) {
        exit(3);
    }
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(fds[0]);
        run_child(o, seeds, n, conninfo, fds[1]);
    }
    (void)close(fds[1]);
    while (got < n && read(fds[0], &ret[got], sizeof ret[got]) == (ssize_t)sizeof ret[got]) {
        got++;
    }
    (void)close(fds[0]);
    (void)waitpid(pid, &status, 0);
    bool told = got > 0 && ret[got - 1].wrong && WIFEXITED(status); /* its last words */
    if (got < n && !told) {
        ret[got] = (struct result){.seed = seeds[got], .wrong = true};
        tell_end(status, &ret[got++]);
    }
    return got;
}

/* The second run uses a new process and new sessions, since earlier seeds must not influence it. */
static void run_again(const struct options *o, const char *conninfo, struct result *r)
{
    struct result again;
    if (r->wrong) {
        return;
    }
    (void)run_seeds(o, &r->seed, 1, conninfo, &again);
    if (again.hash != r->hash) {
        r->wrong = true;
        (void)snprintf(r->verdict, sizeof r->verdict, "a second run is another: %016llx, %016llx",
                       (unsigned long long)r->hash, (unsigned long long)again.hash);
    }
}

/* Ends the server on Ctrl-C and on a caller's time-out. */
static void on_end(int signo)
{
    (void)signo;
    cluster_stop(); /* as it says there. NOLINT(bugprone-signal-handler) */
    _exit(1);
}

/* A worker keeps to one core, and its server processes with it (cpu_share): each waits for the
 * other's every word, and to wake one on another core costs more than most statements. */
static void cpu_take(int w)
{
    cpu_set_t all, one;
    int n = 0;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) != 0) {
        return;
    }
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &all) && n++ == w % CPU_COUNT(&all)) {
            CPU_SET(cpu, &one);
        }
    }
    (void)sched_setaffinity(0, sizeof one, &one);
}

void cpu_share(int pid)
{
    cpu_set_t own;
    if (sched_getaffinity(0, sizeof own, &own) == 0) {
        (void)sched_setaffinity(pid, sizeof own, &own); /* not allowed: it only costs more */
    }
}

static void worker(const struct options *o, int w, int fd)
{
    cpu_take(w);
    char conninfo[CLUSTER_CONNINFO_MAX];
    cluster_database(w, conninfo);
    for (uint64_t i = (uint64_t)w; i < o->seeds;) {
        uint64_t seeds[SEEDS_A_PROCESS];
        struct result r[SEEDS_A_PROCESS];
        int n = 0;
        for (uint64_t k = i; n < SEEDS_A_PROCESS && k < o->seeds; k += (uint64_t)o->jobs) {
            seeds[n] = o->first + k;
            n += swarm_has(seeds[n], o->with);
        }
        if (n == 0) {
            break;
        }
        n = run_seeds(o, seeds, n, conninfo, r);
        for (int k = 0; k < n; k++) {
            if (seeds[k] - o->first < o->twice) {
                run_again(o, conninfo, &r[k]);
            }
            if (write(fd, &r[k], sizeof r[k]) != (ssize_t)sizeof r[k]) {
                _exit(3);
            }
        }
        i = seeds[n - 1] - o->first + (uint64_t)o->jobs;
    }
    _exit(0);
}

static void add(struct result *sum, const struct result *r)
{
    sum->campaigns += r->campaigns;
    sum->tasks += r->tasks;
    sum->jobs += r->jobs;
    sum->lustres += r->lustres;
    sum->endpoints += r->endpoints;
    sum->crashes += r->crashes;
    sum->cuts += r->cuts;
    sum->takeovers += r->takeovers;
    sum->verbs += r->verbs;
    sum->poisons += r->poisons;
    sum->listings += r->listings;
    sum->lies += r->lies;
    sum->restores += r->restores;
    sum->virtual_s += r->virtual_s;
    sum->statements = MAX(sum->statements, r->statements);
    sum->hash ^= r->hash * (2 * r->seed + 1);
}

static void tell_result(const struct options *o, const struct result *r, int *failed)
{
    if (r->wrong) {
        ++*failed;
        printf(
            "not ok - deep seed %llu: %s\n#   replay: make deep-sim SEEDS=1 FIRST=%llu TELL=1%s\n",
            (unsigned long long)r->seed, r->verdict, (unsigned long long)r->seed,
            o->large ? " LARGE=1" : "");
    } else if (o->seeds <= 4) {
        printf("# seed %llu: %lld campaigns, %lld jobs, trace %016llx\n",
               (unsigned long long)r->seed, (long long)r->campaigns, (long long)r->jobs,
               (unsigned long long)r->hash);
    }
    (void)fflush(stdout);
}

static int run_all(const struct options *o)
{
    int fds[2], failed = 0;
    pid_t pids[WORKERS_MAX];
    struct result sum = {0}, r;
    double before = process_cpu(cluster_pid());
    if (pipe(fds) != 0) {
        return 3;
    }
    (void)fflush(NULL);
    for (int w = 0; w < o->jobs; w++) {
        pids[w] = fork();
        if (pids[w] == 0) {
            (void)signal(SIGINT, SIG_DFL);
            (void)signal(SIGTERM, SIG_DFL);
            (void)close(fds[0]);
            worker(o, w, fds[1]);
        }
    }
    (void)close(fds[1]);
    uint64_t n = 0;
    while (read(fds[0], &r, sizeof r) == (ssize_t)sizeof r) {
        n++;
        add(&sum, &r);
        verbs_add(&sum.cells, &r.cells);
        tell_result(o, &r, &failed);
        if (r.wrong && !r.late && o->until_wrong) {
            for (int w = 0; w < o->jobs; w++) {
                (void)kill(pids[w], SIGTERM);
            }
            break;
        }
    }
    for (int w = 0; w < o->jobs; w++) {
        (void)waitpid(pids[w], NULL, 0);
    }
    struct rusage u;
    (void)getrusage(RUSAGE_CHILDREN, &u);
    double own = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                 (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
    double cpu = own + process_cpu(cluster_pid()) - before;
    uint64_t wanted = 0;
    for (uint64_t i = 0; i < o->seeds; i++) {
        wanted += swarm_has(o->first + i, o->with);
    }
    bool all = n == wanted && n > 0; /* no world at all: a word that names no move */
    printf("%s - deep: %llu of %llu seeds from %llu keep every promise, %llu of them twice\n",
           failed == 0 && all ? "ok" : "not ok", (unsigned long long)n - (unsigned long long)failed,
           (unsigned long long)wanted, (unsigned long long)o->first,
           (unsigned long long)MIN(o->twice, o->seeds));
    printf(
        "# %lld campaigns, %lld tasks, %lld jobs, %lld file systems, %lld endpoints, %lld virtual "
        "hours, %lld crashes, %lld cut connections, "
        "%lld epochs, %lld verbs, %lld bad rows, %lld listed inputs, %lld refusals that lie, %lld "
        "restores, at "
        "most %lld statements, "
        "trace %016llx\n",
        (long long)sum.campaigns, (long long)sum.tasks, (long long)sum.jobs, (long long)sum.lustres,
        (long long)sum.endpoints, (long long)sum.virtual_s / 3600, (long long)sum.crashes,
        (long long)sum.cuts, (long long)sum.takeovers, (long long)sum.verbs, (long long)sum.poisons,
        (long long)sum.listings, (long long)sum.lies, (long long)sum.restores,
        (long long)sum.statements, (unsigned long long)sum.hash);
    bool met = verbs_tell(&sum.cells, o->cells);
    printf("# %.1f CPU s (%.1f of them PostgreSQL): %.0f campaigns of %.1f tasks a CPU minute\n",
           cpu, cpu - own, (double)sum.campaigns * 60 / MAX(cpu, 0.001),
           (double)sum.tasks / (double)MAX(sum.campaigns, 1));
    return failed == 0 && (all || o->until_wrong) && met ? 0 : 1;
}

int main(int argc, char **argv)
{
    enum { ARG = required_argument };
    static const struct option longs[] = {{"first", ARG, NULL, 'f'}, {"seeds", ARG, NULL, 's'},
                                          {"jobs", ARG, NULL, 'j'},  {"twice", ARG, NULL, '2'},
                                          {"dir", ARG, NULL, 'd'},   {"days", ARG, NULL, 'D'},
                                          {"clock", ARG, NULL, 'c'}, {"with", ARG, NULL, 'w'},
                                          {"tell", 0, NULL, 't'},    {"until-wrong", 0, NULL, 'u'},
                                          {"cells", ARG, NULL, 'C'}, {"large", 0, NULL, 'l'},
                                          {NULL, 0, NULL, 0}};
    struct options o = {.first = 1, .seeds = 200, .jobs = 2, .cells = -1};
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        switch (c) {
        case 'f':
            o.first = strtoull(optarg, NULL, 10);
            break;
        case 's':
            o.seeds = strtoull(optarg, NULL, 10);
            break;
        case 'j':
            o.jobs = (int)MIN(WORKERS_MAX, MAX(1, strtol(optarg, NULL, 10)));
            break;
        case 'w':
            o.with = optarg;
            break;
        case 'd':
            o.dir = optarg;
            break;
        case 'D':
            o.days = (int)MIN(60, MAX(0, strtol(optarg, NULL, 10)));
            break;
        case 'c':
            o.clock = optarg;
            break;
        case '2':
            o.twice = strtoull(optarg, NULL, 10);
            break;
        case 't':
            o.tell = true;
            break;
        case 'C':
            o.cells = (int)strtol(optarg, NULL, 10);
            break;
        case 'u':
            o.until_wrong = true;
            break;
        case 'l':
            o.large = true;
            break;
        default:
            return 2;
        }
    }
    (void)signal(SIGPIPE, SIG_IGN);
    log_set_program("deep");
    log_set_level(LOG_ERROR);
    if (o.days > 0 && (o.seeds > 1 || o.jobs > 1)) {
        return 2; /* the cluster has one clock */
    }
    if (o.days > 0) {
        days_clock(o.clock);
    }
    cluster_start(o.dir, o.jobs);
    (void)signal(SIGINT, on_end);
    (void)signal(SIGTERM, on_end);
    int status = run_all(&o);
    cluster_stop();
    return status;
}
