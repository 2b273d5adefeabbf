/* Aim: the blocking S3 calls survive lost replies, cut bodies, errors inside a 200 and rivals
 * without losing, doubling or mistaking an object. Method: the hostile server's stores, one bucket
 * a fault; it counts requests and checks signatures by code of its own. */
#include "common/cleanup.h"
#include "common/s3.h"
#include "tests/kit/hostile.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#define PART ((size_t)5 * 1024 * 1024)

static struct hostile server;
static struct s3_blocking *s;
static int serial; /* every test uses keys of its own */

static struct s3_uri uri(const char *bucket)
{
    struct s3_uri u = {.bucket = ""};
    (void)snprintf(u.bucket, sizeof u.bucket, "%s", bucket);
    (void)snprintf(u.key, sizeof u.key, "dir/object %d+%%.bin", ++serial);
    return u;
}

static char *random_bytes(size_t n, unsigned seed)
{
    char *p = xmalloc(n);
    for (size_t i = 0; i < n; i++) {
        p[i] = (char)rand_r(&seed);
    }
    return p;
}

static int start(void **state)
{
    (void)state;
    AUTO_FREE char *url = hostile_url(&server, "");
    (void)setenv("AWS_ENDPOINT_URL_S3", url, 1);
    (void)setenv("AWS_REGION", "us-east-1", 1);
    (void)setenv("AWS_ACCESS_KEY_ID", "AKIDTEST", 1);
    (void)setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-test", 1);
    (void)unsetenv("AWS_SESSION_TOKEN");
    return s3_blocking_new(4, &s, NULL) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    s3_blocking_free(s);
    return 0;
}

static void expect_object(const struct s3_uri *u, const char *p, size_t n)
{
    AUTO_BUF struct buf body = BUF_INIT(0);
    struct err err = ERR_INIT;
    if (!s3_blocking_get(s, u, n, &body, &err)) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(body.n, n);
    assert_memory_equal(body.p != NULL ? body.p : "", p, n);
}

static void test_put__a_lost_reply_is_sent_again(void **state)
{
    (void)state;
    struct s3_uri u = uri("lossy-put");
    assert_true(s3_blocking_put(s, &u, STR("content"), NULL, false, NULL));
    expect_object(&u, "content", 7);
}

static void test_put__create_only_recognises_its_own_lost_write(void **state)
{
    (void)state;
    struct s3_uri u = uri("lossy-put");
    struct err err = ERR_INIT;
    assert_true(s3_blocking_put(s, &u, STR("content"), NULL, true, &err));
    assert_int_equal(err.code, ERR_NONE);
    assert_false(
        s3_blocking_put(s, &u, STR("content"), NULL, true, &err)); /* no lost reply this time */
    assert_int_equal(err.code, ERR_PRECONDITION);
}

static void test_put__create_only_does_not_claim_a_rivals_object(void **state)
{
    (void)state;
    struct s3_uri u = uri("stolen");
    struct err err = ERR_INIT;
    assert_false(s3_blocking_put(s, &u, STR("mine"), NULL, true, &err));
    assert_int_equal(err.code, ERR_PRECONDITION);
    assert_int_equal(err.http_status, 412);
}

static void test_put__create_only_tells_a_twin_from_its_own_write(void **state)
{
    (void)state;
    struct s3_uri u = uri("stolen-twin"); /* same bytes, same ETag, another writer */
    struct err err = ERR_INIT;
    assert_false(s3_blocking_put(s, &u, STR("the same"), NULL, true, &err));
    assert_int_equal(err.code, ERR_PRECONDITION);
}

static void test_put__a_conflict_nobody_can_look_at_is_not_another_writers(void **state)
{
    (void)state;
    struct s3_uri u = uri("lossy-head"); /* 412, and HEAD is refused for ever */
    struct err err = ERR_INIT;
    assert_false(s3_blocking_put(s, &u, STR("mine"), NULL, true, &err));
    assert_int_not_equal(err.code, ERR_PRECONDITION);
    assert_int_equal(err_code_retry(err.code), RETRY_BACKOFF);
}

/* Put by a client that has these variables. */
static bool put_with(const char *variable, const char *value, const char *bucket, bool create_only,
                     struct err *err)
{
    struct s3_blocking *own = NULL;
    (void)setenv(variable, value, 1);
    assert_true(s3_blocking_new(2, &own, NULL));
    struct s3_uri u = uri(bucket);
    bool ok = s3_blocking_put(own, &u, STR("content"), NULL, create_only, err);
    s3_blocking_free(own);
    (void)unsetenv(variable);
    return ok;
}

