/* The private PostgreSQL cluster. Layout: DIR/owner (locked by the droverd that uses it), DIR/lock
 * (one starter at a time), DIR/pg (the server's: owned by its user, mode 0700) with data/, sock/
 * and server.log. */
#include "private_cluster.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/units.h"
#include "server_bin.h"
#include "spawn.h"
#include <errno.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <limits.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#define COMMAND_US (90 * USEC_PER_SEC)
#define START_US   (20 * USEC_PER_SEC) /* a start that takes longer has failed */
#define SOCKET     "/.s.PGSQL.5432"

struct cluster {
    char home[PATH_MAX]; /* DIR/pg */
    char data[PATH_MAX + 16];
    char sock[PATH_MAX + 16];
    char bin[PATH_MAX]; /* directory of initdb, pg_ctl, postgres */
    uid_t uid;          /* the server's user */
    gid_t gid;
    char user[64];
    bool drop;        /* we are root: run it through setpriv */
    const char *caps; /* capabilities setpriv leaves it; NULL: none */
};

static bool find_user(struct cluster *c, struct err *err)
{
    c->uid = geteuid();
    c->gid = getegid();
    c->drop = c->uid == 0;
    const char *names[] = {"postgres", "nobody"};
    for (size_t i = 0; c->drop && i < ARRAY_LEN(names); i++) {
        struct passwd pw;
        struct passwd *found = NULL;
        char text[4096];
        if (getpwnam_r(names[i], &pw, text, sizeof text, &found) == 0 && found != NULL) {
            c->uid = pw.pw_uid;
            c->gid = pw.pw_gid;
            (void)snprintf(c->user, sizeof c->user, "%s", names[i]);
            return true;
        }
    }
    return c->drop
               ? err_set(err, ERR_PRECONDITION,
                         "PostgreSQL refuses to run as root, and there is no user 'postgres' or "
                         "'nobody' to run it as")
               : true;
}

static bool run(const struct cluster *c, const char *const *argv, int *ret_status, struct buf *out,
                struct err *err)
{
    const char *full[32];
    size_t n = 0;
    char reuid[48], regid[48], inh[64], ambient[64];
    if (c->drop) {
        (void)snprintf(reuid, sizeof reuid, "--reuid=%u", c->uid);
        (void)snprintf(regid, sizeof regid, "--regid=%u", c->gid);
        full[n++] = "setpriv";
        full[n++] = reuid;
        full[n++] = regid;
        full[n++] = "--clear-groups";
        if (c->caps != NULL) {
            (void)snprintf(inh, sizeof inh, "--inh-caps=+%s", c->caps);
            (void)snprintf(ambient, sizeof ambient, "--ambient-caps=+%s", c->caps);
            full[n++] = inh;
            full[n++] = ambient;
        }
        full[n++] = "--";
    }
    for (size_t i = 0; argv[i] != NULL; i++) {
        ASSERT(n + 1 < ARRAY_LEN(full));
        full[n++] = argv[i];
    }
    full[n] = NULL;
    return spawn_run(full, COMMAND_US, ret_status, out, err);
}

/* The same; an exit status other than 0 is an error with the program's last output. */
static bool run_ok(const struct cluster *c, const char *const *argv, struct err *err)
{
    AUTO_BUF struct buf out = BUF_INIT(SPAWN_OUTPUT_MAX);
    int status = 0;
    if (!run(c, argv, &status, &out, err)) {
        return false;
    }
    if (status == 0) {
        return true;
    }
    struct str text = str_trim(buf_str(&out));
    if (text.n > 400) {
        text = (struct str){text.p + text.n - 400, 400};
    }
    return err_set(err, ERR_UNAVAILABLE, "'%s' ended with status %d: " STR_FMT, argv[0], status,
                   STR_ARG(text));
}

/* Tries it out: access(2) does not consider capabilities. */
static bool reachable(const struct cluster *c)
{
    AUTO_FREE char *probe = xasprintf("%s/.probe", c->home);
    const char *argv[] = {"touch", probe, NULL};
    AUTO_BUF struct buf out = BUF_INIT(SPAWN_OUTPUT_MAX);
    int status = 1;
    return run(c, argv, &status, &out, NULL) && status == 0;
}

