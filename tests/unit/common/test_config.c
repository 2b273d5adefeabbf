/* Aim: settings come from defaults, file and environment in that order, and every fault is told at
 * once, with its line. Method: files below a temporary folder, variables of our own. */
#include "common/cleanup.h"
#include "common/config.h"
#include "common/json.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <unistd.h>

struct settings {
    char *listen;
    char *token_file;
    int64_t tick_us;
    bool verbose;
    char *database;
};
static const struct config_row rows[] = {
    {"listen", "TEST_LISTEN", CONFIG_STR, "127.0.0.1:8080", 0, 0, offsetof(struct settings, listen),
     "address to listen on"},
    {"token_file", NULL, CONFIG_SECRET_FILE, "", 0, 0, offsetof(struct settings, token_file),
     "file with the token"},
    {"tick_interval_us", "TEST_TICK_US", CONFIG_I64, "100000", 1000, 10000000,
     offsetof(struct settings, tick_us), "time between ticks"},
    {"verbose", "TEST_VERBOSE", CONFIG_BOOL, "false", 0, 0, offsetof(struct settings, verbose),
     "log more"},
    {"database", "TEST_DATABASE", CONFIG_STR, NULL, 0, 0, offsetof(struct settings, database),
     "where the database is"},
};
#define ROWS rows, ARRAY_LEN(rows)

struct fixture {
    char path[64];
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    (void)snprintf(f->path, sizeof f->path, "/tmp/test_config.XXXXXX");
    int fd = mkstemp(f->path);
    if (fd < 0) {
        free(f);
        return -1;
    }
    (void)close(fd);
    (void)unsetenv("TEST_LISTEN");
    (void)unsetenv("TEST_TICK_US");
    (void)unsetenv("TEST_VERBOSE");
    (void)setenv("TEST_DATABASE", "dbname=x", 1);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    (void)unlink(f->path);
    free(f);
    return 0;
}

static void write_file(const struct fixture *f, struct str text)
{
    AUTO_FILE FILE *file = fopen(f->path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text.p, 1, text.n, file), text.n);
}

static void load(const char *file, struct settings *s)
{
    struct faults faults = {0};
    if (!config_load(ROWS, file, s, &faults)) {
        fail_msg("%s: %s", faults.at[0].pointer, faults.at[0].message);
    }
}

static void test_config__defaults_then_file_then_environment(void **state)
{
    struct fixture *f = *state;
    struct settings s;
    memset(&s, 0xaa, sizeof s); /* nothing of the target is read */
    load(NULL, &s);
    assert_string_equal(s.listen, "127.0.0.1:8080");
    assert_string_equal(s.token_file, "");
    assert_int_equal(s.tick_us, 100000);
    assert_false(s.verbose);
    assert_string_equal(s.database, "dbname=x");
    config_free(ROWS, &s);
    assert_null(s.listen);
    write_file(
        f, STR("\xef\xbb\xbf{\"listen\":\"0.0.0.0:1\",\"tick_interval_us\":5000,\"verbose\":true,"
               "\"// a\":\"comment\"}"));
    load(f->path, &s);
    assert_string_equal(s.listen, "0.0.0.0:1");
    assert_int_equal(s.tick_us, 5000);
    assert_true(s.verbose);
    config_free(ROWS, &s);
    (void)setenv("TEST_LISTEN", "[::1]:9", 1);
    (void)setenv("TEST_TICK_US", "6000", 1);
    (void)setenv("TEST_VERBOSE", "0", 1);
    load(f->path, &s);
    assert_string_equal(s.listen, "[::1]:9");
    assert_int_equal(s.tick_us, 6000);
    assert_false(s.verbose);
    config_free(ROWS, &s);
}

static void check_fault(const struct fixture *f, struct str text, const char *code, int line,
                        const char *in_message)
{
    struct settings s;
    struct faults faults = {0};
    write_file(f, text);
    assert_false(config_load(ROWS, f->path, &s, &faults));
    assert_null(s.listen);
    assert_int_equal(faults.n, 1);
    assert_string_equal(faults.at[0].code, code);
    assert_int_equal(faults.at[0].pos.line, line);
    if (strstr(faults.at[0].message, in_message) == NULL &&
        strstr(faults.at[0].hint, in_message) == NULL) {
        fail_msg("no '%s' in '%s' (%s)", in_message, faults.at[0].message, faults.at[0].hint);
    }
}