static void test_checksum__of_the_answer_is_compared(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    assert_true(put_with("X", "", "summed", false, &err));
    assert_true(put_with("X", "", "summed-wrong", false, &err)); /* the first answer alone */
    AUTO_FREE char *wrong = xasprintf("PUT /summed-wrong/dir/object%%20%d%%2B%%25.bin", serial);
    assert_int_equal(hostile_count(&server, wrong), 2);
    assert_true(put_with("X", "", "summed-wrong", true, &err)); /* stored well, and it is ours */
    assert_false(put_with("X", "", "summed-damaged", false, &err));
    assert_int_equal(err.code, ERR_NETWORK);
    assert_non_null(strstr(err.message, "checksum"));
    assert_false(put_with("X", "", "summed-damaged", true, &err));
    assert_int_equal(err.code, ERR_AWS);
    assert_non_null(strstr(err.message, "is not what was sent"));
}

static void test_checksum__has_to_be_in_an_answer_of_aws(void **state)
{
    (void)state;
    AUTO_FREE char *proxy = hostile_url(&server, "");
    AUTO_FREE char *endpoint = xstrdup(getenv("AWS_ENDPOINT_URL_S3"));
    struct err err = ERR_INIT;
    (void)setenv("http_proxy", proxy, 1);
    (void)setenv("AWS_ENDPOINT_URL_S3", "http://s3.us-east-1.amazonaws.com", 1);
    assert_true(put_with("X", "", "summed", false, &err));
    assert_false(put_with("X", "", "steady", false, &err));
    assert_int_equal(err.code, ERR_AWS);
    assert_non_null(strstr(err.message, "AWS_REQUEST_CHECKSUM_CALCULATION"));
    assert_true(
        put_with("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required", "steady", false, &err));
    assert_false(
        put_with("AWS_REQUEST_CHECKSUM_CALCULATION", "when_requierd", "steady", false, &err));
    (void)unsetenv("http_proxy");
    (void)setenv("AWS_ENDPOINT_URL_S3", endpoint, 1);
    assert_true(put_with("X", "", "steady", false, &err)); /* a store that knows none */
}

