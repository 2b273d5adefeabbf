/* Aim: archives we write read back with exact offsets; hostile and damaged ones are refused.
 * Method: own archives in memory, then single bytes and fields of them changed. What other programs
 * write and read is in tests/integration/common/tar_interop.py. */
#include "common/cleanup.h"
#include "common/tar.h"
#include "tests/unit/unit.h"
#include <stdio.h>

#define ARCHIVE_MAX ((size_t)1 << 24)

static void test_tar__members_come_back_with_their_offsets(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(ARCHIVE_MAX);
    char data[1600];
    memset(data, 'd', sizeof data);
    static const size_t sizes[] = {0, 1, 511, 512, 513, 1024, 1600};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "%05zu.jpg", i);
        tar_add(&b, str_of(name), (struct str){data, sizes[i]}, 1700000000);
    }
    tar_end(&b);
    assert_int_equal(b.n % TAR_BLOCK, 0);
    struct tar_reader r;
    struct tar_member m;
    struct err err = ERR_INIT;
    int64_t at = 0;
    tar_reader_init(&r, buf_str(&b));
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "%05zu.jpg", i);
        assert_true(tar_next(&r, &m, &err));
        assert_str_view(m.name, name);
        assert_int_equal(m.size, sizes[i]);
        assert_int_equal(m.mtime_s, 1700000000);
        assert_int_equal(m.offset, at + TAR_BLOCK);
        assert_memory_equal(b.p + m.offset, data, sizes[i]);
        at = m.offset + (m.size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
    }
    assert_false(tar_next(&r, &m, &err));
    assert_int_equal(err.code, ERR_NONE);
    assert_false(tar_next(&r, &m, &err)); /* and stays at the end */
    assert_int_equal(err.code, ERR_NONE);
}

static void test_tar__header_is_plain_ustar(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(ARCHIVE_MAX);
    tar_add(&b, STR("000000000.json"), STR("{}"), 1795148923);
    assert_int_equal(b.n, 2 * TAR_BLOCK);
    assert_memory_equal(b.p, "000000000.json\0", 15);
    assert_memory_equal(b.p + 100, "0000444\0", 8);
    assert_memory_equal(b.p + 108, "0000000\0", 8);
    assert_memory_equal(b.p + 124, "00000000002\0", 12);
    assert_memory_equal(b.p + 136, "15277746173\0", 12);
    assert_int_equal(b.p[156], '0');
    assert_memory_equal(b.p + 257,
                        "ustar\0"
                        "00",
                        8);
    assert_string_equal(b.p + 265, "bigdata");
    assert_string_equal(b.p + 297, "bigdata");
}

static void test_tar__long_names_get_a_pax_header(void **state)
{
    (void)state;
    char name[1025];
    memset(name, 'n', sizeof name);
    for (size_t n = 95; n <= 1024; n += n < 105 ? 1 : 57) {
        AUTO_BUF struct buf b = BUF_INIT(ARCHIVE_MAX);
        tar_add(&b, (struct str){name, n}, STR("x"), 0);
        tar_end(&b);
        struct tar_reader r;
        struct tar_member m;
        tar_reader_init(&r, buf_str(&b));
        assert_true(tar_next(&r, &m, NULL));
        assert_true(str_eq(m.name, (struct str){name, n}));
        assert_int_equal(b.p[m.offset], 'x');
        bool pax = b.p[156] == 'x';
        assert_int_equal(pax, n > 100);
    }
    AUTO_BUF struct buf b = BUF_INIT(ARCHIVE_MAX);
    tar_add(&b, (struct str){name, 1025}, STR("x"), 0);
    tar_end(&b);
    struct tar_reader r;
    struct tar_member m;
    struct err err = ERR_INIT;
    tar_reader_init(&r, buf_str(&b));
    assert_false(tar_next(&r, &m, &err));
    assert_int_equal(err.code, ERR_LIMIT);
}

static void fix_checksum(char *h)
{
    unsigned sum = 0;
    memset(h + 148, ' ', 8);
    for (int i = 0; i < TAR_BLOCK; i++) {
        sum += (uint8_t)h[i];
    }
    (void)snprintf(h + 148, 8, "%06o", sum);
}

/* A header of one member, fields open to change, then its data. */
static void header(char h[TAR_BLOCK], const char *name, char type, const char *size)
{
    AUTO_BUF struct buf b = BUF_INIT(ARCHIVE_MAX);
    tar_add(&b, STR("x"), STR(""), 0);
    memcpy(h, b.p, TAR_BLOCK);
    memset(h, 0, 100);
    memcpy(h, name, MIN(strlen(name), (size_t)100));
    h[156] = type;
    memcpy(h + 124, size, 12);
    fix_checksum(h);
}