/* The first directory of the path that the user may not enter. */
static void find_blocker(const struct cluster *c, char *ret, size_t size)
{
    (void)snprintf(ret, size, "%s", c->home);
    for (const char *p = c->home + 1;; p++) {
        if (*p != '/' && *p != '\0') {
            continue;
        }
        AUTO_FREE char *prefix = xstrndup(c->home, (size_t)(p - c->home));
        struct stat st;
        if (stat(prefix, &st) != 0) {
            return;
        }
        unsigned bit = st.st_uid == c->uid ? S_IXUSR : st.st_gid == c->gid ? S_IXGRP : S_IXOTH;
        if ((st.st_mode & bit) == 0) {
            (void)snprintf(ret, size, "%s", prefix);
            return;
        }
        if (*p == '\0') {
            return;
        }
    }
}

/* Below a closed home (/root is 0700) the server's user cannot enter its own directory. Root can
 * grant the one capability needed. Where even root lacks it (a container), report a remedy. */
static bool make_reachable(struct cluster *c, struct err *err)
{
    const char *caps[] = {NULL, "dac_read_search", "dac_override"};
    for (size_t i = 0; i < ARRAY_LEN(caps); i++) {
        c->caps = caps[i];
        if (reachable(c)) {
            return true;
        }
        if (!c->drop) {
            break;
        }
    }
    char blocker[PATH_MAX];
    find_blocker(c, blocker, sizeof blocker);
    return err_set(err, ERR_PRECONDITION,
                   "PostgreSQL runs as user '%s', which may not enter '%s' and so cannot use '%s': "
                   "run chmod o+x '%s', choose another directory, or start as that user",
                   c->user[0] == '\0' ? "(yours)" : c->user, blocker, c->home, blocker);
}

static bool make_dir(const struct cluster *c, const char *path, struct err *err)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return err_set_os(err, ERR_IO, errno, "cannot make directory '%s'", path);
    }
    struct stat st;
    if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        return err_set(err, ERR_IO, "'%s' is not a directory", path);
    }
    if (c->drop && st.st_uid == 0 && chown(path, c->uid, c->gid) != 0) {
        return err_set_os(err, ERR_IO, errno, "cannot give '%s' to user '%s'", path, c->user);
    }
    if (lstat(path, &st) != 0 || st.st_uid != c->uid || (st.st_mode & 077) != 0) {
        return err_set(err, ERR_PRECONDITION,
                       "directory '%s' must belong to user id %u and be closed to others (0700)",
                       path, c->uid);
    }
    return true;
}

static void short_sock(const struct cluster *c, char *ret, size_t size)
{
    char hex[SHA256_HEX_N];
    hash_sha256_hex(c->home, strlen(c->home), hex);
    (void)snprintf(ret, size, "/tmp/drover-%.16s", hex);
}

/* A socket's path is limited to 107 bytes: long directories get a short one under /tmp, named after
 * the long path. */
static void choose_sock(struct cluster *c)
{
    const struct sockaddr_un *addr = NULL;
    (void)snprintf(c->sock, sizeof c->sock, "%s/sock", c->home);
    if (strlen(c->sock) + strlen(SOCKET) + strlen(".lock") < sizeof addr->sun_path &&
        strchr(c->sock, ',') == NULL && c->caps == NULL) {
        return;
    }
    short_sock(c, c->sock, sizeof c->sock);
}

/* its_own: of the version that made its data, since a newer one does not start on them. Any stops
 * it. */
static bool find(const char *dir, bool its_own, struct cluster *c, struct err *err)
{
    char real[PATH_MAX];
    memset(c, 0, sizeof *c);
    if (realpath(dir, real) == NULL) {
        return err_set_os(err, ERR_IO, errno, "cannot use directory '%s'", dir);
    }
    if (strlen(real) + 64 > PATH_MAX || strpbrk(real, "'\"\\\n") != NULL) {
        return err_set(err, ERR_INVALID, "directory '%s': too long, or has quotes", real);
    }
    (void)snprintf(c->home, sizeof c->home, "%.*s/pg", PATH_MAX - 8, real);
    (void)snprintf(c->data, sizeof c->data, "%s/data", c->home);
    int major = its_own ? server_bin_major_of(c->data) : 0;
    return find_user(c, err) &&
           server_bin_find(SERVER_BIN_DEBIAN, major, c->bin, sizeof c->bin, err);
}