static void test_config__each_fault_is_told_with_its_line(void **state)
{
    struct fixture *f = *state;
    check_fault(f, STR("{\n\"listn\": \"x\"}"), "unknown_key", 2, "did you mean 'listen'?");
    check_fault(f, STR("{\n\n\"tick_interval_us\": 999}"), "range", 3, "1000 to 10000000");
    check_fault(f, STR("{\"tick_interval_us\": 10000001}"), "range", 1, "10000001");
    check_fault(f, STR("{\"tick_interval_us\": \"5000\"}"), "type", 1, "must be an integer");
    check_fault(f, STR("{\"tick_interval_us\": 5000.5}"), "type", 1, "must be an integer");
    check_fault(f, STR("{\"verbose\": \"yes\"}"), "type", 1, "true or false");
    check_fault(f, STR("{\"verbose\": 1}"), "type", 1, "true or false");
    check_fault(f, STR("{\"listen\": null}"), "type", 1, "must be a string");
    check_fault(f, STR("{\"listen\": [\"x\"]}"), "type", 1, "must be a string");
    check_fault(f, STR("[]"), "type", 1, "one JSON object");
    check_fault(f, STR("{\n\"listen\": \"a\",\n\"listen\": \"b\"}"), "duplicate_key", 3, "line 2");
    check_fault(f, STR(""), "empty", 1, "nothing");
    check_fault(f, STR("{\"listen\": \"x\"\n"), "syntax", 2, "");
    check_fault(f, STR("listen: x\n"), "syntax", 0, "JSON"); /* YAML, but not JSON */
    check_fault(f, STR("{\"listen\": \"\xff\"}"), "encoding", 1, "UTF-8");
}

static void test_config__all_faults_come_at_once(void **state)
{
    struct fixture *f = *state;
    struct settings s;
    struct faults faults = {0};
    (void)unsetenv("TEST_DATABASE");
    (void)setenv("TEST_VERBOSE", "maybe", 1);
    write_file(f, STR("{\"lisen\":1,\"tick_interval_us\":1,\"token_file\":7}"));
    assert_false(config_load(ROWS, f->path, &s, &faults));
    assert_int_equal(faults.n, 5);
    assert_string_equal(faults.at[3].pointer, "TEST_VERBOSE");
    assert_string_equal(faults.at[4].code, "required");
    assert_non_null(strstr(faults.at[4].message, "TEST_DATABASE"));
}

static void test_config__files_that_cannot_be_read(void **state)
{
    struct fixture *f = *state;
    struct settings s;
    struct faults faults = {0};
    assert_false(config_load(ROWS, "/nonexistent/x.json", &s, &faults));
    assert_string_equal(faults.at[0].code, "file");
    assert_false(config_load(ROWS, "/tmp", &s, &faults)); /* a folder */
    AUTO_BUF struct buf big = BUF_INIT(1 << 20);
    buf_add_cstr(&big, "{\"listen\":\"");
    for (int i = 0; i < 300000; i++) {
        buf_add_char(&big, 'x');
    }
    buf_add_cstr(&big, "\"}");
    check_fault(f, buf_str(&big), "too_large", 0, "bytes");
}

static void test_config__what_it_prints_it_reads(void **state)
{
    struct fixture *f = *state;
    struct settings s;
    struct settings again;
    write_file(f, STR("{\"listen\":\"a\\\"b\",\"token_file\":\"/etc/token\",\"verbose\":true}"));
    load(f->path, &s);
    AUTO_BUF struct buf text = BUF_INIT(1 << 16);
    config_print(ROWS, &s, &text);
    write_file(f, buf_str(&text));
    (void)unsetenv("TEST_DATABASE");
    load(f->path, &again);
    assert_string_equal(again.listen, "a\"b");
    assert_string_equal(again.token_file, "/etc/token");
    assert_string_equal(again.database, "dbname=x");
    assert_true(again.verbose);
    assert_int_equal(again.tick_us, s.tick_us);
    config_free(ROWS, &s);
    config_free(ROWS, &again);
}