static void add_block(struct buf *b, const char *data)
{
    char block[TAR_BLOCK] = {0};
    memcpy(block, data, strlen(data));
    buf_add(b, block, sizeof block);
}

static void refuse(const struct buf *b, const char *why)
{
    struct tar_reader r;
    struct tar_member m;
    struct err err = ERR_INIT;
    bool more;
    tar_reader_init(&r, buf_str(b));
    do {
        more = tar_next(&r, &m, &err);
    } while (more);
    if (err.code == ERR_NONE) {
        fail_msg("accepted: %s", why);
    }
}

static void refuse_header(const char *name, char type, const char *size)
{
    AUTO_BUF struct buf b = BUF_INIT(ARCHIVE_MAX);
    char h[TAR_BLOCK];
    header(h, name, type, size);
    buf_add(&b, h, sizeof h);
    add_block(&b, "data");
    tar_end(&b);
    AUTO_FREE char *why = xasprintf("%s of type %c, size %.11s", name, type, size);
    refuse(&b, why);
}

static void test_tar__names_that_lead_out_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"/etc/passwd", "..", "../x", "a/../../x", "a/..",
                                      "/",           "",   "//x",  "a/../b"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        refuse_header(bad[i], '0', "00000000001");
        refuse_header(bad[i], '5', "00000000000");
    }
    AUTO_BUF struct buf b = BUF_INIT(ARCHIVE_MAX);
    tar_add(&b, STR("..a/b../...c/./d"), STR("x"), 0); /* dots that lead nowhere */
    tar_end(&b);
    struct tar_reader r;
    struct tar_member m;
    tar_reader_init(&r, buf_str(&b));
    assert_true(tar_next(&r, &m, NULL));
}

static void test_tar__special_files_are_refused(void **state)
{
    (void)state;
    for (const char *t = "12346789KSMVNDAZ "; *t != '\0'; t++) {
        refuse_header("x", *t, "00000000000");
    }
    refuse_header("folder/", '5', "00000000001"); /* a folder with data */
}

static void test_tar__sizes_that_lie_are_refused(void **state)
{
    (void)state;
    refuse_header("x", '0', "77777777777");
    refuse_header("x", '0', "00000004000");
    refuse_header("x", '0', "0000000000z");
    refuse_header("x", '0', "-0000000001");
    refuse_header("x", '0', "\x80\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
    refuse_header("x", '0', "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff");
    refuse_header("x", '0', "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
}

static void test_tar__base_256_sizes_are_read(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(ARCHIVE_MAX);
    char h[TAR_BLOCK];
    header(h, "x", '0', "\x80\0\0\0\0\0\0\0\0\0\0\x04");
    buf_add(&b, h, sizeof h);
    add_block(&b, "data");
    tar_end(&b);
    struct tar_reader r;
    struct tar_member m;
    tar_reader_init(&r, buf_str(&b));
    assert_true(tar_next(&r, &m, NULL));
    assert_int_equal(m.size, 4);
}

/* An archive whose member has this pax text in front. */
static void pax_archive(struct buf *b, char type, const char *records, size_t records_n)
{
    char h[TAR_BLOCK];
    char size[24];
    char data[TAR_BLOCK] = {0};
    (void)snprintf(size, sizeof size, "%011zo", records_n);
    header(h, "PaxHeaders/x", type, size);
    buf_add(b, h, sizeof h);
    memcpy(data, records, records_n);
    buf_add(b, data, sizeof data);
    header(h, "x", '0', "00000000004");
    buf_add(b, h, sizeof h);
    add_block(b, "data");
    tar_end(b);
}

static void test_tar__pax_records_override_the_header(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(ARCHIVE_MAX);
    struct str records =
        STR("12 path=a/b\n23 mtime=1700000001.75\n9 size=3\n20 comment=a=b\nc=d\n\n");
    pax_archive(&b, 'x', records.p, records.n);
    struct tar_reader r;
    struct tar_member m;
    struct err err = ERR_INIT;
    tar_reader_init(&r, buf_str(&b));
    if (!tar_next(&r, &m, &err)) {
        fail_msg("%s", err.message);
    }
    assert_str_view(m.name, "a/b");
    assert_int_equal(m.mtime_s, 1700000001);
    assert_int_equal(m.size, 3);
    assert_int_equal(m.offset, 3 * TAR_BLOCK);
}

static void test_tar__broken_pax_records_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"5 path=abc\n",
                                      "13 path=abc\n",
                                      "11 path=abcd",
                                      "x path=abc\n",
                                      " path=abc\n",
                                      "8 nokey\n",
                                      "-9 a=b\n",
                                      "99999999999999999999 a=b\n",
                                      "1 a\n",
                                      "11 size=-1\n",
                                      "10 size=x\n",
                                      "8 size=\n",
                                      "28 size=9223372036854775807\n",
                                      "29 size=18446744073709551616\n",
                                      "19 size=9999999999\n",
                                      "11 mtime=x\n",
                                      "13 mtime=1.x\n",
                                      "11 path=..\n",
                                      "13 path=/abc\n",
                                      "8 path=\n",
                                      "22 GNU.sparse.major=1\n",
                                      "7 a=b\n"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO_BUF struct buf b = BUF_INIT(ARCHIVE_MAX);
        pax_archive(&b, 'x', bad[i], strlen(bad[i]));
        refuse(&b, bad[i]);
    }
    AUTO_BUF struct buf nul = BUF_INIT(ARCHIVE_MAX);
    pax_archive(&nul, 'x', "12 path=a\0b\n", 12);
    refuse(&nul, "a NUL in a path");
    AUTO_BUF struct buf global = BUF_INIT(ARCHIVE_MAX);
    pax_archive(&global, 'g', "12 path=abc\n", 12);
    refuse(&global, "a global path");
}

