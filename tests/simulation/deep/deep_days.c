/* A month of operation: some campaigns a day, few faults, people who care, archives by age; the
 * clock of PostgreSQL is the world's. What must not grow is looked at every day: memory and
 * descriptors of the process (the controllers' and the simulator's), rows of every table. */
#include "deep.h"
#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DAY             (24 * HOUR)
#define CAMPAIGNS_A_DAY 3
#define RETENTION_DAYS  14 /* the longest of orchestrator/store/README.md that ends */
#define CARE_EVERY_US   (6 * HOUR)
#define TABLES_MAX      128
#define DAYS_MAX        60
#define MEMORY_SLACK    (64 * 1024)
#define ROWS_SLACK      40

/* Rows that stay for good: orchestrator/store/README.md. */
static const char *const for_good[] = {
    "campaign",      "campaign_run", "stage",   "stage_input", "stage_run",
    "operation",     "audit",        "ledger",  "archive",     "archive_cost",
    "archive_stage", "archived_job", "cap",     "money",       "input_listing",
    "filesystem",    "endpoint",     "project", "stray",
};

/* Memory of the simulator's AWS: calls and answers. */
#define PIECE       (1024 * 1024)
#define KEPT_FOR_US (6 * HOUR) /* no call lives so long */

struct memory_piece {
    struct memory_piece *next;
    int64_t used_us; /* last */
    size_t n, size;
};
static struct memory_piece *oldest, *newest;

static struct memory_piece *piece_new(size_t n)
{
    size_t size = MAX((size_t)PIECE, n + sizeof(struct memory_piece) + 16);
    struct memory_piece *p =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (p == MAP_FAILED) {
        deep_die("out of memory");
    }
    p->n = (sizeof *p + 15) / 16 * 16;
    p->size = size;
    return p;
}

void *world_alloc(size_t n)
{
    n = (n + 15) / 16 * 16;
    while (deep->days > 0 && oldest != newest && oldest->used_us < deep->now_us - KEPT_FOR_US) {
        struct memory_piece *gone = oldest;
        oldest = gone->next;
        (void)munmap(gone, gone->size);
    }
    if (newest == NULL || newest->n + n > newest->size) {
        struct memory_piece *p = piece_new(n);
        *(newest == NULL ? &oldest : &newest->next) = p;
        newest = p;
    }
    void *at = (char *)newest + newest->n;
    newest->n += n;
    newest->used_us = deep->now_us;
    return at;
}

/* What an archive deletes: all of it, since the last campaign comes four days before the end. */
static const char *const of_campaigns[] = {
    "task",          "task_run", "task_change",   "task_failure",  "task_retried",
    "attempt",       "pool",     "metric_source", "metric_series", "metric_point",
    "metric_bucket", "promise",  "parked",
};

static struct {
    int64_t *shift_s; /* mapped; PostgreSQL reads it */
    char file[64];
    int n, tables;
    int64_t memory[DAYS_MAX], descriptors[DAYS_MAX];
    char name[TABLES_MAX][64];
    int64_t rows[TABLES_MAX][DAYS_MAX];
} month;

static void clock_end(void)
{
    (void)unlink(month.file);
}

void days_clock(const char *preload)
{
    if (preload == NULL || access(preload, R_OK) != 0) {
        deep_die("--days needs --clock build/.../clock_shift.so");
    }
    (void)snprintf(month.file, sizeof month.file, "/tmp/deep-clock.XXXXXX");
    int fd = mkstemp(month.file);
    int64_t zero = 0;
    if (fd < 0 || fchmod(fd, 0644) != 0 || write(fd, &zero, sizeof zero) != sizeof zero) {
        deep_die("no file for the clock");
    }
    month.shift_s = mmap(NULL, sizeof zero, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (month.shift_s == MAP_FAILED || setenv("LD_PRELOAD", preload, 1) != 0 ||
        setenv("CLOCK_SHIFT_FILE", month.file, 1) != 0) {
        deep_die("no clock");
    }
    (void)atexit(clock_end);
}

void days_clock_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    *month.shift_s = wall_now() / USEC_PER_SEC - now.tv_sec;
}

void days_draw(struct world *w)
{
    w->lies = w->clocks = w->restores = false;
    static const enum harm never[] = {
        /* a process that is killed leaves its memory to the simulator */
        FAULT_CRASH, FAULT_CRASH_STEP, FAULT_TAKEOVER_BREAKS,
        /* what people would have to look after */
        FAULT_QUOTA_MOVES, FAULT_NO_CAPACITY, FAULT_VERBS, FAULT_MEANWHILE, FAULT_PAUSE_RESUME};
    for (int f = 0; f < FAULT_N; f++) {
        w->strength[f] *= 0.05;
    }
    for (size_t i = 0; i < ARRAY_LEN(never); i++) {
        w->strength[never[i]] = 0;
    }
    w->figures = w->locks = w->secrets = false; /* they kill leaders, or people have to look */
    w->calm_us = w->days * DAY;
    w->campaigns_n = MIN(CAMPAIGNS_A_DAY * w->days, CAMPAIGNS_MAX);
}