static void test_config__the_example_loads_and_names_everything(void **state)
{
    struct fixture *f = *state;
    struct settings s;
    AUTO_BUF struct buf text = BUF_INIT(1 << 16);
    config_example(ROWS, &text);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *name = xstrdup(rows[i].name);
        name[strlen(name) - (str_ends(str_of(name), "_us") ? 3 : 0)] = '\0';
        assert_non_null(strstr(buf_cstr(&text), name));
        assert_non_null(strstr(buf_cstr(&text), rows[i].help));
    }
    assert_non_null(strstr(buf_cstr(&text), "\"tick_interval\": \"100ms\""));
    assert_non_null(strstr(buf_cstr(&text), "time between ticks (1ms to 10s) [TEST_TICK]"));
    write_file(f, buf_str(&text));
    load(f->path, &s);
    assert_int_equal(s.tick_us, 100000);
    config_free(ROWS, &s);
}

static void test_config__a_time_has_its_unit(void **state)
{
    static const struct {
        const char *text;
        int64_t us;
    } good[] = {{"1s", 1000000}, {"0h2s", 2000000}, {"250ms", 250000}, {"1000us", 1000}};
    static const char *const bad[] = {"",
                                      "10",
                                      "1",
                                      "s",
                                      "ms",
                                      "1.5s",
                                      "-1s",
                                      "1x",
                                      "1 s",
                                      "11s",
                                      "999us",
                                      "1s1ms",
                                      "1msx",
                                      "1m",
                                      "us",
                                      "0s",
                                      "1sms",
                                      "9e9s",
                                      "99999999999999999999s",
                                      "9223372036854775807ms"};
    struct fixture *f = *state;
    struct settings s;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        AUTO_FREE char *text = xasprintf("{\"tick_interval\":\"%s\"}", good[i].text);
        write_file(f, str_of(text));
        load(f->path, &s);
        assert_int_equal(s.tick_us, good[i].us);
        config_free(ROWS, &s);
        (void)setenv("TEST_TICK", good[i].text, 1);
        load(NULL, &s);
        assert_int_equal(s.tick_us, good[i].us);
        config_free(ROWS, &s);
        (void)unsetenv("TEST_TICK");
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct faults faults = {0};
        AUTO_FREE char *text = xasprintf("{\"tick_interval\":\"%s\"}", bad[i]);
        write_file(f, str_of(text));
        assert_false(config_load(ROWS, f->path, &s, &faults));
        assert_int_equal(faults.n, 1);
        assert_string_equal(faults.at[0].pointer, "tick_interval");
    }
    check_fault(f, STR("{\"tick_interval\":10}"), "type", 1, "with its unit, like \"10s\"");
    check_fault(f, STR("{\"tick_interval_us\":\"1s\"}"), "type", 1, "an integer");
    check_fault(f, STR("{\"tick_interval\":\"1m\"}"), "range", 1, "not within 1ms to 10s");
    check_fault(f, STR("{\"tick_interval\":\"1s\",\"tick_interval_us\":1000}"), "twice", 1,
                "set twice");
    check_fault(f, STR("{\"listen_us\":\"1s\"}"), "unknown_key", 1, "unknown setting");
    (void)setenv("TEST_TICK", "1s", 1);
    (void)setenv("TEST_TICK_US", "1000", 1);
    struct faults faults = {0};
    assert_false(config_load(ROWS, NULL, &s, &faults));
    assert_string_equal(faults.at[0].message, "TEST_TICK and TEST_TICK_US: set one");
    (void)unsetenv("TEST_TICK");
    (void)unsetenv("TEST_TICK_US");
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_config__defaults_then_file_then_environment),
        T(test_config__each_fault_is_told_with_its_line),
        T(test_config__all_faults_come_at_once),
        T(test_config__files_that_cannot_be_read),
        T(test_config__what_it_prints_it_reads),
        T(test_config__the_example_loads_and_names_everything),
        T(test_config__a_time_has_its_unit),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
