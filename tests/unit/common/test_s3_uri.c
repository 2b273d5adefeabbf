/* Aim: S3 addresses are read exactly, and nothing odd becomes a host name or a path. Method: tables
 * of good and bad texts, the limits of bucket and key on both sides. Pages of listings, well-formed
 * and hostile, are read through the page reader. */
#include "common/cleanup.h"
#include "common/s3.h"
#include "common/s3_internal.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void test_uri__good_ones_are_split(void **state)
{
    (void)state;
    static const struct {
        const char *uri, *bucket, *key;
    } rows[] = {
        {"s3://abc", "abc", ""},
        {"s3://abc/", "abc", ""},
        {"s3://my-bucket/a/b c.parquet", "my-bucket", "a/b c.parquet"},
        {"s3://my.bucket.1/k", "my.bucket.1", "k"},
        {"s3://abc//double", "abc", "/double"},
        {"s3://abc/../x", "abc", "../x"},
        {"s3://abc/100%25?q#f", "abc", "100%25?q#f"},
        {"s3://abc/\xc3\xa9", "abc", "\xc3\xa9"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct s3_uri u;
        struct err err = ERR_INIT;
        assert_true(s3_parse_uri(str_of(rows[i].uri), &u, &err));
        assert_string_equal(u.bucket, rows[i].bucket);
        assert_string_equal(u.key, rows[i].key);
    }
}

static void test_uri__bad_ones_are_refused_untouched(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        "s3:/abc/k",
        "S3://abc/k",
        "https://abc/k",
        "s3://",
        "s3:///k",
        "s3://ab/k",
        "s3://-abc/k",
        "s3://abc-/k",
        "s3://.abc/k",
        "s3://a..b/k",
        "s3://ABC/k",
        "s3://a_b/k",
        "s3://a b/k",
        "s3://abc\n/k",
        "s3://abc@evil/k",
        "s3://abc:80/k",
        "s3://abc?x/k",
        "s3://abc%2f/k",
        "s3://abc/\xff\xfe",
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct s3_uri u = {.bucket = "keep", .key = "keep"};
        struct err err = ERR_INIT;
        assert_false(s3_parse_uri(str_of(rows[i]), &u, &err));
        assert_int_equal(err.code, ERR_INVALID);
        assert_string_equal(u.bucket, "keep");
        assert_string_equal(u.key, "keep");
    }
}

static void test_uri__limits_hold_on_both_sides(void **state)
{
    (void)state;
    struct s3_uri u;
    AUTO_BUF struct buf b = BUF_INIT(4096);
    buf_addf(&b, "s3://%063d/k", 0);
    assert_true(s3_parse_uri(buf_str(&b), &u, NULL));
    buf_reset(&b);
    buf_addf(&b, "s3://%064d/k", 0);
    assert_false(s3_parse_uri(buf_str(&b), &u, NULL));
    buf_reset(&b);
    buf_addf(&b, "s3://abc/%01024d", 0);
    assert_true(s3_parse_uri(buf_str(&b), &u, NULL));
    assert_int_equal(strlen(u.key), 1024);
    buf_reset(&b);
    buf_addf(&b, "s3://abc/%01025d", 0);
    assert_false(s3_parse_uri(buf_str(&b), &u, NULL));
    assert_false(s3_parse_uri((struct str){"s3://abc/a\0b", 12}, &u, NULL));
}

#define ROW(key)                                                                                   \
    "<Contents><Key>" key "</Key><LastModified>2026-01-02T03:04:05.678Z</LastModified>"            \
    "<ETag>&quot;e&quot;</ETag><Size>12</Size><Owner><ID>Key</ID></Owner></Contents>"
#define LIST(inner)                                                                                \
    "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"x\">" inner "</ListBucketResult>"
#define MORE(token)                                                                                \
    "<IsTruncated>true</IsTruncated><NextContinuationToken>" token "</NextContinuationToken>"

static bool add(struct s3_pages *p, const char *body, struct s3_result *r)
{
    *r = (struct s3_result){.outcome = AWS_OK, .status = 200};
    return s3_pages_add(p, str_of(body), r);
}

static void start(struct s3_pages *p, size_t max_keys)
{
    struct s3_uri u = {.bucket = "abc", .key = "p/"};
    s3_pages_init(p, &u, max_keys);
}

