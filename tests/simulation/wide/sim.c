/* Aim: whole campaigns keep every promise of the invariants under every fault thinkable. Method: a
 * seed draws a world (sim_world.h) with its faults; the production objects of core decide in it;
 * the judge watches; when the faults are over all work must end and the ledger must equal the
 * invoice. Seeds are shared out over processes; their trace hashes are added up, so that the sum
 * tells whether anything at all went differently.
 *
 * Usage: sim [--first N] [--seeds N] [--jobs N] [--list FILE] [--coverage] [--shrink SECONDS]
 *            [--one] (no more seeds once one is broken)
 *        sim --bench [--first N] [--seeds N]
 *        sim --story N [--off FAULT[,..]] [--deny FAULT:K[,..]] [--parts N] [--ctls N] [--until S]
 * Prints TAP. Exit 1: a promise is broken, or something that must happen never did. */
#include "sim_world.h"
#include <malloc.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SEEDS_MAX  1000000
#define BROKEN_MAX 64
#define LIST_MAX   4096

struct total {     /* shared by the processes of a run */
    uint64_t next; /* index of the seed to be taken next */
    bool one;      /* the first broken seed is the last */
    uint64_t hash;
    int64_t lives, events, virtual_us, broken_n;
    int64_t ctls3, cold, unread, edited, all; /* seeds with ..., see count_hard */
    struct {
        uint64_t seed;
        struct outcome o;
    } broken[BROKEN_MAX];
};
struct options {
    uint64_t first, seeds;
    int jobs, shrink_s, story_lines;
    bool coverage, story, bench, one;
    const char *list;
    uint64_t story_seed;
    const char *off, *deny;
    int parts, ctls, campaigns;
    double until_s;
};

static void *shared(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT(p != MAP_FAILED);
    return p;
}

/* Counts of what caps and quotas were tested with: three controllers, a new leader while jobs
 * run, unreadable quotas, caps edited between a decision and its transaction. */
static void count_hard(const struct sim_config *cfg, const struct outcome *o, struct total *t)
{
    bool ctls3 = cfg->ctls == 3, cold = o->leaders > 1;
    bool unread = o->fires[FAULT_QUOTA_UNREADABLE] > 0;
    bool edited = o->fires[FAULT_EDIT_IN_FLIGHT] > 0;
    __atomic_fetch_add(&t->ctls3, ctls3, __ATOMIC_RELAXED);
    __atomic_fetch_add(&t->cold, cold, __ATOMIC_RELAXED);
    __atomic_fetch_add(&t->unread, unread, __ATOMIC_RELAXED);
    __atomic_fetch_add(&t->edited, edited, __ATOMIC_RELAXED);
    __atomic_fetch_add(&t->all, ctls3 && cold && unread && edited, __ATOMIC_RELAXED);
}

static void work(const uint64_t *seeds, uint64_t n, struct total *t, struct coverage *cover)
{
    struct outcome o;
    struct sim_config cfg;
    for (;;) {
        uint64_t i = __atomic_fetch_add(&t->next, 1, __ATOMIC_RELAXED);
        if (i >= n || (t->one && __atomic_load_n(&t->broken_n, __ATOMIC_RELAXED) > 0)) {
            return;
        }
        swarm_draw(seeds[i], &cfg);
        sim_run(&cfg, cover, &o);
        __atomic_fetch_add(&t->hash, mix(seeds[i], o.hash), __ATOMIC_RELAXED);
        __atomic_fetch_add(&t->lives, o.lives, __ATOMIC_RELAXED);
        count_hard(&cfg, &o, t);
        __atomic_fetch_add(&t->events, o.events, __ATOMIC_RELAXED);
        __atomic_fetch_add(&t->virtual_us, o.virtual_us, __ATOMIC_RELAXED);
        if (o.broken) {
            int64_t k = __atomic_fetch_add(&t->broken_n, 1, __ATOMIC_RELAXED);
            if (k < BROKEN_MAX) {
                t->broken[k].o = o;
                t->broken[k].seed = seeds[i];
            }
        }
    }
}

static void add_coverage(struct coverage *to, const struct coverage *from)
{
    uint32_t *a = (uint32_t *)(void *)to;
    const uint32_t *b = (const uint32_t *)(const void *)from;
    for (size_t i = 0; i < sizeof *to / sizeof *a; i++) {
        a[i] += b[i];
    }
}

static double cpu_s(void)
{
    struct rusage self, children;
    (void)getrusage(RUSAGE_SELF, &self);
    (void)getrusage(RUSAGE_CHILDREN, &children);
    return (double)(self.ru_utime.tv_sec + children.ru_utime.tv_sec) +
           (double)(self.ru_utime.tv_usec + children.ru_utime.tv_usec) / 1e6;
}

