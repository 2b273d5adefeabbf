/* See deep_cluster.h. */
#include "deep_cluster.h"
#include "deep.h"
#include "store/pg/migrate.h"
#include "store/pg/private_cluster.h"
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char cluster_dir[256];
static char admin[PRIVATE_CLUSTER_CONNINFO_MAX];
static bool stays; /* for the next program that is given its folder */

static void sql_in(const char *conninfo, const char *sql)
{
    PGconn *c = PQconnectdb(conninfo);
    PGresult *r = PQexec(c, sql);
    ExecStatusType t = PQresultStatus(r);
    if (t != PGRES_COMMAND_OK && t != PGRES_TUPLES_OK) {
        deep_die("%s: %s", sql, PQerrorMessage(c));
    }
    PQclear(r);
    PQfinish(c);
}

static void admin_sql(const char *sql)
{
    sql_in(admin, sql);
}

/* A folder of one's own, or the one that was named, whose cluster may be there already. */
static void cluster_place(const char *dir)
{
    const char *place = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "build/tests";
    (void)mkdir("build", 0755);
    (void)mkdir("build/tests", 0755);
    if (dir != NULL) {
        (void)snprintf(cluster_dir, sizeof cluster_dir, "%s", dir);
        (void)mkdir(cluster_dir, 0755);
        return;
    }
    (void)snprintf(cluster_dir, sizeof cluster_dir, "%s/deep.XXXXXX", place);
    if (mkdtemp(cluster_dir) == NULL || chmod(cluster_dir, 0755) != 0) {
        deep_die("cannot make %s", cluster_dir);
    }
}

static bool has_database(const char *name)
{
    PGconn *c = PQconnectdb(admin);
    PGresult *r = PQexecParams(c, "SELECT FROM pg_database WHERE datname = $1", 1, NULL, &name,
                               NULL, NULL, 0);
    bool has = PQntuples(r) == 1;
    PQclear(r);
    PQfinish(c);
    return has;
}

/* Its clock is found before the one of PostgreSQL itself; each world sets it (deep_clocks.c). */
static void clocks_of_database(const char *conninfo)
{
    admin_sql("ALTER DATABASE deep_template SET search_path = public, deep_clock, pg_catalog");
    sql_in(conninfo, "CREATE SCHEMA deep_clock");
    sql_in(conninfo,
           "CREATE FUNCTION deep_clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql "
           "VOLATILE AS 'SELECT pg_catalog.clock_timestamp()'");
}

static void make_template(void)
{
    struct err err = ERR_INIT;
    char template[600];
    static const char *const settings[] = {"fsync = off",
                                           "full_page_writes = off",
                                           "autovacuum = off",
                                           "synchronous_commit = off",
                                           "track_counts = off",
                                           "track_activities = off",
                                           "update_process_title = off",
                                           "wal_writer_delay = '10s'",
                                           "wal_writer_flush_after = '1GB'",
                                           "bgwriter_delay = '10s'",
                                           "checkpoint_timeout = '1h'",
                                           "max_wal_size = '4GB'",
                                           "deadlock_timeout = '10s'",
                                           "lock_timeout = '200ms'"};
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        char sql[128];
        (void)snprintf(sql, sizeof sql, "ALTER SYSTEM SET %s", settings[i]);
        admin_sql(sql);
    }
    admin_sql("SELECT pg_reload_conf()");
    admin_sql("CREATE DATABASE deep_template");
    (void)snprintf(template, sizeof template, "%s dbname=deep_template", admin);
    clocks_of_database(template);
    if (!migrate_run(template, NULL, &err)) {
        deep_die("migrations: %s", err.message);
    }
    /* A newer droverd, which is gone again, may have had more words. */
    sql_in(template, "ALTER TABLE cap DROP CONSTRAINT cap_at_limit_check");
}

void cluster_start(const char *dir, int databases)
{
    struct err err = ERR_INIT;
    stays = dir != NULL;
    cluster_place(dir);
    /* Memory that a server process has once had, it keeps: to get it again costs a tenth of all. */
    (void)setenv("MALLOC_TRIM_THRESHOLD_", "67108864", 0);
    (void)setenv("MALLOC_TOP_PAD_", "1048576", 0);
    (void)setenv("MALLOC_MMAP_THRESHOLD_", "33554432", 0);
    if (!private_cluster_start(cluster_dir, admin, sizeof admin, &err)) {
        deep_die("PostgreSQL: %s", err.message);
    }
    if (!has_database("deep_template")) {
        make_template();
    }
    for (int i = 0; i < databases; i++) {
        char name[32], sql[128];
        (void)snprintf(name, sizeof name, "deep_%d", i);
        (void)snprintf(sql, sizeof sql, "DROP DATABASE %s", name);
        if (has_database(name)) {
            admin_sql(sql);
        }
        (void)snprintf(sql, sizeof sql, "CREATE DATABASE %s TEMPLATE deep_template", name);
        admin_sql(sql);
        (void)snprintf(sql, sizeof sql,
                       "ALTER DATABASE %s SET search_path = public, deep_clock, pg_catalog", name);
        admin_sql(sql);
    }
}

/* Called at exit and by a signal while the main thread only waits for children.
 * NOLINTBEGIN(bugprone-signal-handler): a server left behind would be worse than a hang here. */
void cluster_stop(void)
{
    struct err err = ERR_INIT;
    char rm[300];
    if (!private_cluster_stop(cluster_dir, stays ? PRIVATE_CLUSTER_FAST : PRIVATE_CLUSTER_IMMEDIATE,
                              &err)) {
        (void)fprintf(stderr, "# %s\n", err.message);
    }
    (void)snprintf(rm, sizeof rm, "rm -rf '%s'", cluster_dir);
    if (!stays && system(rm) != 0) {
        (void)fprintf(stderr, "# cannot remove %s\n", cluster_dir);
    }
}
/* NOLINTEND(bugprone-signal-handler) */

int cluster_pid(void)
{
    return private_cluster_pid(cluster_dir);
}

void cluster_database(int w, char ret[static CLUSTER_CONNINFO_MAX])
{
    (void)snprintf(ret, CLUSTER_CONNINFO_MAX, "%s dbname=deep_%d", admin, w);
}
