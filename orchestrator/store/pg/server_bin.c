/* See server_bin.h. */
#include "server_bin.h"
#include "common/cleanup.h"
#include "common/units.h"
#include "spawn.h"
#include <glob.h>
#include <unistd.h>

#define VERSION_US (90 * USEC_PER_SEC) /* for an answer to --version */
#define MAJOR_MAX  1000

static bool is_bin_dir(const char *dir)
{
    AUTO_FREE char *initdb = xasprintf("%s/initdb", dir);
    AUTO_FREE char *postgres = xasprintf("%s/postgres", dir);
    return access(initdb, X_OK) == 0 && access(postgres, X_OK) == 0;
}

/* The number that a text begins with; 0: none. */
static int major_at(const char *text)
{
    int64_t v = 0;
    struct str s = str_of(text);
    s.n = strspn(text, "0123456789");
    return parse_i64(s, 1, MAJOR_MAX, &v, NULL) ? (int)v : 0;
}

int server_bin_major_of(const char *data)
{
    AUTO_FREE char *path = xasprintf("%s/PG_VERSION", data);
    AUTO_FILE FILE *f = fopen(path, "re");
    char line[32];
    return f != NULL && fgets(line, sizeof line, f) != NULL ? major_at(line) : 0;
}

static bool debian_find(const char *debian, int major, char *ret, size_t size)
{
    AUTO_FREE char *pattern = xasprintf("%s/*/bin", debian);
    glob_t g;
    int best = 0;
    if (glob(pattern, 0, NULL, &g) != 0) {
        return false;
    }
    for (size_t i = 0; i < g.gl_pathc; i++) {
        int is = major_at(g.gl_pathv[i] + strlen(debian) + 1);
        if (is > best && (major == 0 || is == major) && is_bin_dir(g.gl_pathv[i])) {
            best = is;
            (void)snprintf(ret, size, "%s", g.gl_pathv[i]);
        }
    }
    globfree(&g);
    return best > 0;
}

/* "postgres (PostgreSQL) 15.13" */
static bool is_of(const char *dir, int major)
{
    AUTO_FREE char *postgres = xasprintf("%s/postgres", dir);
    const char *argv[] = {postgres, "--version", NULL};
    AUTO_BUF struct buf out = BUF_INIT(SPAWN_OUTPUT_MAX);
    int status = 1;
    if (!spawn_run(argv, VERSION_US, &status, &out, NULL) || status != 0) {
        return false;
    }
    const char *at = strstr(buf_cstr(&out), "(PostgreSQL) ");
    return at != NULL && major_at(at + strlen("(PostgreSQL) ")) == major;
}

static bool suits(struct str dir, int major, char *ret, size_t size)
{
    (void)snprintf(ret, size, STR_FMT, STR_ARG(dir));
    return is_bin_dir(ret) && (major == 0 || is_of(ret, major));
}

static bool other_find(int major, char *ret, size_t size)
{
    const char *argv[] = {"pg_config", "--bindir", NULL};
    AUTO_BUF struct buf out = BUF_INIT(SPAWN_OUTPUT_MAX);
    int status = 1;
    if (spawn_run(argv, VERSION_US, &status, &out, NULL) && status == 0 &&
        suits(str_trim(buf_str(&out)), major, ret, size)) {
        return true;
    }
    struct str path = str_of(getenv("PATH"));
    while (path.n > 0) {
        if (suits(str_split(&path, ':'), major, ret, size)) {
            return true;
        }
    }
    return false;
}

bool server_bin_find(const char *debian, int major, char *ret, size_t size, struct err *err)
{
    if (debian_find(debian, major, ret, size) || other_find(major, ret, size)) {
        return true;
    }
    if (major == 0) {
        return err_set(err, ERR_PRECONDITION,
                       "no PostgreSQL server found: install it (Debian: apt-get install "
                       "postgresql) or set DROVER_DATABASE_URL");
    }
    return err_set(err, ERR_PRECONDITION,
                   "the database was made by PostgreSQL %d, which is not installed: install it "
                   "(Debian: apt-get install postgresql-%d), or move the data to another version "
                   "with pg_upgrade",
                   major, major);
}