static int64_t memory(void)
{
    struct mallinfo2 m = mallinfo2();
    return (int64_t)(m.uordblks + m.hblkhd);
}

static int64_t descriptors(void)
{
    int64_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d != NULL && readdir(d) != NULL) {
        n++;
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    return n;
}

static void count_rows(void)
{
    AUTO_RESULT PGresult *r = sql_rows(
        "SELECT c.relname, (xpath('/row/n/text()', query_to_xml('SELECT count(*) AS n FROM ' || "
        "c.relname, false, true, '')))[1]::text FROM pg_class c WHERE c.relnamespace = "
        "'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1");
    month.tables = MIN(PQntuples(r), TABLES_MAX);
    for (int i = 0; i < month.tables; i++) {
        (void)snprintf(month.name[i], sizeof month.name[i], "%s", PQgetvalue(r, i, 0));
        month.rows[i][month.n] = strtoll(PQgetvalue(r, i, 1), NULL, 10);
    }
}

static int64_t rows_of(const char *table, int day)
{
    for (int i = 0; i < month.tables; i++) {
        if (strcmp(month.name[i], table) == 0) {
            return month.rows[i][day];
        }
    }
    return -1;
}

static void end_of_day(void *ctx, int64_t day)
{
    (void)ctx;
    sql_do("VACUUM"); /* as autovacuum would */
    count_rows();
    month.memory[month.n] = memory();
    month.descriptors[month.n] = descriptors();
    printf(
        "# day %lld: %lld kB, %lld descriptors; %lld campaigns, of them live %lld, archived %lld; "
        "rows: %lld attempts, %lld events, %lld ledger lines; %lld jobs, %lld statements\n",
        (long long)day, (long long)month.memory[month.n] / 1024,
        (long long)month.descriptors[month.n], (long long)rows_of("campaign", month.n),
        (long long)sql_i64(0, "SELECT count(*) FROM campaign_run WHERE ended_at IS NULL"),
        (long long)sql_i64(0, "SELECT count(*) FROM archive WHERE archived_at IS NOT NULL"),
        (long long)rows_of("attempt", month.n), (long long)rows_of("event", month.n),
        (long long)rows_of("ledger", month.n), (long long)deep->accepted,
        (long long)deep->statements);
    (void)fflush(stdout);
    month.n++;
    if (day < deep->days) {
        event_at(deep->now_us + DAY, end_of_day, NULL, day + 1);
    }
}

static void free_limits(void *ctx, int64_t arg)
{
    people_free_limits();
    event_at(deep->now_us + CARE_EVERY_US, free_limits, ctx, arg);
}

void days_start(void)
{
    month.n = 0;
    aws_makes_room();
    people_care();
    event_at(CARE_EVERY_US, free_limits, NULL, 0);
    event_at(DAY - MINUTE, end_of_day, NULL, 1);
}

/* The later half of the days behind the longest retention is hardly above the first. */
static bool flat(const int64_t *v, int from, int to, int64_t percent, int64_t slack)
{
    int64_t first = 0, second = 0;
    for (int i = from; i < to; i++) {
        int64_t *half = i < (from + to) / 2 ? &first : &second;
        *half = MAX(*half, v[i]);
    }
    return second <= first + first * percent / 100 + slack;
}

static bool is_among(const char *const *list, size_t n, const char *table)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i], table) == 0) {
            return true;
        }
    }
    return false;
}

static void judge_rows(int i, int from, int to)
{
    const int64_t *v = month.rows[i];
    bool good = is_among(for_good, ARRAY_LEN(for_good), month.name[i]);
    bool gone = is_among(of_campaigns, ARRAY_LEN(of_campaigns), month.name[i]);
    printf("# %s: %lld rows after day %d, %lld at the end%s\n", month.name[i], (long long)v[from],
           from + 1, (long long)v[to - 1], good ? ", for good" : "");
    if (gone && v[to - 1] > 0) {
        wrong("flat", "every campaign is archived, and %lld rows of %s are left",
              (long long)v[to - 1], month.name[i]);
    } else if (!good && !gone && !flat(v, from, to, 25, ROWS_SLACK)) {
        wrong("flat", "rows of %s grow: %lld to %lld", month.name[i], (long long)v[from],
              (long long)v[to - 1]);
    }
}

void days_judge(void)
{
    int from = MIN(RETENTION_DAYS + 1, month.n / 2), to = month.n;
    if (!flat(month.memory, from, to, 1, MEMORY_SLACK)) {
        wrong("flat", "memory grows: %lld to %lld bytes", (long long)month.memory[from],
              (long long)month.memory[to - 1]);
    }
    if (!flat(month.descriptors, from, to, 0, 2)) {
        wrong("flat", "descriptors grow: %lld to %lld", (long long)month.descriptors[from],
              (long long)month.descriptors[to - 1]);
    }
    for (int i = 0; i < month.tables; i++) {
        judge_rows(i, from, to);
    }
    (void)fflush(stdout);
}