static void test_tar__a_global_comment_is_passed_over(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(ARCHIVE_MAX);
    pax_archive(&b, 'g', "13 comment=x\n", 13);
    struct tar_reader r;
    struct tar_member m;
    tar_reader_init(&r, buf_str(&b));
    assert_true(tar_next(&r, &m, NULL));
    assert_str_view(m.name, "x");
}

static void test_tar__cut_archives_are_refused_wherever_they_end(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(ARCHIVE_MAX);
    char name[200];
    memset(name, 'n', sizeof name);
    tar_add(&b, (struct str){name, sizeof name}, STR("some data"), 1);
    tar_add(&b, STR("b"), STR(""), 1);
    size_t whole = b.n;
    tar_end(&b);
    for (size_t n = 0; n < whole + TAR_BLOCK; n += n < 20 ? 1 : 53) {
        struct buf cut = {.p = b.p, .n = n};
        refuse(&cut, "a cut archive");
    }
}

static void test_tar__a_flipped_header_byte_is_noticed(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(ARCHIVE_MAX);
    tar_add(&b, STR("name"), STR("data"), 1700000000);
    tar_end(&b);
    for (size_t i = 0; i < TAR_BLOCK; i++) {
        if (i >= 154 && i < 156) {
            continue; /* the NUL and the space behind the checksum's digits */
        }
        b.p[i] ^= 1;
        refuse(&b, "a flipped byte");
        b.p[i] ^= 1;
    }
}

static void test_tar__a_pax_header_without_a_member_is_refused(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(ARCHIVE_MAX);
    char h[TAR_BLOCK];
    header(h, "PaxHeaders/x", 'x', "00000000013"); /* eleven bytes */
    buf_add(&b, h, sizeof h);
    add_block(&b, "11 path=ab\n");
    tar_end(&b);
    refuse(&b, "a pax header alone");
    AUTO_BUF struct buf large = BUF_INIT(ARCHIVE_MAX);
    header(h, "PaxHeaders/x", 'x', "00000200001"); /* 64 KiB and one */
    buf_add(&large, h, sizeof h);
    for (int i = 0; i < 200; i++) {
        add_block(&large, "");
    }
    refuse(&large, "a pax header of 64 KiB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tar__members_come_back_with_their_offsets),
        cmocka_unit_test(test_tar__header_is_plain_ustar),
        cmocka_unit_test(test_tar__long_names_get_a_pax_header),
        cmocka_unit_test(test_tar__names_that_lead_out_are_refused),
        cmocka_unit_test(test_tar__special_files_are_refused),
        cmocka_unit_test(test_tar__sizes_that_lie_are_refused),
        cmocka_unit_test(test_tar__base_256_sizes_are_read),
        cmocka_unit_test(test_tar__pax_records_override_the_header),
        cmocka_unit_test(test_tar__broken_pax_records_are_refused),
        cmocka_unit_test(test_tar__a_global_comment_is_passed_over),
        cmocka_unit_test(test_tar__cut_archives_are_refused_wherever_they_end),
        cmocka_unit_test(test_tar__a_flipped_header_byte_is_noticed),
        cmocka_unit_test(test_tar__a_pax_header_without_a_member_is_refused),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
