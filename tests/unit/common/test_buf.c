/* Aim: buffers and arenas grow to their maximum and not a byte past it.
 * Method: every public function at, below and above the maximum. */
#include "common/arena.h"
#include "common/cleanup.h"
#include "tests/unit/unit.h"
#include <errno.h>
#include <stdio.h>

static void test_buf__starts_empty_and_is_always_a_string(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(16);
    assert_string_equal(buf_cstr(&b), "");
    assert_int_equal(buf_str(&b).n, 0);
    buf_add_cstr(&b, "abc");
    buf_add_char(&b, 'd');
    buf_add_str(&b, STR("ef"));
    buf_addf(&b, "%d-%s", 1, "x");
    assert_string_equal(buf_cstr(&b), "abcdef1-x");
    assert_int_equal(b.n, 9);
    buf_reset(&b);
    assert_string_equal(buf_cstr(&b), "");
}

static void test_buf__the_maximum_cuts_and_stays_cut(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(4);
    buf_add(&b, "abcd", 4);
    assert_false(b.overflow);
    assert_string_equal(buf_cstr(&b), "abcd");
    buf_add(&b, "", 0);
    assert_false(b.overflow);
    buf_add_char(&b, 'e');
    assert_true(b.overflow);
    assert_string_equal(buf_cstr(&b), "abcd");
    buf_reset(&b);
    assert_false(b.overflow);
    buf_add_cstr(&b, "ab");
    buf_add_cstr(&b, "cde");
    assert_true(b.overflow);
    assert_string_equal(buf_cstr(&b), "abcd");
    buf_consume(&b, 2);
    buf_add_cstr(&b, "x"); /* room again, but what came before is lost: nothing may follow it */
    assert_string_equal(buf_cstr(&b), "cd");
}

static void test_buf__of_maximum_nought_takes_nothing(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(0);
    buf_add_char(&b, 'a');
    assert_true(b.overflow);
    assert_int_equal(b.n, 0);
    assert_string_equal(buf_cstr(&b), "");
}

static void test_buf__long_formats_are_whole(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(4096);
    char text[1001];
    memset(text, 'z', 1000);
    text[1000] = '\0';
    buf_addf(&b, "<%s>", text);
    assert_int_equal(b.n, 1002);
    assert_true(str_ends(buf_str(&b), "z>"));
    for (size_t n = 250; n < 260; n++) { /* around the small buffer inside */
        buf_reset(&b);
        buf_addf(&b, "%.*s", (int)n, text);
        assert_int_equal(b.n, n);
    }
}

static void test_buf__reserve_commit_consume_take(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(8);
    char *p = buf_reserve(&b, 8);
    assert_non_null(p);
    memcpy(p, "12345678", 8);
    buf_commit(&b, 5);
    assert_string_equal(buf_cstr(&b), "12345");
    assert_null(buf_reserve(&b, 4));
    assert_true(b.overflow);
    buf_consume(&b, 0);
    buf_consume(&b, 3);
    assert_string_equal(buf_cstr(&b), "45");
    buf_consume(&b, 2);
    assert_string_equal(buf_cstr(&b), "");
    AUTO_FREE char *none = buf_take(&(struct buf)BUF_INIT(1));
    assert_string_equal(none, "");
    buf_reset(&b);
    buf_add_cstr(&b, "own");
    AUTO_FREE char *own = buf_take(&b);
    assert_string_equal(own, "own");
    assert_int_equal(b.n, 0);
    assert_int_equal(b.max, 8);
    buf_add_cstr(&b, "more");
    assert_string_equal(buf_cstr(&b), "more");
}

static void test_buf__grows_to_megabytes_whole(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT((size_t)4 << 20);
    for (uint32_t i = 0; i < (1U << 20); i++) {
        buf_add(&b, &i, sizeof i);
    }
    assert_false(b.overflow);
    assert_int_equal(b.n, (size_t)4 << 20);
    assert_memory_equal(b.p + b.n - 4, "\xff\xff\x0f\0", 4);
    assert_true(b.cap <= b.max + 1);
}

/* A stream of n bytes: 0, 1, 2 and so on. */
static FILE *stream_of(size_t n)
{
    FILE *f = tmpfile();
    assert_non_null(f);
    for (size_t i = 0; i < n; i++) {
        assert_true(fputc((int)(i % 251), f) != EOF);
    }
    rewind(f);
    return f;
}

static void test_buf__a_file_is_appended_to_its_end(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 16383, 16384, 16385, 100000};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        AUTO_BUF struct buf b = BUF_INIT(1 << 20);
        AUTO_FILE FILE *f = stream_of(sizes[i]);
        buf_add_cstr(&b, "ab");
        assert_true(buf_add_file(&b, f));
        assert_int_equal(b.n, 2 + sizes[i]);
        assert_memory_equal(b.p, "ab", 2);
        for (size_t k = 0; k < sizes[i]; k++) {
            assert_int_equal((uint8_t)b.p[2 + k], k % 251);
        }
        assert_int_equal(b.p[b.n], '\0');
        assert_true(buf_add_file(&b, f)); /* at its end: nothing more */
        assert_int_equal(b.n, 2 + sizes[i]);
    }
}

