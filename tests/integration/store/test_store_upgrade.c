/* Aim: a droverd starts on the schema of a newer one when all migrations it does not know say that
 * they are additive, and only then; the migrations of this release say which they are, and those
 * that are additive remove nothing. Method: tables of migrations over fresh databases. */
#include "common/str.h"
#include "store/pg/migrate.h"
#include "tests/kit/pg_fixture.h"
#include <libpq-fe.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MIGRATION(name, sql)                                                                       \
    {                                                                                              \
        (name), (sql), (sql) + sizeof(sql) - 1                                                     \
    }
#define MIGRATIONS_END                                                                             \
    {                                                                                              \
        NULL, NULL, NULL                                                                           \
    }
#define FIRST_THAT_SAYS "0016" /* older ones say nothing, and count as not additive */

extern const struct migration migration_table[];

static const char one[] = "CREATE TABLE one (a int);";
static const char adds[] = "-- additive: a table\nCREATE TABLE two (a int);";
static const char adds_more[] = "-- additive: a column\nALTER TABLE one ADD COLUMN b int;";
static const char removes[] = "-- not additive: nobody reads it\nALTER TABLE one DROP COLUMN a;";
static const char says_it_late[] = "CREATE TABLE four (a int);\n-- additive: a table\n";

static const struct migration known[] = {MIGRATION("0001_a", one), MIGRATIONS_END};

static int migrate(const char *db, const struct migration *table, struct err *ret_why)
{
    int applied = -1;
    *ret_why = (struct err)ERR_INIT;
    return migrate_run_table(db, table, &applied, ret_why) ? applied : -1;
}

static void test_upgrade__an_older_binary_starts_on_an_additive_schema(void **state)
{
    (void)state;
    char db[600];
    struct err why;
    pg_fixture_empty_database(db, sizeof db);
    const struct migration newer[] = {MIGRATION("0001_a", one), MIGRATION("0002_b", adds),
                                      MIGRATION("0003_c", adds_more), MIGRATIONS_END};
    assert_int_equal(migrate(db, newer, &why), 3);
    assert_int_equal(migrate(db, known, &why), 0);
    assert_int_equal(pg_i64(db, "SELECT count(*) FROM schema_migration WHERE additive"), 2);
    assert_int_equal(migrate(db, newer, &why), 0); /* and forward again */
}

static void test_upgrade__one_that_is_not_additive_is_refused_by_name(void **state)
{
    (void)state;
    char db[600];
    struct err why;
    pg_fixture_empty_database(db, sizeof db);
    const struct migration newer[] = {MIGRATION("0001_a", one), MIGRATION("0002_b", adds),
                                      MIGRATION("0003_c", removes), MIGRATIONS_END};
    assert_int_equal(migrate(db, newer, &why), 3);
    assert_int_equal(migrate(db, known, &why), -1);
    assert_string_equal(err_code_name(why.code), err_code_name(ERR_PRECONDITION));
    assert_non_null(strstr(why.message, "'0003_c'"));
    assert_non_null(strstr(why.message, "not additive"));
}

static void test_upgrade__only_the_first_line_counts(void **state)
{
    (void)state;
    char db[600];
    struct err why;
    pg_fixture_empty_database(db, sizeof db);
    const struct migration newer[] = {MIGRATION("0001_a", one), MIGRATION("0002_b", says_it_late),
                                      MIGRATIONS_END};
    assert_int_equal(migrate(db, newer, &why), 2);
    assert_int_equal(migrate(db, known, &why), -1);
}

/* The releases before this rule made the table without the column. */
static void test_upgrade__an_older_table_gets_the_column(void **state)
{
    (void)state;
    char db[600];
    struct err why;
    pg_fixture_empty_database(db, sizeof db);
    pg_sql(db, "CREATE TABLE schema_migration (name text PRIMARY KEY, sha256 text NOT NULL, "
               "applied_at timestamptz NOT NULL DEFAULT clock_timestamp())");
    pg_sql(db, "INSERT INTO schema_migration VALUES ('0009_newer', 'x')");
    assert_int_equal(migrate(db, known, &why), -1); /* it said nothing, so it is not additive */
    assert_non_null(strstr(why.message, "'0009_newer'"));
    pg_sql(db, "DELETE FROM schema_migration");
    assert_int_equal(migrate(db, known, &why), 1);
    assert_int_equal(pg_i64(db, "SELECT count(*) FROM schema_migration WHERE NOT additive"), 1);
}

/* pg_dump holds ACCESS SHARE on every table for as long as it runs. */
static void test_upgrade__a_start_without_migrations_waits_for_nobody(void **state)
{
    (void)state;
    char db[600];
    struct err why;
    pg_fixture_empty_database(db, sizeof db);
    assert_int_equal(migrate(db, known, &why), 1);
    PGconn *dump = PQconnectdb(db);
    PQclear(PQexec(dump, "BEGIN; LOCK TABLE one, schema_migration IN ACCESS SHARE MODE"));
    assert_int_equal(migrate(db, known, &why), 0);
    PQfinish(dump);
}

static bool begins(const struct migration *m, const char *with)
{
    size_t n = strlen(with);
    return (size_t)(m->end - m->start) > n && strncmp(m->start, with, n) == 0;
}

/* The list of a check in this text: from "ADD CONSTRAINT name CHECK (", on one line or two, to the
 * end of its statement; empty: it has none. */
