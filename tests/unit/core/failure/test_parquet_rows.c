/* Aim: the row count of real footers (written by DuckDB, in the fuzz corpus) and of hand-made ones;
 * every cut and every damaged byte is refused or answered, never read past. */
#include "common/cleanup.h"
#include "core/failure/parquet_rows.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static struct buf load(const char *path)
{
    struct buf b = BUF_INIT(1 << 20);
    AUTO_FILE FILE *f = fopen(path, "rbe");
    assert_non_null(f);
    assert_true(buf_add_file(&b, f));
    return b;
}

static void test_parquet_rows__real_footers_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int64_t rows;
    } files[] = {{"tests/fuzz/corpus/parquet_rows/part-00000.snappy.footer", 500},
                 {"tests/fuzz/corpus/parquet_rows/part-00001.snappy.footer", 513}};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        AUTO_BUF struct buf b = load(files[i].path);
        int64_t rows = -1;
        assert_true(parquet_rows(buf_str(&b), &rows));
        assert_int_equal(rows, files[i].rows);
    }
}

static void test_parquet_rows__a_cut_footer_is_refused_until_the_count_is_in(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = load("tests/fuzz/corpus/parquet_rows/part-00000.snappy.footer");
    bool seen = false;
    for (size_t n = 0; n <= b.n; n++) {
        int64_t rows = -1;
        bool ok = parquet_rows((struct str){b.p, n}, &rows);
        assert_true(!seen || ok); /* once it is there, more bytes change nothing */
        assert_true(!ok || rows == 500);
        seen |= ok;
    }
    assert_true(seen);
}

static void test_parquet_rows__damage_never_reads_outside(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = load("tests/fuzz/corpus/parquet_rows/part-00001.snappy.footer");
    for (size_t i = 0; i < b.n; i++) {
        for (int bit = 0; bit < 8; bit++) {
            int64_t rows = 0;
            b.p[i] = (char)((uint8_t)b.p[i] ^ (1U << bit));
            assert_true(!parquet_rows(buf_str(&b), &rows) || rows >= 0);
            b.p[i] = (char)((uint8_t)b.p[i] ^ (1U << bit));
        }
    }
}

static void test_parquet_rows__tail(void **state)
{
    (void)state;
    int64_t n = 0;
    assert_true(parquet_footer_n((struct str){"\x10\x02\0\0PAR1", 8}, 5000, &n));
    assert_int_equal(n, 528);
    assert_false(parquet_footer_n((struct str){"\x10\x02\0\0PAR1", 8}, 535, &n));
    assert_true(parquet_footer_n((struct str){"\x10\x02\0\0PAR1", 8}, 536, &n));
    assert_false(parquet_footer_n((struct str){"\x10\x02\0\0PARE", 8}, 5000, &n)); /* encrypted */
    assert_false(parquet_footer_n((struct str){"\0\0\0\0PAR1", 8}, 5000, &n));
    assert_false(parquet_footer_n((struct str){"\xff\xff\xff\xffPAR1", 8}, INT64_MAX, &n));
    assert_false(parquet_footer_n((struct str){"\x10\x02\0\0PAR", 7}, 5000, &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parquet_rows__real_footers_are_read),
        cmocka_unit_test(test_parquet_rows__a_cut_footer_is_refused_until_the_count_is_in),
        cmocka_unit_test(test_parquet_rows__damage_never_reads_outside),
        cmocka_unit_test(test_parquet_rows__tail),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