static void test_buf__a_file_is_read_from_where_it_stands(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(64);
    AUTO_FILE FILE *f = stream_of(10);
    assert_int_equal(fseek(f, 7, SEEK_SET), 0);
    assert_true(buf_add_file(&b, f));
    assert_int_equal(b.n, 3);
    assert_memory_equal(b.p, "\7\10\11", 3);
}

static void test_buf__a_file_past_the_maximum_is_cut(void **state)
{
    (void)state;
    static const size_t most[] = {0, 1, 100, 16384, 20000};
    for (size_t i = 0; i < ARRAY_LEN(most); i++) {
        AUTO_BUF struct buf fits = BUF_INIT(most[i]);
        AUTO_FILE FILE *same = stream_of(most[i]);
        assert_true(buf_add_file(&fits, same));
        assert_false(fits.overflow);
        assert_int_equal(fits.n, most[i]);
        AUTO_BUF struct buf cut = BUF_INIT(most[i]);
        AUTO_FILE FILE *longer = stream_of(most[i] + 1);
        assert_false(buf_add_file(&cut, longer));
        assert_true(cut.overflow);
        assert_int_equal(cut.n, most[i]);
        assert_memory_equal(buf_cstr(&cut), buf_cstr(&fits), most[i] + 1); /* and its NUL */
        assert_false(buf_add_file(&cut, same)); /* stays cut, even at a file's end */
    }
}

static void test_buf__a_file_that_cannot_be_read_is_an_error(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(64);
    AUTO_FILE FILE *folder = fopen("tests", "re"); /* opens, and read() fails with EISDIR */
    assert_non_null(folder);
    errno = 0;
    assert_false(buf_add_file(&b, folder));
    assert_int_equal(errno, EISDIR);
    assert_false(b.overflow);
    assert_int_equal(b.n, 0);
    assert_string_equal(buf_cstr(&b), "");
    AUTO_BUF struct buf full = BUF_INIT(0);
    AUTO_FILE FILE *again = fopen("tests", "re");
    assert_non_null(again);
    assert_false(buf_add_file(&full, again));
    assert_false(full.overflow);
}

static void test_arena__memory_is_zero_aligned_and_apart(void **state)
{
    (void)state;
    CLEANUP(arena_done)
    struct arena a;
    arena_init(&a, (size_t)1 << 20);
    char *last = NULL;
    for (size_t i = 1; i < 300; i++) {
        char *p = arena_alloc(&a, i);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t j = 0; j < i; j++) {
            assert_int_equal(p[j], 0);
        }
        memset(p, 0xaa, i);
        assert_ptr_not_equal(p, last);
        last = p;
    }
    char *big = arena_alloc(&a, 300000); /* more than a block */
    assert_int_equal(big[299999], 0);
    assert_string_equal(arena_strndup(&a, "abcdef", 3), "abc");
    assert_string_equal(arena_strndup(&a, "ab", 30), "ab");
    assert_string_equal(arena_printf(&a, "%d/%s", 7, "x"), "7/x");
}

static void test_arena__reset_gives_the_same_memory_zeroed(void **state)
{
    (void)state;
    CLEANUP(arena_done)
    struct arena a;
    arena_init(&a, (size_t)1 << 20);
    char *first = arena_alloc(&a, 100);
    memset(first, 0xff, 100);
    (void)arena_alloc(&a, 200000);
    arena_reset(&a);
    assert_int_equal(a.used, 0);
    char *again = arena_alloc(&a, 100);
    assert_ptr_equal(first, again);
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(again[i], 0);
    }
    for (int i = 0; i < 100; i++) { /* a hundred ticks stay within the maximum of one */
        arena_reset(&a);
        (void)arena_alloc(&a, 900000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buf__starts_empty_and_is_always_a_string),
        cmocka_unit_test(test_buf__the_maximum_cuts_and_stays_cut),
        cmocka_unit_test(test_buf__of_maximum_nought_takes_nothing),
        cmocka_unit_test(test_buf__long_formats_are_whole),
        cmocka_unit_test(test_buf__reserve_commit_consume_take),
        cmocka_unit_test(test_buf__grows_to_megabytes_whole),
        cmocka_unit_test(test_buf__a_file_is_appended_to_its_end),
        cmocka_unit_test(test_buf__a_file_is_read_from_where_it_stands),
        cmocka_unit_test(test_buf__a_file_past_the_maximum_is_cut),
        cmocka_unit_test(test_buf__a_file_that_cannot_be_read_is_an_error),
        cmocka_unit_test(test_arena__memory_is_zero_aligned_and_apart),
        cmocka_unit_test(test_arena__reset_gives_the_same_memory_zeroed),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