static bool run_all(const uint64_t *seeds, uint64_t n, int jobs, struct total *t,
                    struct coverage *cover)
{
    struct coverage *parts = shared((size_t)jobs * sizeof *parts);
    bool ok = true;
    (void)fflush(stdout);
    for (int i = 1; i < jobs; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            work(seeds, n, t, &parts[i]);
            _exit(0);
        }
        ok &= pid > 0;
    }
    work(seeds, n, t, &parts[0]);
    for (int i = 1; i < jobs; i++) {
        int status = 0;
        ok &= wait(&status) > 0 && status == 0;
    }
    for (int i = 0; i < jobs; i++) {
        add_coverage(cover, &parts[i]);
    }
    (void)munmap(parts, (size_t)jobs * sizeof *parts);
    return ok;
}

static uint64_t read_list(const char *file, uint64_t *seeds, uint64_t n)
{
    FILE *f = fopen(file, "re");
    char line[256];
    while (f != NULL && fgets(line, sizeof line, f) != NULL && n < SEEDS_MAX + LIST_MAX) {
        if (line[0] >= '0' && line[0] <= '9') {
            seeds[n++] = strtoull(line, NULL, 10);
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return n;
}

static void report_broken(const struct total *t, const struct options *opt)
{
    for (int64_t i = 0; i < MIN(t->broken_n, (int64_t)BROKEN_MAX); i++) {
        const struct outcome *o = &t->broken[i].o;
        printf("# BROKEN in seed %llu, %s at %lld s: %s\n", (unsigned long long)t->broken[i].seed,
               o->invariant, (long long)(o->at_us / SEC), o->what);
    }
    if (t->broken_n > 0 && opt->shrink_s > 0) {
        struct sim_config cfg;
        swarm_draw(t->broken[0].seed, &cfg);
        shrink(&cfg, &t->broken[0].o, opt->shrink_s);
    }
}

static int run(const struct options *opt)
{
    uint64_t *seeds = xmalloc((SEEDS_MAX + LIST_MAX) * sizeof *seeds);
    struct total *t = shared(sizeof *t);
    struct coverage *cover = xcalloc(1, sizeof *cover);
    uint64_t n = 0;
    t->one = opt->one;
    for (uint64_t i = 0; i < opt->seeds; i++) {
        seeds[n++] = opt->first + i;
    }
    n = opt->list != NULL ? read_list(opt->list, seeds, n) : n;
    struct timespec began, now;
    (void)clock_gettime(CLOCK_MONOTONIC, &began);
    bool ok = run_all(seeds, n, opt->jobs, t, cover);
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    double wall = (double)(now.tv_sec - began.tv_sec) + (double)(now.tv_nsec - began.tv_nsec) / 1e9;
    double cpu = MAX(cpu_s(), 1e-6);
    double years = (double)t->virtual_us / 1e6 / 86400 / 365;
    printf("%s - simulation: %llu seeds from %llu on: %lld violations, %lld attempt lives\n",
           ok && t->broken_n == 0 ? "ok" : "not ok", (unsigned long long)n,
           (unsigned long long)opt->first, (long long)t->broken_n, (long long)t->lives);
    report_broken(t, opt);
    printf("# simulation: no instant over quota or budget in any unbroken seed; of %llu, %lld had "
           "three "
           "controllers, %lld cold caches, %lld quotas unreadable, %lld caps edited in flight, "
           "%lld all "
           "of these\n",
           (unsigned long long)n, (long long)t->ctls3, (long long)t->cold, (long long)t->unread,
           (long long)t->edited, (long long)t->all);
    bool covered = !opt->coverage || cover_check(cover);
    printf("# simulation: violations %lld, trace %016llx, seeds %llu, %.0f lives a CPU second, "
           "%.0f campaign-years a CPU minute, %lld events, %.1f s, %.1f CPU s\n",
           (long long)t->broken_n, (unsigned long long)t->hash, (unsigned long long)n,
           (double)t->lives / cpu, years / cpu * 60, (long long)t->events, wall, cpu);
    bool good = ok && t->broken_n == 0 && covered;
    free(seeds);
    free(cover);
    return good ? 0 : 1;
}

/* The default swarm with 128 parts a campaign and all checks, in one process. */
static int bench(const struct options *opt)
{
    struct coverage *cover = xcalloc(1, sizeof *cover);
    int64_t lives = 0, virtual_us = 0, broken = 0;
    for (uint64_t i = 0; i < opt->seeds; i++) {
        struct sim_config cfg;
        struct outcome o;
        swarm_draw(opt->first + i, &cfg);
        cfg.parts = 128 * cfg.campaigns;
        sim_run(&cfg, cover, &o);
        lives += o.lives;
        virtual_us += o.virtual_us;
        broken += o.broken;
    }
    double cpu = MAX(cpu_s(), 1e-6);
    printf(
        "{\"name\":\"sim_attempt_lives_per_cpu_s\",\"value\":%.0f,\"unit\":\"lives/s\",\"n\":%lld,"
        "\"note\":\"intent to settlement, default swarm of faults, all checks, 128 parts a "
        "campaign, %llu seeds, %lld violations\"}\n",
        (double)lives / cpu, (long long)lives, (unsigned long long)opt->seeds, (long long)broken);
    printf(
        "{\"name\":\"sim_campaign_years_per_cpu_min\",\"value\":%.1f,\"unit\":\"years\",\"n\":%llu,"
        "\"note\":\"virtual time of the same campaigns\"}\n",
        (double)virtual_us / 1e6 / 86400 / 365 / cpu * 60, (unsigned long long)opt->seeds);
    free(cover);
    return broken > 0;
}

static int story(const struct options *opt)
{
    struct coverage *cover = xcalloc(1, sizeof *cover);
    struct sim_config cfg;
    struct outcome o;
    swarm_draw(opt->story_seed, &cfg);
    config_cut(&cfg, opt->off, opt->deny);
    cfg.parts = opt->parts > 0 ? opt->parts : cfg.parts;
    cfg.ctls = opt->ctls > 0 ? opt->ctls : cfg.ctls;
    cfg.campaigns = opt->campaigns > 0 ? opt->campaigns : cfg.campaigns;
    cfg.until_us = (int64_t)(opt->until_s * 1e6);
    cfg.tell = true;
    cfg.story_lines = opt->story_lines;
    sim_run(&cfg, cover, &o);
    printf("# seed %llu: %s %s\n# trace %016llx, %lld lives, %lld events, %lld s\n",
           (unsigned long long)opt->story_seed, o.broken ? o.invariant : "kept every promise",
           o.what, (unsigned long long)o.hash, (long long)o.lives, (long long)o.events,
           (long long)(o.at_us / SEC));
    config_free(&cfg);
    free(cover);
    return o.broken ? 1 : 0;
}

static bool option(struct options *o, const char *name, const char *value)
{
    static const char *const names[] = {"--first", "--seeds", "--jobs",     "--list",  "--shrink",
                                        "--story", "--off",   "--deny",     "--parts", "--ctls",
                                        "--until", "--lines", "--campaigns"};
    int64_t n = strtoll(value, NULL, 10);
    size_t i = 0;
    while (i < ARRAY_LEN(names) && strcmp(name, names[i]) != 0) {
        i++;
    }
    const char **texts[] = {[3] = &o->list, [6] = &o->off, [7] = &o->deny};
    int *ints[] = {[2] = &o->jobs, [4] = &o->shrink_s,     [8] = &o->parts,
                   [9] = &o->ctls, [11] = &o->story_lines, [12] = &o->campaigns};
    if (i == 0 || i == 1 || i == 5) {
        *(i == 0 ? &o->first : i == 1 ? &o->seeds : &o->story_seed) = strtoull(value, NULL, 10);
        o->story |= i == 5;
    } else if (i == 10) {
        o->until_s = strtod(value, NULL);
    } else if (i == 3 || i == 6 || i == 7) {
        *texts[i] = value;
    } else if (i < ARRAY_LEN(names)) {
        *ints[i] = (int)n;
    }
    return i < ARRAY_LEN(names);
}

int main(int argc, char **argv)
{
    struct options o = {.first = 1, .seeds = 100, .jobs = 2, .shrink_s = 60, .story_lines = 30};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--coverage") == 0) {
            o.coverage = true;
        } else if (strcmp(argv[i], "--bench") == 0) {
            o.bench = true;
        } else if (strcmp(argv[i], "--one") == 0) {
            o.one = true;
        } else if (i + 1 >= argc || !option(&o, argv[i], argv[i + 1])) {
            (void)fprintf(stderr, "sim: '%s' is not known, or lacks its value\n", argv[i]);
            return 2;
        } else {
            i++;
        }
    }
    o.seeds = MIN(o.seeds, (uint64_t)SEEDS_MAX);
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 30); /* worlds come and go: memory is kept */
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 30);
    return o.story ? story(&o) : o.bench ? bench(&o) : run(&o);
}