static void test_get__what_is_not_there_is_said_at_once(void **state)
{
    (void)state;
    struct s3_uri u = uri("steady");
    AUTO_BUF struct buf body = BUF_INIT(0);
    struct err err = ERR_INIT;
    assert_false(s3_blocking_get(s, &u, 10, &body, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_string_equal(err.aws_code, "NoSuchKey");
    struct s3_head head;
    assert_false(s3_blocking_head(s, &u, &head, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    AUTO_FREE char *key = xasprintf("GET /steady/dir/object%%20%d%%2B%%25.bin", serial);
    assert_int_equal(hostile_count(&server, key), 1); /* not tried again */
}

static void test_head__a_refusal_without_a_word_is_asked_for_its_reason(void **state)
{
    (void)state;
    static const struct {
        const char *bucket;
        enum err_code code;
        const char *word;
    } cases[] = {{"mute-keys", ERR_UNAUTHENTICATED, "ExpiredToken"},
                 {"mute-object", ERR_AWS, "InvalidRequest"},
                 {"mute-head", ERR_AWS, "BadRequest"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct s3_uri u = uri(cases[i].bucket);
        struct s3_head head;
        struct err err = ERR_INIT;
        assert_true(s3_blocking_put(s, &u, STR("content"), NULL, false, NULL));
        assert_false(s3_blocking_head(s, &u, &head, &err));
        assert_int_equal(err.code, cases[i].code);
        assert_string_equal(err.aws_code, cases[i].word);
    }
}

static void test_get__larger_than_allowed_is_not_tried_again(void **state)
{
    (void)state;
    struct s3_uri u = uri("steady");
    assert_true(s3_blocking_put(s, &u, STR("0123456789"), NULL, false, NULL));
    AUTO_BUF struct buf body = BUF_INIT(0);
    struct err err = ERR_INIT;
    assert_false(s3_blocking_get(s, &u, 9, &body, &err));
    assert_int_equal(err.code, ERR_TOO_LARGE);
    AUTO_FREE char *key = xasprintf("GET /steady/dir/object%%20%d%%2B%%25.bin", serial);
    assert_int_equal(hostile_count(&server, key), 1);
}

static void test_get__throttles_and_cut_bodies_pass(void **state)
{
    (void)state;
    static const char *const buckets[] = {"flaky", "lossy-get"};
    for (size_t i = 0; i < ARRAY_LEN(buckets); i++) {
        struct s3_uri u = uri(buckets[i]);
        assert_true(s3_blocking_put(s, &u, STR("0123456789"), NULL, false, NULL));
        expect_object(&u, "0123456789", 10);
    }
}

/* Download an object of n bytes; ranges_n: so many requests for a part of it. */
static void expect_file(const char *bucket, size_t n, bool reversed, int ranges_n)
{
    struct s3_uri u = uri(bucket);
    AUTO_FREE char *bytes = random_bytes(n, 3);
    assert_true(s3_blocking_put(s, &u, (struct str){bytes, n}, NULL, false, NULL));
    AUTO_FILE FILE *f = tmpfile();
    assert_non_null(f);
    assert_int_equal(ftruncate(fileno(f), 5000000), 0); /* old and longer content is cut off */
    int64_t size = -1;
    struct err err = ERR_INIT;
    if (!s3_blocking_get_file(s, &u, fileno(f), &size, &err)) {
        fail_msg("%s: %s", bucket, err.message);
    }
    assert_int_equal(size, n);
    assert_int_equal(lseek(fileno(f), 0, SEEK_END), n);
    AUTO_FREE char *back = xmalloc(n + 1);
    assert_int_equal(pread(fileno(f), back, n + 1, 0), n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(back[i], bytes[reversed ? n - 1 - i : i]);
    }
    AUTO_FREE char *key = xasprintf("RANGE /%s/dir/object%%20%d%%2B%%25.bin", bucket, serial);
    assert_int_equal(hostile_count(&server, key), ranges_n);
}

static void test_file__a_cut_download_goes_on_where_it_was(void **state)
{
    (void)state;
    expect_file("lossy-get", 2000000, false, 1);
}

static void test_file__one_that_changed_meanwhile_begins_anew(void **state)
{
    (void)state;
    expect_file("changing", 300000, true, 1);
}

static void test_file__a_server_without_ranges_begins_anew(void **state)
{
    (void)state;
    expect_file("rangeless", 300000, false, 1);
}

static void test_file__empty_and_missing(void **state)
{
    (void)state;
    expect_file("steady", 0, false, 0);
    struct s3_uri u = uri("steady");
    AUTO_FILE FILE *f = tmpfile();
    int64_t size = -1;
    struct err err = ERR_INIT;
    assert_false(s3_blocking_get_file(s, &u, fileno(f), &size, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_int_equal(size, -1);
}

static void test_file__a_full_disk_is_named(void **state)
{
    (void)state;
    struct s3_uri u = uri("steady");
    assert_true(s3_blocking_put(s, &u, STR("0123456789"), NULL, false, NULL));
    AUTO_FD int fd = open("/dev/full", O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    int64_t size = -1;
    struct err err = ERR_INIT;
    assert_false(s3_blocking_get_file(s, &u, fd, &size, &err));
    assert_int_equal(err.code, ERR_IO);
}

/* The store's own checksum of an object is all that tells a flipped byte. */
static void test_get__what_was_damaged_on_the_way_is_read_again(void **state)
{
    (void)state;
    static const char *const buckets[] = {"own-flipped", "own-flipped-crc32", "own-flipped-sha256"};
    for (size_t i = 0; i < ARRAY_LEN(buckets); i++) {
        struct s3_uri u = uri(buckets[i]);
        assert_true(s3_blocking_put(s, &u, STR("0123456789"), NULL, false, NULL));
        expect_object(&u, "0123456789", 10);
        AUTO_FREE char *get = xasprintf("GET /%s/dir/object%%20%d%%2B%%25.bin", buckets[i], serial);
        assert_int_equal(hostile_count(&server, get), 2);
    }
}

static void test_get__what_stays_damaged_is_an_error(void **state)
{
    (void)state;
    struct s3_uri u = uri("own-damaged");
    AUTO_BUF struct buf body = BUF_INIT(0);
    AUTO_FILE FILE *f = tmpfile();
    struct err err = ERR_INIT;
    int64_t size = -1;
    assert_true(s3_blocking_put(s, &u, STR("0123456789"), NULL, false, NULL));
    assert_false(s3_blocking_get(s, &u, 10, &body, &err));
    assert_int_equal(err.code, ERR_NETWORK);
    assert_non_null(strstr(err.message, "not those of the checksum"));
    assert_false(s3_blocking_get_file(s, &u, fileno(f), &size, &err));
    assert_int_equal(err.code, ERR_NETWORK);
    assert_non_null(strstr(err.message, "not those of its checksum"));
    struct s3_blocking *trusting = NULL;
    (void)setenv("AWS_RESPONSE_CHECKSUM_VALIDATION", "when_required", 1);
    assert_true(s3_blocking_new(1, &trusting, NULL));
    (void)unsetenv("AWS_RESPONSE_CHECKSUM_VALIDATION");
    assert_true(s3_blocking_get(trusting, &u, 10, &body, &err));
    assert_true(s3_blocking_get_file(trusting, &u, fileno(f), &size, &err));
    s3_blocking_free(trusting);
}

static void test_file__a_flipped_byte_is_read_again(void **state)
{
    (void)state;
    expect_file("own-flipped", 300000, false, 0);
    expect_file("own-flipped-crc32", 300000, false, 0);
    expect_file("own-cut", 300000, false, 1); /* in the rest, after a cut */
    expect_file("own-lossy", 300000, false, 1);
    AUTO_FREE char *get = xasprintf("GET /own-lossy/dir/object%%20%d%%2B%%25.bin", serial);
    assert_int_equal(hostile_count(&server, get), 2); /* all is well: the rest alone */
}

/* Without one of ours S3 keeps its own, which is compared with what was sent. */
static void test_put__what_was_stored_is_not_what_was_sent(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    const char *variable = "AWS_REQUEST_CHECKSUM_CALCULATION";
    assert_false(put_with(variable, "when_required", "own-stored", false, &err));
    assert_int_equal(err.code, ERR_NETWORK);
    assert_non_null(strstr(err.message, "not what was sent"));
    assert_false(put_with(variable, "when_required", "own-stored", true, &err)); /* it is ours */
    assert_int_equal(err.code, ERR_AWS);
    assert_true(put_with(variable, "when_required", "own-damaged", true, &err));
}

/* n bytes in odd pieces; true when the upload succeeded. */
static bool upload(const struct s3_uri *u, const char *bytes, size_t n, bool create_only,
                   struct err *err)
{
    struct s3_multipart *m = NULL;
    assert_true(s3_multipart_begin(s, u, "application/x-tar", PART, &m, NULL));
    for (size_t at = 0; at < n;) {
        size_t piece = MIN(n - at, (size_t)777777);
        assert_true(s3_multipart_add(m, bytes + at, piece, NULL));
        at += piece;
    }
    int64_t size = -1;
    bool ok = s3_multipart_finish(m, create_only, &size, err);
    assert_int_equal(size, ok ? (int64_t)n : -1);
    return ok;
}

static void test_multipart__sizes_around_a_part(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, PART - 1, PART, PART + 1, 2 * PART, 2 * PART + 12345};
    AUTO_FREE char *bytes = random_bytes(3 * PART, 9);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct s3_uri u = uri("steady");
        struct err err = ERR_INIT;
        assert_true(upload(&u, bytes, sizes[i], false, &err));
        expect_object(&u, bytes, sizes[i]);
        AUTO_FREE char *post = xasprintf("POST /steady/dir/object%%20%d%%2B%%25.bin", serial);
        assert_int_equal(hostile_count(&server, post), sizes[i] > PART ? 2 : 0);
    }
}

static void test_multipart__lost_parts_and_errors_in_a_200_pass(void **state)
{
    (void)state;
    static const char *const buckets[] = {"lossy-parts", "late-error", "lossy-complete"};
    AUTO_FREE char *bytes = random_bytes(3 * PART, 11);
    for (size_t i = 0; i < ARRAY_LEN(buckets); i++) {
        struct s3_uri u = uri(buckets[i]);
        struct err err = ERR_INIT;
        if (!upload(&u, bytes, 2 * PART + 1, true, &err)) {
            fail_msg("%s: %s", buckets[i], err.message);
        }
        assert_int_equal(err.code, ERR_NONE);
        expect_object(&u, bytes, 2 * PART + 1);
    }
}

static void test_multipart__checksums_are_told_and_compared(void **state)
{
    (void)state;
    AUTO_FREE char *bytes = random_bytes(2 * PART, 17);
    static const char *const buckets[] = {"summed", "summed-wrong"}; /* lies once about each */
    for (size_t i = 0; i < ARRAY_LEN(buckets); i++) {
        struct s3_uri u = uri(buckets[i]);
        struct err err = ERR_INIT;
        if (!upload(&u, bytes, 2 * PART, true, &err)) {
            fail_msg("%s: %s", buckets[i], err.message);
        }
        expect_object(&u, bytes, 2 * PART);
        AUTO_FREE char *put = xasprintf("PUT /%s/dir/object%%20%d%%2B%%25.bin", buckets[i], serial);
        assert_int_equal(hostile_count(&server, put), 2 + 2 * i);
    }
}

/* In pieces that are no parts; the checksum of a store is of the whole. */
static void test_multipart__of_the_stores_own_checksum(void **state)
{
    (void)state;
    AUTO_FREE char *bytes = random_bytes(2 * PART + 5, 23);
    struct s3_blocking *usual = s;
    struct err err = ERR_INIT;
    (void)setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required", 1);
    assert_true(s3_blocking_new(2, &s, NULL));
    (void)unsetenv("AWS_REQUEST_CHECKSUM_CALCULATION");
    struct s3_uri u = uri("own-damaged");
    bool good = upload(&u, bytes, 2 * PART + 5, true, &err);
    u = uri("own-stored");
    bool bad = upload(&u, bytes, 2 * PART + 5, true, &err);
    s3_blocking_free(s);
    s = usual;
    assert_true(good);
    assert_false(bad);
    assert_int_equal(err.code, ERR_AWS);
    assert_non_null(strstr(err.message, "is not what was sent"));
}

static void test_multipart__a_rival_behind_a_lost_reply_is_no_write_of_ours(void **state)
{
    (void)state;
    AUTO_FREE char *bytes = random_bytes(2 * PART, 19);
    struct s3_uri u = uri("stolen-complete");
    struct err err = ERR_INIT;
    assert_false(upload(&u, bytes, 2 * PART, true, &err));
    assert_int_equal(err.code, ERR_PRECONDITION);
    expect_object(&u, "theirs", 6);
}

static void test_multipart__a_rival_wins_and_the_parts_go(void **state)
{
    (void)state;
    AUTO_FREE char *bytes = random_bytes(2 * PART, 13);
    struct s3_uri u = uri("precondition");
    struct err err = ERR_INIT;
    assert_false(upload(&u, bytes, 2 * PART, true, &err));
    assert_int_equal(err.code, ERR_PRECONDITION);
    AUTO_FREE char *key = xasprintf("DELETE /precondition/dir/object%%20%d%%2B%%25.bin", serial);
    assert_int_equal(hostile_count(&server, key), 1);
}

static void test_multipart__abort_removes_the_parts(void **state)
{
    (void)state;
    AUTO_FREE char *bytes = random_bytes(2 * PART, 15);
    struct s3_uri u = uri("steady");
    struct s3_multipart *m = NULL;
    assert_true(s3_multipart_begin(s, &u, NULL, PART, &m, NULL));
    assert_true(s3_multipart_add(m, bytes, PART + 1, NULL));
    s3_multipart_abort(m);
    AUTO_FREE char *key = xasprintf("DELETE /steady/dir/object%%20%d%%2B%%25.bin", serial);
    assert_int_equal(hostile_count(&server, key), 1);
    s3_multipart_abort(NULL);
    assert_true(s3_multipart_begin(s, &u, NULL, PART, &m, NULL));
    s3_multipart_abort(m); /* nothing was created, nothing is asked */
    assert_int_equal(hostile_count(&server, key), 1);
    struct err err = ERR_INIT;
    assert_false(s3_multipart_begin(s, &u, NULL, PART - 1, &m, &err));
    assert_int_equal(err.code, ERR_INVALID);
}

static void test_multipart__parts_grow_for_the_largest_object(void **state)
{
    (void)state;
    size_t sum = 0;
    size_t largest = 0;
    for (size_t i = 0; i < S3_UPLOAD_PARTS_MAX; i++) {
        size_t n = s3_multipart_part_bytes((size_t)8 << 20, i);
        assert_true(n >= largest && (i >= S3_PARTS_SAME || n == (size_t)8 << 20));
        largest = n;
        sum += n;
    }
    assert_true(sum >= (size_t)5 << 40);
    assert_true(largest <= (size_t)5 << 30);
}

static void test_sync__failures_of_s3_are_waited_for(void **state)
{
    (void)state;
    struct s3_blocking *once = NULL;
    struct err err = ERR_INIT;
    struct s3_uri u = uri("flaky");
    assert_true(s3_blocking_new(1, &once, NULL));
    assert_true(s3_blocking_put(s, &u, STR("0123456789"), NULL, false, NULL));
    AUTO_BUF struct buf body = BUF_INIT(0);
    assert_false(s3_blocking_get(once, &u, 100, &body, &err));
    assert_true(err.http_status >= 500);
    s3_blocking_be_patient(once, 20 * USEC_PER_SEC);
    u = uri("flaky");
    assert_true(s3_blocking_put(s, &u, STR("0123456789"), NULL, false, NULL));
    bool got = s3_blocking_get(once, &u, 100, &body, &err);
    if (!got) {
        fail_msg("%s (%d, HTTP %d)", err.message, err.code, err.http_status);
    }
    assert_true(str_eq_cstr(buf_str(&body), "0123456789"));
    s3_blocking_free(once);
}

static void test_sync__a_server_that_is_away_costs_all_tries(void **state)
{
    (void)state;
    AUTO_FREE char *url = xasprintf("http://127.0.0.1:%d", hostile_closed_port());
    (void)setenv("AWS_ENDPOINT_URL_S3", url, 1);
    struct s3_blocking *away = NULL;
    assert_true(s3_blocking_new(2, &away, NULL));
    struct s3_uri u = uri("steady");
    struct err err = ERR_INIT;
    assert_false(s3_blocking_put(away, &u, STR("x"), NULL, false, &err));
    assert_int_equal(err.code, ERR_NETWORK);
    s3_blocking_free(away);
    s3_blocking_free(NULL);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    hostile_start(&server);
#define TEST(f) cmocka_unit_test_setup_teardown(f, start, end)
    const struct CMUnitTest tests[] = {
        TEST(test_put__a_lost_reply_is_sent_again),
        TEST(test_put__create_only_recognises_its_own_lost_write),
        TEST(test_put__create_only_does_not_claim_a_rivals_object),
        TEST(test_put__create_only_tells_a_twin_from_its_own_write),
        TEST(test_put__a_conflict_nobody_can_look_at_is_not_another_writers),
        TEST(test_checksum__of_the_answer_is_compared),
        TEST(test_checksum__has_to_be_in_an_answer_of_aws),
        TEST(test_get__what_was_damaged_on_the_way_is_read_again),
        TEST(test_get__what_stays_damaged_is_an_error),
        TEST(test_file__a_flipped_byte_is_read_again),
        TEST(test_put__what_was_stored_is_not_what_was_sent),
        TEST(test_multipart__of_the_stores_own_checksum),
        TEST(test_get__what_is_not_there_is_said_at_once),
        TEST(test_head__a_refusal_without_a_word_is_asked_for_its_reason),
        TEST(test_get__larger_than_allowed_is_not_tried_again),
        TEST(test_get__throttles_and_cut_bodies_pass),
        TEST(test_file__a_cut_download_goes_on_where_it_was),
        TEST(test_file__one_that_changed_meanwhile_begins_anew),
        TEST(test_file__a_server_without_ranges_begins_anew),
        TEST(test_file__empty_and_missing),
        TEST(test_file__a_full_disk_is_named),
        TEST(test_multipart__sizes_around_a_part),
        TEST(test_multipart__lost_parts_and_errors_in_a_200_pass),
        TEST(test_multipart__checksums_are_told_and_compared),
        TEST(test_multipart__a_rival_behind_a_lost_reply_is_no_write_of_ours),
        TEST(test_multipart__a_rival_wins_and_the_parts_go),
        TEST(test_multipart__abort_removes_the_parts),
        TEST(test_multipart__parts_grow_for_the_largest_object),
        TEST(test_sync__failures_of_s3_are_waited_for),
        TEST(test_sync__a_server_that_is_away_costs_all_tries),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hostile_stop(&server);
    return failed;
}