static struct str check_list(struct str text, const char *name)
{
    const char *at = NULL;
    for (int lines = 1; lines <= 2 && at == NULL; lines++) {
        char head[100];
        (void)snprintf(head, sizeof head, "ADD CONSTRAINT %s%sCHECK (", name,
                       lines == 1 ? " " : "\n    ");
        at = memmem(text.p, text.n, head, strlen(head));
    }
    const char *end = at != NULL ? memchr(at, ';', text.n - (size_t)(at - text.p)) : NULL;
    return end != NULL ? (struct str){at, (size_t)(end - at)} : STR("");
}

/* A check may be replaced by one that allows all that it allowed, and more: each word of the list
 * that the migrations before made last is in this one's. */
static bool widens(const struct migration *table, const struct migration *m, const char *name)
{
    struct str now = check_list((struct str){m->start, (size_t)(m->end - m->start)}, name);
    struct str was = STR("");
    for (const struct migration *o = table; o != m; o++) {
        struct str list = check_list((struct str){o->start, (size_t)(o->end - o->start)}, name);
        was = list.n > 0 ? list : was;
    }
    size_t words = 0;
    for (size_t i = 0; i < was.n; i++) {
        const char *close = was.p[i] == '\'' ? memchr(was.p + i + 1, '\'', was.n - i - 1) : NULL;
        if (close != NULL) {
            size_t n = (size_t)(close - (was.p + i)) + 1;
            if (memmem(now.p, now.n, was.p + i, n) == NULL) {
                return false;
            }
            words++;
            i += n - 1;
        }
    }
    return words > 0;
}

/* What keeps the release before from running on it; "": nothing that a reader of words finds. */
static const char *takes_away(const struct migration *table, const struct migration *m)
{
    char name[64];
    static const char *const words[] = {"DROP ",     "RENAME ",        "SET NOT NULL",
                                        " TYPE ",    "ADD CONSTRAINT", "ADD CHECK",
                                        "TRUNCATE ", "DELETE FROM",    "REVOKE "};
    size_t n = (size_t)(m->end - m->start);
    const char *drops = memmem(m->start, n, "DROP CONSTRAINT ", 16);
    if (drops != NULL && sscanf(drops, "DROP CONSTRAINT %63[a-z_];", name) == 1 &&
        widens(table, m, name)) {
        return "";
    }
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (memmem(m->start, n, words[i], strlen(words[i])) != NULL) {
            return words[i];
        }
    }
    struct str text = {m->start, n};
    while (text.n > 0) {
        struct str line = str_split(&text, '\n');
        bool column = memmem(line.p, line.n, "ADD COLUMN", 10) != NULL;
        if (column && memmem(line.p, line.n, "NOT NULL", 8) != NULL &&
            memmem(line.p, line.n, "DEFAULT", 7) == NULL) {
            return "a column that may not be NULL and has no default";
        }
    }
    return "";
}

static void test_upgrade__what_takes_away_is_found(void **state)
{
    (void)state;
    static const char must[] = "ALTER TABLE one\n    ADD COLUMN b int NOT NULL;";
    static const char may[] = "ALTER TABLE one\n    ADD COLUMN b int NOT NULL DEFAULT 0;";
    static const char checks[] = "ALTER TABLE one ADD CONSTRAINT a_check CHECK (a IN ('x', 'y'));";
    static const char narrows[] = "ALTER TABLE one DROP CONSTRAINT a_check;\n"
                                  "ALTER TABLE one ADD CONSTRAINT a_check CHECK (a IN ('x'));";
    static const char widened[] =
        "ALTER TABLE one DROP CONSTRAINT a_check;\n"
        "ALTER TABLE one ADD CONSTRAINT a_check\n    CHECK (a IN ('x', 'z'));";
    static const struct migration samples[] = {MIGRATION("a", adds),    MIGRATION("b", adds_more),
                                               MIGRATION("c", may),     MIGRATION("d", removes),
                                               MIGRATION("e", must),    MIGRATION("f", checks),
                                               MIGRATION("g", narrows), MIGRATION("h", widened)};
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        assert_int_equal(takes_away(samples, &samples[i])[0] != '\0', i >= 3 && i != 7);
    }
}

static void test_upgrade__every_migration_says_which_it_is(void **state)
{
    (void)state;
    int wrong = 0;
    for (const struct migration *m = migration_table; m->name != NULL; m++) {
        bool additive = begins(m, "-- additive: ");
        if (strcmp(m->name, FIRST_THAT_SAYS) >= 0 && !additive && !begins(m, "-- not additive: ")) {
            print_error("%s: its first line is '-- additive: ...' or '-- not additive: ...'\n",
                        m->name);
            wrong++;
        }
        if (additive && takes_away(migration_table, m)[0] != '\0') {
            print_error("%s says that it is additive, and has %s\n", m->name,
                        takes_away(migration_table, m));
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_upgrade__an_older_binary_starts_on_an_additive_schema),
        cmocka_unit_test(test_upgrade__one_that_is_not_additive_is_refused_by_name),
        cmocka_unit_test(test_upgrade__only_the_first_line_counts),
        cmocka_unit_test(test_upgrade__an_older_table_gets_the_column),
        cmocka_unit_test(test_upgrade__a_start_without_migrations_waits_for_nobody),
        cmocka_unit_test(test_upgrade__what_takes_away_is_found),
        cmocka_unit_test(test_upgrade__every_migration_says_which_it_is),
    };
    return cmocka_run_group_tests_name("store upgrade", tests, NULL, NULL);
}