/* mkdir -p with the umask's mode. */
static bool make_path(const char *dir, struct err *err)
{
    AUTO_FREE char *path = xstrdup(dir);
    for (char *p = path + 1;; p++) {
        if (*p != '/' && *p != '\0') {
            continue;
        }
        char was = *p;
        *p = '\0';
        if (mkdir(path, 0755) != 0 && errno != EEXIST) {
            return err_set_os(err, ERR_IO, errno, "cannot make directory '%s'", path);
        }
        *p = was;
        if (was == '\0') {
            return true;
        }
    }
}

/* Only one process starts or stops the cluster at a time. The lock is released with the returned
 * descriptor. */
static int lock_dir(const char *dir, struct err *err)
{
    AUTO_FREE char *path = xasprintf("%s/lock", dir);
    AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX) != 0) {
        (void)err_set_os(err, ERR_IO, errno, "cannot lock '%s'", path);
        return -1;
    }
    return fd_take(&fd);
}

static bool make_cluster(const struct cluster *c, struct err *err)
{
    AUTO_FREE char *version = xasprintf("%s/PG_VERSION", c->data);
    AUTO_FREE char *control = xasprintf("%s/global/pg_control", c->data);
    if (access(version, F_OK) == 0 && access(control, F_OK) == 0) {
        return true;
    }
    /* Made under another name and renamed, so that a killed initdb leaves nothing that looks
     * complete. */
    AUTO_FREE char *initdb = xasprintf("%s/initdb", c->bin);
    AUTO_FREE char *fresh = xasprintf("%s/data.new", c->home);
    const char *rm[] = {"rm", "-rf", fresh, NULL};
    const char *argv[] = {initdb,
                          "-D",
                          fresh,
                          "-U",
                          "drover",
                          "--auth=trust",
                          "--encoding=UTF8",
                          "--locale=C.UTF-8",
                          "--data-checksums",
                          NULL};
    if (!run_ok(c, rm, err) || !run_ok(c, argv, err)) {
        return err_wrap(err, "cannot make a database cluster in '%s'", c->home);
    }
    return rename(fresh, c->data) == 0
               ? true
               : err_set_os(err, ERR_IO, errno, "cannot rename '%s'", fresh);
}

static int read_pid(const struct cluster *c)
{
    AUTO_FREE char *path = xasprintf("%s/postmaster.pid", c->data);
    AUTO_FILE FILE *f = fopen(path, "re");
    char line[32];
    int64_t pid = 0;
    if (f == NULL || fgets(line, sizeof line, f) == NULL ||
        !parse_i64(str_trim(str_of(line)), 1, INT32_MAX, &pid, NULL)) {
        return 0;
    }
    return (int)pid;
}

static bool is_postgres(int pid)
{
    AUTO_FREE char *path = xasprintf("/proc/%d/comm", pid);
    AUTO_FILE FILE *f = fopen(path, "re");
    char comm[32] = "";
    if (f == NULL || fgets(comm, sizeof comm, f) == NULL) {
        return false;
    }
    return strncmp(comm, "postgres", 8) == 0 || strncmp(comm, "postmaster", 10) == 0;
}

static void conninfo_of(const struct cluster *c, char *ret, size_t size)
{
    (void)snprintf(ret, size, "host='%.400s' port=5432 user=drover dbname=postgres", c->sock);
}

static bool lz4_known(const struct cluster *c)
{
    AUTO_FREE char *postgres = xasprintf("%s/postgres", c->bin);
    const char *argv[] = {postgres,          "-D", c->data, "-c", "wal_compression=lz4", "-C",
                          "wal_compression", NULL};
    AUTO_BUF struct buf out = BUF_INIT(SPAWN_OUTPUT_MAX);
    int status = 1;
    return run(c, argv, &status, &out, NULL) && status == 0;
}

static bool start_once(const struct cluster *c, struct err *err)
{
    AUTO_FREE char *pg_ctl = xasprintf("%s/pg_ctl", c->bin);
    AUTO_FREE char *log = xasprintf("%s/server.log", c->home);
    AUTO_FREE char *options = xasprintf(
        "-c listen_addresses='' -c unix_socket_directories='%s' -c unix_socket_permissions=0700 "
        "-c max_connections=100 -c shared_buffers=256MB -c max_wal_size=4GB -c min_wal_size=256MB "
        "-c wal_compression=%s -c checkpoint_timeout=15min -c autovacuum_naptime=10s "
        "-c tcp_keepalives_idle=5 -c client_connection_check_interval=2s "
        "-c log_checkpoints=off -c log_timezone=UTC -c timezone=UTC",
        c->sock, lz4_known(c) ? "lz4" : "on");
    const char *argv[] = {pg_ctl, "-D", c->data, "-l",    log,     "-s", "-w",
                          "-t",   "60", "-o",    options, "start", NULL};
    return run_ok(c, argv, err);
}

