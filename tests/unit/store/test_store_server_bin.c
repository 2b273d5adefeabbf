/* Aim: a data directory gets the programs of the version that made it, a new one the newest, and
 * what is missing is named. Method: made-up folders of programs. */
#include "common/cleanup.h"
#include "store/pg/server_bin.h"
#include "tests/unit/unit.h"
#include <sys/stat.h>
#include <unistd.h>

struct world {
    char root[64];
    char bin[600];
};

static void put(const struct world *w, const char *file, mode_t mode, const char *text)
{
    AUTO_FREE char *path = xasprintf("%s/%s", w->root, file);
    for (char *p = path + strlen(w->root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        (void)mkdir(path, 0755);
        *p = '/';
    }
    AUTO_FILE FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fchmod(fileno(f), mode), 0);
}

/* A folder of programs that says it is of this version. */
static void put_bin(const struct world *w, const char *dir, const char *version)
{
    AUTO_FREE char *initdb = xasprintf("%s/initdb", dir);
    AUTO_FREE char *postgres = xasprintf("%s/postgres", dir);
    AUTO_FREE char *says =
        xasprintf("#!/bin/sh\necho 'postgres (PostgreSQL) %s (Debian)'\n", version);
    put(w, initdb, 0755, "");
    put(w, postgres, 0755, says);
}

static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    (void)snprintf(w->root, sizeof w->root, "/tmp/test-server-bin-XXXXXX");
    assert_non_null(mkdtemp(w->root));
    AUTO_FREE char *path = xasprintf("%s/local", w->root);
    assert_int_equal(setenv("PATH", path, 1), 0); /* no pg_config, and no server of this machine */
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    AUTO_FREE char *rm = xasprintf("/bin/rm -rf '%s'", w->root);
    assert_int_equal(system(rm), 0); /* NOLINT(cert-env33-c) */
    free(w);
    return 0;
}

/* The folder that is found, without the root; NULL: none. */
static const char *find(struct world *w, int major, struct err *err)
{
    AUTO_FREE char *debian = xasprintf("%s/debian", w->root);
    return server_bin_find(debian, major, w->bin, sizeof w->bin, err) ? w->bin + strlen(w->root)
                                                                      : NULL;
}

static void test_server_bin__data_go_with_the_version_that_made_them(void **state)
{
    struct world *w = *state;
    AUTO_FREE char *data = xasprintf("%s/data", w->root);
    put_bin(w, "debian/9/bin", "9.6.24");
    put_bin(w, "debian/15/bin", "15.13");
    put_bin(w, "debian/17/bin", "17.2");
    put(w, "debian/18/bin/pg_dump", 0755, ""); /* the client alone */
    assert_int_equal(server_bin_major_of(data), 0);
    assert_string_equal(find(w, 0, NULL), "/debian/17/bin");
    put(w, "data/PG_VERSION", 0600, "15\n");
    assert_int_equal(server_bin_major_of(data), 15);
    assert_string_equal(find(w, 15, NULL), "/debian/15/bin");
}

static void test_server_bin__a_missing_version_is_named(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    put_bin(w, "debian/17/bin", "17.2");
    put_bin(w, "local", "17.2");
    assert_null(find(w, 15, &err));
    assert_int_equal(err.code, ERR_PRECONDITION);
    assert_non_null(strstr(err.message, "postgresql-15"));
}

static void test_server_bin__path_comes_last(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    assert_null(find(w, 0, &err));
    assert_int_equal(err.code, ERR_PRECONDITION);
    put_bin(w, "local", "15.13");
    assert_string_equal(find(w, 0, NULL), "/local");
    put_bin(w, "debian/17/bin", "17.2");
    assert_string_equal(find(w, 0, NULL), "/debian/17/bin");
    assert_string_equal(find(w, 15, NULL), "/local"); /* its version is asked for */
    assert_null(find(w, 1, NULL));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_server_bin__##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(data_go_with_the_version_that_made_them),
        TEST(a_missing_version_is_named),
        TEST(path_comes_last),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store server bin", tests, NULL, NULL);
}