static void test_list__pages_are_joined(void **state)
{
    (void)state;
    struct s3_pages p;
    struct s3_result r;
    start(&p, 10);
    assert_true(add(
        &p, LIST(MORE("t&amp;1") "<EncodingType>url</EncodingType>" ROW("p/a%20b") ROW("p/c+d")),
        &r));
    assert_false(p.complete);
    AUTO_BUF struct buf q = BUF_INIT(4096);
    s3_pages_query(&p, &q);
    assert_non_null(strstr(buf_cstr(&q), "&continuation-token=t%261"));
    assert_non_null(strstr(buf_cstr(&q), "&prefix=p%2F"));
    assert_true(add(&p, LIST("<IsTruncated>false</IsTruncated>" ROW("p/%C3%A9")), &r) == true);
    assert_true(p.complete);
    assert_int_equal(p.listing->n, 3);
    assert_string_equal(p.listing->objects[0].key, "p/a b");
    assert_string_equal(p.listing->objects[0].etag, "\"e\"");
    assert_int_equal(p.listing->objects[0].size, 12);
    assert_int_equal(p.listing->objects[0].modified, 1767323045678000);
    assert_string_equal(p.listing->objects[1].key, "p/c d");
    assert_string_equal(p.listing->objects[2].key, "p/%C3%A9"); /* this page was not encoded */
    s3_pages_done(&p);
}

static void test_list__an_empty_listing_is_complete(void **state)
{
    (void)state;
    struct s3_pages p;
    struct s3_result r;
    start(&p, 10);
    assert_true(add(&p, LIST("<KeyCount>0</KeyCount><IsTruncated>false</IsTruncated>"), &r));
    assert_true(p.complete);
    assert_int_equal(p.listing->n, 0);
    s3_pages_done(&p);
}

static void test_list__what_is_no_listing_is_unknown(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        "<html></html>",
        "<Error><Code>InternalError</Code></Error>",
        "<ListBucketResult><Contents><Key>p/a</Key>", /* cut */
        LIST(ROW("other/a")),
        LIST(ROW("p/good") ROW("other/a")),
        LIST(ROW("") "<Contents><Key>p/a</Key><LastModified>2026-01-02T03:04:05Z</LastModified></"
                     "Contents>"),
        LIST("<Contents><Key>p/a</Key><Size>-1</Size>"
             "<LastModified>2026-01-02T03:04:05Z</LastModified></Contents>"),
        LIST("<Contents><Key>p/a</Key><Size>1</Size><LastModified>now</LastModified></Contents>"),
        LIST("<EncodingType>url</EncodingType>" ROW("p/%zz")),
        LIST("<EncodingType>url</EncodingType>" ROW("p/%00")),
        LIST("<EncodingType>url</EncodingType>" ROW("p/%ff")),
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct s3_pages p;
        struct s3_result r;
        start(&p, 10);
        assert_true(add(&p, LIST(MORE("t") ROW("p/0")), &r));
        assert_false(add(&p, rows[i], &r));
        assert_int_equal(r.outcome, AWS_UNKNOWN);
        assert_int_equal(r.err.code, ERR_NETWORK);
        assert_int_equal(p.listing->n, 1); /* a page that failed leaves nothing behind */
        s3_pages_done(&p);
    }
}

static void test_list__bounds_and_repeated_tokens_end_it(void **state)
{
    (void)state;
    struct s3_pages p;
    struct s3_result r;
    start(&p, 2);
    assert_true(add(&p, LIST(ROW("p/a") ROW("p/b")), &r));
    assert_false(add(&p, LIST(ROW("p/c")), &r));
    assert_int_equal(r.err.code, ERR_LIMIT);
    assert_int_equal(r.outcome, AWS_REFUSED);
    s3_pages_done(&p);

    start(&p, 10);
    assert_true(add(&p, LIST(MORE("same") ROW("p/a")), &r));
    assert_false(add(&p, LIST(MORE("same") ROW("p/b")), &r));
    assert_int_equal(r.err.code, ERR_AWS);
    s3_pages_done(&p);

    start(&p, 10);
    assert_false(add(&p, LIST("<IsTruncated>true</IsTruncated>" ROW("p/a")), &r));
    assert_int_equal(r.err.code, ERR_AWS);
    s3_pages_done(&p);

    start(&p, 10); /* two tokens in turn and never a key */
    bool ok = true;
    int n = 0;
    for (; ok && n < 1000; n++) {
        ok = add(&p, n % 2 ? LIST(MORE("a")) : LIST(MORE("b")), &r);
    }
    assert_false(ok);
    assert_in_range(n, 90, 110);
    s3_pages_done(&p);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uri__good_ones_are_split),
        cmocka_unit_test(test_uri__bad_ones_are_refused_untouched),
        cmocka_unit_test(test_uri__limits_hold_on_both_sides),
        cmocka_unit_test(test_list__pages_are_joined),
        cmocka_unit_test(test_list__an_empty_listing_is_complete),
        cmocka_unit_test(test_list__what_is_no_listing_is_unknown),
        cmocka_unit_test(test_list__bounds_and_repeated_tokens_end_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