/* After a kill -9 of the postmaster its children may live for a moment, and its pid file names a
 * process that is dead or, by now, another program. */
static bool start_server(const struct cluster *c, const char *conninfo, struct err *err)
{
    AUTO_FREE char *pid_file = xasprintf("%s/postmaster.pid", c->data);
    int64_t deadline = clock_mono_us() + START_US;
    while (PQping(conninfo) != PQPING_OK) {
        int pid = read_pid(c);
        if (pid > 0 && !is_postgres(pid)) {
            (void)unlink(pid_file);
        }
        if (start_once(c, err)) {
            return true;
        }
        if (clock_mono_us() > deadline) {
            AUTO_FREE char *log = xasprintf("%s/server.log", c->home);
            return err_wrap(err, "PostgreSQL does not start (see '%s')", log);
        }
        const struct timespec pause = {.tv_nsec = 200000000};
        (void)nanosleep(&pause, NULL);
    }
    return true;
}

bool private_cluster_own(const char *dir, int *ret_fd, struct err *err)
{
    AUTO_FREE char *path = xasprintf("%s/owner", dir);
    if (!make_path(dir, err)) {
        return false;
    }
    AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool locked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (!locked && fd >= 0 && errno == EWOULDBLOCK) {
        return err_set(err, ERR_CONFLICT,
                       "'%s' is used by another droverd that is running; end it, or choose another "
                       "directory",
                       dir);
    }
    if (!locked) {
        return err_set_os(err, ERR_IO, errno, "cannot lock '%s'", path);
    }
    *ret_fd = fd_take(&fd);
    return true;
}

bool private_cluster_start(const char *dir, char *ret_conninfo, size_t size, struct err *err)
{
    struct cluster c;
    if (!make_path(dir, err) || !find(dir, true, &c, err)) {
        return false;
    }
    AUTO_FD int lock = lock_dir(dir, err);
    if (lock < 0 || !make_dir(&c, c.home, err) || !make_reachable(&c, err)) {
        return false;
    }
    choose_sock(&c);
    char conninfo[PRIVATE_CLUSTER_CONNINFO_MAX];
    conninfo_of(&c, conninfo, sizeof conninfo);
    if (size <= strlen(conninfo)) {
        return err_set(err, ERR_TOO_LARGE, "the connection string is too long");
    }
    if (!make_dir(&c, c.sock, err) || !make_cluster(&c, err)) {
        return false;
    }
    if (!start_server(&c, conninfo, err)) {
        return false;
    }
    (void)snprintf(ret_conninfo, size, "%s", conninfo);
    return true;
}

int private_cluster_pid(const char *dir)
{
    struct cluster c;
    if (!find(dir, false, &c, NULL)) {
        return 0;
    }
    int pid = read_pid(&c);
    return pid > 0 && is_postgres(pid) ? pid : 0;
}

bool private_cluster_stop(const char *dir, enum private_cluster_mode mode, struct err *err)
{
    struct cluster c;
    if (!find(dir, false, &c, err)) {
        return false;
    }
    AUTO_FD int lock = lock_dir(dir, err);
    if (lock < 0) {
        return false;
    }
    int pid = read_pid(&c);
    if (pid == 0 || !is_postgres(pid)) {
        return true;
    }
    if (!make_reachable(&c, err)) {
        return false;
    }
    AUTO_FREE char *pg_ctl = xasprintf("%s/pg_ctl", c.bin);
    const char *argv[] = {pg_ctl, "-D", c.data,
                          "-s",   "-w", "-t",
                          "60",   "-m", mode == PRIVATE_CLUSTER_FAST ? "fast" : "immediate",
                          "stop", NULL};
    if (!run_ok(&c, argv, err)) {
        return false;
    }
    short_sock(&c, c.sock, sizeof c.sock);
    (void)rmdir(c.sock); /* if it was used and is empty */
    return true;
}
