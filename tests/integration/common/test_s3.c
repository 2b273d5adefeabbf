/* Aim: objects written through the S3 client are there, whole, under the names given, and the rules
 * of conditional writes, listings and signatures hold. Method: build/bin/drover-local, a real S3
 * endpoint of another author, over a folder of its own. */
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/json.h"
#include "common/s3.h"
#include "tests/kit/local.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#define PART ((size_t)5 * 1024 * 1024)

static struct local local;
static struct s3_blocking *s;

static struct s3_uri uri(const char *key)
{
    struct s3_uri u = {.bucket = "data"};
    (void)snprintf(u.key, sizeof u.key, "%s", key);
    return u;
}

static void put(const char *key, struct str body)
{
    struct s3_uri u = uri(key);
    struct err err = ERR_INIT;
    if (!s3_blocking_put(s, &u, body, NULL, false, &err)) {
        fail_msg("%s", err.message);
    }
}

static void expect_object(const struct s3_uri *u, struct str want)
{
    AUTO_BUF struct buf body = BUF_INIT(0);
    struct err err = ERR_INIT;
    if (!s3_blocking_get(s, u, want.n, &body, &err)) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(body.n, want.n);
    assert_memory_equal(buf_cstr(&body), want.p, want.n);
}

static void test_object__comes_back_as_it_was_put(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "plain",           "a/b/c.parquet",        "with space", "per%cent%20",   "plus+plus",
        "q?m#h&a=b;c",     "\xc3\xa9\xe2\x82\xac", "quote'\"<>", "tilde~-_.!*()", "a=1/b=2/part-0",
        "colon:at@comma,", "back\\slash",          ".hidden/.x", "dots..in..it",
    };
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        AUTO_FREE char *body = xasprintf("body of %s", keys[i]);
        struct s3_uri u = uri(keys[i]);
        put(keys[i], str_of(body));
        expect_object(&u, str_of(body));
        struct s3_head head;
        assert_true(s3_blocking_head(s, &u, &head, NULL));
        assert_int_equal(head.size, strlen(body));
        uint8_t raw[32];
        AUTO_BUF struct buf sum = BUF_INIT(64);
        hash_sha256(body, strlen(body), raw);
        str_base64(&sum, raw, sizeof raw);
        assert_string_equal(head.checksum, buf_cstr(&sum));
        assert_int_equal(strlen(head.writer), 32);
    }
}

static void test_object__empty_and_large(void **state)
{
    (void)state;
    struct s3_uri u = uri("empty");
    put("empty", STR(""));
    expect_object(&u, STR(""));
    size_t n = 30000001;
    AUTO_FREE char *bytes = xmalloc(n);
    for (size_t i = 0; i < n; i++) {
        bytes[i] = (char)(i * 2654435761u >> 13);
    }
    u = uri("large");
    put("large", (struct str){bytes, n});
    expect_object(&u, (struct str){bytes, n});
    AUTO_FILE FILE *f = tmpfile();
    int64_t size = -1;
    _Atomic int64_t received = 0;
    s3_blocking_count(s, &received);
    assert_true(s3_blocking_get_file(s, &u, fileno(f), &size, NULL));
    s3_blocking_count(s, NULL);
    assert_int_equal(size, n);
    assert_true(received >= (int64_t)n); /* more when a try was broken off */
    AUTO_FREE char *back = xmalloc(n);
    assert_int_equal(pread(fileno(f), back, n, 0), n);
    assert_memory_equal(back, bytes, n);
}

static void test_object__missing_ones_and_missing_buckets_are_not_found(void **state)
{
    (void)state;
    struct s3_uri u = uri("nobody");
    AUTO_BUF struct buf body = BUF_INIT(0);
    struct err err = ERR_INIT;
    assert_false(s3_blocking_get(s, &u, 10, &body, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_string_equal(err.aws_code, "NoSuchKey");
    struct s3_uri other = {.bucket = "nobucket", .key = "k"};
    assert_false(s3_blocking_get(s, &other, 10, &body, &err));
    assert_string_equal(err.aws_code, "NoSuchBucket");
    assert_false(s3_blocking_put(s, &other, STR("x"), NULL, false, &err));
    assert_string_equal(err.aws_code, "NoSuchBucket");
}

static void test_delete__removes_and_may_be_repeated(void **state)
{
    (void)state;
    struct s3_uri u = uri("to/delete");
    put("to/delete", STR("x"));
    assert_true(s3_blocking_delete(s, &u, NULL));
    struct s3_head head;
    struct err err = ERR_INIT;
    assert_false(s3_blocking_head(s, &u, &head, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_true(s3_blocking_delete(s, &u, NULL));
}

struct got {
    int n;
    struct s3_result r;
    char body[64];
    size_t keys_n;
    bool sorted;
    char first[64]; /* key of a listing */
    char next[128]; /* token of the next page */
};

static void on_result(void *ctx, const struct s3_result *r)
{
    struct got *g = ctx;
    g->n++;
    g->r = *r;
    (void)snprintf(g->body, sizeof g->body, STR_FMT, (int)MIN(r->body.n, sizeof g->body - 1),
                   r->body.p != NULL ? r->body.p : "");
    g->sorted = true;
    g->keys_n = r->listing != NULL ? r->listing->n : 0;
    (void)snprintf(g->first, sizeof g->first, "%s",
                   g->keys_n > 0 ? r->listing->objects[0].key : "");
    (void)snprintf(g->next, sizeof g->next, "%s", r->next_token != NULL ? r->next_token : "");
    for (size_t i = 1; i < g->keys_n; i++) {
        g->sorted &= strcmp(r->listing->objects[i - 1].key, r->listing->objects[i].key) < 0;
    }
}

static struct loop *l;
static struct aws_client *c;

static int open_client(void **state)
{
    (void)state;
    struct aws_config cfg = {.user_agent = "drover-test/1"};
    return loop_new(&l, NULL) && aws_client_new(l, &cfg, &c, NULL) ? 0 : -1;
}

static int close_client(void **state)
{
    (void)state;
    aws_client_free(c);
    loop_free(l);
    return 0;
}

static void finish(struct got *g)
{
    int64_t deadline_us = clock_mono_us() + 30 * USEC_PER_SEC;
    while (g->n == 0) {
        assert_true(clock_mono_us() < deadline_us);
        loop_run_once(l, 100 * USEC_PER_MSEC);
    }
    assert_int_equal(g->n, 1);
}

static void test_range__gives_exactly_the_bytes_asked_for(void **state)
{
    (void)state;
    static const struct {
        int64_t from, to;
        const char *want;
        int status;
    } rows[] = {
        {0, -1, "0123456789", 200}, {0, 0, "0", 206},       {3, 5, "345", 206},
        {9, 9, "9", 206},           {4, -1, "456789", 206}, {5, 1000, "56789", 206},
        {0, 9, "0123456789", 206},
    };
    put("ranged", STR("0123456789"));
    struct s3_uri u = uri("ranged");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct got g = {.n = 0};
        s3_get(c, &u, rows[i].from, rows[i].to, 100, on_result, &g);
        finish(&g);
        assert_int_equal(g.r.outcome, AWS_OK);
        assert_int_equal(g.r.status, rows[i].status);
        assert_string_equal(g.body, rows[i].want);
        assert_int_equal(g.r.size, 10);
    }
    struct got g = {.n = 0};
    s3_get(c, &u, 10, -1, 100, on_result, &g);
    finish(&g);
    assert_int_equal(g.r.outcome, AWS_REFUSED);
    assert_int_equal(g.r.status, 416);
}

static void test_async__put_head_get_delete(void **state)
{
    (void)state;
    struct s3_uri u = uri("async object");
    struct got g = {.n = 0};
    s3_put(c, &u, STR("abc"), "text/plain", "*", NULL, on_result, &g);
    finish(&g);
    assert_int_equal(g.r.outcome, AWS_OK);
    assert_string_equal(g.r.etag, "\"900150983cd24fb0d6963f7d28e17f72\"");
    g = (struct got){.n = 0};
    s3_put(c, &u, STR("abc"), "text/plain", "*", NULL, on_result, &g);
    finish(&g);
    assert_int_equal(g.r.outcome, AWS_REFUSED);
    assert_int_equal(g.r.status, 412);
    assert_int_equal(g.r.err.code, ERR_PRECONDITION);
    g = (struct got){.n = 0};
    s3_head(c, &u, on_result, &g);
    finish(&g);
    assert_int_equal(g.r.size, 3);
    g = (struct got){.n = 0};
    s3_delete(c, &u, on_result, &g);
    finish(&g);
    assert_int_equal(g.r.outcome, AWS_OK);
    g = (struct got){.n = 0};
    s3_head(c, &u, on_result, &g);
    finish(&g);
    assert_int_equal(g.r.status, 404);
    assert_int_equal(g.r.err.code, ERR_NOT_FOUND);
}

static void test_list__more_than_a_page_in_order(void **state)
{
    (void)state;
    for (int i = 0; i < 1205; i++) {
        char key[64];
        (void)snprintf(key, sizeof key, "many/k %05d+%%", i * 7919 % 1205);
        put(key, STR("x"));
    }
    put("many0", STR("not below"));
    struct s3_uri u = uri("many/");
    struct s3_listing listing = {0};
    struct err err = ERR_INIT;
    assert_true(s3_blocking_list(s, &u, 2000, &listing, &err));
    assert_int_equal(listing.n, 1205);
    for (size_t i = 0; i < listing.n; i++) {
        char key[64];
        (void)snprintf(key, sizeof key, "many/k %05zu+%%", i);
        assert_string_equal(listing.objects[i].key, key);
        assert_int_equal(listing.objects[i].size, 1);
        assert_string_equal(listing.objects[i].etag, "\"9dd4e461268c8034f5c8564e155c67a6\"");
        assert_true(listing.objects[i].modified > clock_wall_us() - 600 * USEC_PER_SEC);
        assert_true(listing.objects[i].modified < clock_wall_us() + 5 * USEC_PER_SEC);
    }
    s3_listing_done(&listing);
    assert_false(s3_blocking_list(s, &u, 1204, &listing, &err));
    assert_int_equal(err.code, ERR_LIMIT);
    struct got g = {.n = 0};
    s3_list(c, &u, 1205, on_result, &g);
    finish(&g);
    assert_int_equal(g.r.outcome, AWS_OK);
    assert_int_equal(g.keys_n, 1205);
    assert_true(g.sorted);
    g = (struct got){.n = 0};
    u = uri("many/k 0000");
    s3_list(c, &u, 100, on_result, &g);
    finish(&g);
    assert_int_equal(g.keys_n, 10);
    g = (struct got){.n = 0};
    put("many/sub/a", STR("1"));
    put("many/sub/b/c", STR("2"));
    put("many/tub/d", STR("3"));
    u = uri("many/");
    s3_list_level(c, &u, 1207, on_result, &g);
    finish(&g);
    assert_int_equal(g.r.outcome, AWS_OK);
    assert_int_equal(g.keys_n, 1207);
    assert_true(s3_blocking_list_level(s, &u, 1207, &listing, &err));
    assert_int_equal(listing.n, 1207);
    assert_string_equal(listing.objects[1204].key, "many/k 01204+%");
    assert_string_equal(listing.objects[1205].key, "many/sub/");
    assert_int_equal(listing.objects[1205].size, 0);
    assert_string_equal(listing.objects[1205].etag, "");
    assert_string_equal(listing.objects[1206].key, "many/tub/");
    s3_listing_done(&listing);
    g = (struct got){.n = 0};
    u = uri("nothing here/");
    s3_list(c, &u, 100, on_result, &g);
    finish(&g);
    assert_int_equal(g.r.outcome, AWS_OK);
    assert_int_equal(g.keys_n, 0);
}

/* Of the keys of the test before. */
static void test_list__one_page_begins_where_it_is_told(void **state)
{
    (void)state;
    struct s3_uri u = uri("many/");
    struct got g;
    g = (struct got){.n = 0};
    s3_list_page(c, &u, "many/k 00199+%", NULL, on_result, &g);
    finish(&g);
    assert_int_equal(g.keys_n, 1000);
    assert_string_equal(g.first, "many/k 00200+%");
    AUTO_FREE char *token = xstrdup(g.next);
    g = (struct got){.n = 0};
    s3_list_page(c, &u, "", token, on_result, &g);
    finish(&g);
    assert_int_equal(g.keys_n, 8); /* three of them in folders */
    assert_string_equal(g.first, "many/k 01200+%");
    assert_string_equal(g.next, "");
}

static void test_create_only__the_second_is_refused(void **state)
{
    (void)state;
    struct s3_uri u = uri("once");
    struct err err = ERR_INIT;
    assert_true(s3_blocking_put(s, &u, STR("first"), NULL, true, &err));
    assert_false(s3_blocking_put(s, &u, STR("second"), NULL, true, &err));
    assert_int_equal(err.code, ERR_PRECONDITION);
    expect_object(&u, STR("first"));
    assert_true(s3_blocking_put(s, &u, STR("third"), NULL, false, NULL));
    expect_object(&u, STR("third"));
}

struct racer {
    pthread_t thread;
    int i;
    int won_n;
};

static void *race(void *arg)
{
    struct racer *r = arg;
    struct s3_blocking *own = NULL;
    ASSERT(s3_blocking_new(3, &own, NULL));
    for (int round = 0; round < 30; round++) {
        struct s3_uri u = {.bucket = "data"};
        char body[32];
        (void)snprintf(u.key, sizeof u.key, "race/%d", round);
        (void)snprintf(body, sizeof body, "racer %d", r->i);
        r->won_n += s3_blocking_put(own, &u, str_of(body), NULL, true, NULL);
    }
    s3_blocking_free(own);
    return NULL;
}

static void test_create_only__of_four_rivals_exactly_one_wins(void **state)
{
    (void)state;
    struct racer r[4] = {{.i = 0}, {.i = 1}, {.i = 2}, {.i = 3}};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&r[i].thread, NULL, race, &r[i]), 0);
    }
    int won_n = 0;
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(r[i].thread, NULL), 0);
        won_n += r[i].won_n;
    }
    assert_int_equal(won_n, 30);
}

static bool upload(const struct s3_uri *u, struct str bytes, bool create_only, struct err *err)
{
    struct s3_multipart *m = NULL;
    assert_true(s3_multipart_begin(s, u, "application/x-tar", PART, &m, NULL));
    for (size_t at = 0; at < bytes.n;) {
        size_t piece = MIN(bytes.n - at, (size_t)1234567);
        assert_true(s3_multipart_add(m, bytes.p + at, piece, err));
        at += piece;
    }
    int64_t size = -1;
    bool ok = s3_multipart_finish(m, create_only, &size, err);
    assert_int_equal(size, ok ? (int64_t)bytes.n : -1);
    return ok;
}

static void test_multipart__three_parts_are_one_object(void **state)
{
    (void)state;
    size_t n = 2 * PART + 777;
    AUTO_FREE char *bytes = xmalloc(n);
    for (size_t i = 0; i < n; i++) {
        bytes[i] = (char)(i * 2246822519u >> 11);
    }
    struct s3_uri u = uri("multi part/object.tar");
    struct err err = ERR_INIT;
    if (!upload(&u, (struct str){bytes, n}, true, &err)) {
        fail_msg("%s", err.message);
    }
    expect_object(&u, (struct str){bytes, n});
    struct s3_head head;
    assert_true(s3_blocking_head(s, &u, &head, NULL));
    assert_int_equal(head.size, n);
    assert_true(str_ends(str_of(head.etag), "-3\""));
    assert_true(str_ends(str_of(head.checksum), "=-3"));
    assert_false(upload(&u, (struct str){bytes, n}, true, &err));
    assert_int_equal(err.code, ERR_PRECONDITION);
    assert_true(upload(&u, STR("now small"), false, &err));
    expect_object(&u, STR("now small"));
    struct s3_multipart *m = NULL;
    struct s3_uri gone = uri("aborted");
    assert_true(s3_multipart_begin(s, &gone, NULL, PART, &m, NULL));
    assert_true(s3_multipart_add(m, bytes, PART + 1, NULL));
    s3_multipart_abort(m);
    assert_false(s3_blocking_head(s, &gone, &head, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
}

enum saved_by { SAVED_AS_NOW, SAVED_WITHOUT_CHECKSUMS, SAVED_BY_AN_EARLIER_RELEASE };

/* Upload two parts, save the upload, and finish it as another process would. with: the client that
 * creates it, then: the one that finishes. */
static void hand_over(struct s3_blocking *with, struct s3_blocking *then, enum saved_by by)
{
    size_t n = 2 * PART + 99;
    AUTO_FREE char *bytes = xcalloc(1, n);
    struct s3_uri u = uri("handed over");
    u.key[0] = (char)('a' + by + (with == then && with != s ? 10 : 0));
    struct err err = ERR_INIT;
    AUTO_BUF struct buf text = BUF_INIT(1 << 16);
    AUTO_BUF struct buf tail = BUF_INIT(n);
    struct json_out w;
    struct s3_multipart *m = NULL;
    assert_true(s3_multipart_begin(with, &u, NULL, PART, &m, NULL));
    assert_true(s3_multipart_add(m, bytes, n, NULL));
    json_out_init(&w, &text);
    json_out_object(&w, NULL);
    s3_multipart_save(m, &w, &tail);
    json_out_end_object(&w);
    s3_multipart_leave(m);
    AUTO_JSON json_t *o = NULL;
    assert_true(json_parse(buf_str(&text), text.n, &o, NULL));
    assert_int_equal(strlen(json_string_value(json_object_get(o, "writer"))), 32);
    if (by == SAVED_BY_AN_EARLIER_RELEASE) {
        (void)json_object_del(o, "sha256");
        (void)json_object_del(o, "writer");
        (void)json_object_del(o, "checksums");
        (void)json_object_del(o, "crc64nvme");
    }
    struct str rest = buf_str(&tail);
    int64_t size = -1;
    if (!s3_multipart_restore(then, &u, NULL, PART, o, &rest, &m, &err) ||
        !s3_multipart_finish(m, true, &size, &err)) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(size, n);
    expect_object(&u, (struct str){bytes, n});
}

static void test_multipart__goes_on_in_another_process_as_it_began(void **state)
{
    (void)state;
    struct s3_blocking *plain = NULL;
    (void)setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required", 1);
    assert_true(s3_blocking_new(2, &plain, NULL));
    (void)unsetenv("AWS_REQUEST_CHECKSUM_CALCULATION");
    hand_over(s, s, SAVED_AS_NOW);
    hand_over(s, plain, SAVED_WITHOUT_CHECKSUMS); /* its last part states one all the same */
    hand_over(plain, s, SAVED_BY_AN_EARLIER_RELEASE);
    hand_over(plain, plain, SAVED_AS_NOW); /* S3's own of the whole is compared */
    s3_blocking_free(plain);
}

static void expect_refusal(const char *id, const char *secret, const char *aws_code)
{
    (void)setenv("AWS_ACCESS_KEY_ID", id, 1);
    (void)setenv("AWS_SECRET_ACCESS_KEY", secret, 1);
    struct s3_blocking *wrong = NULL;
    assert_true(s3_blocking_new(2, &wrong, NULL));
    struct s3_uri u = uri("signed");
    AUTO_BUF struct buf body = BUF_INIT(0);
    struct err err = ERR_INIT;
    assert_false(s3_blocking_put(wrong, &u, STR("x"), NULL, false, &err));
    assert_string_equal(err.aws_code, aws_code);
    assert_false(s3_blocking_get(wrong, &u, 100, &body, &err));
    assert_string_equal(err.aws_code, aws_code);
    assert_int_equal(err.code, ERR_UNAUTHENTICATED);
    s3_blocking_free(wrong);
}

static void test_signature__wrong_secret_and_unknown_key_are_refused(void **state)
{
    (void)state;
    put("signed", STR("kept"));
    expect_refusal("AKIDLOCAL", "wrong-secret", "SignatureDoesNotMatch");
    expect_refusal("AKIDNOBODY", "local-secret", "InvalidAccessKeyId");
    struct s3_uri u = uri("signed");
    expect_object(&u, STR("kept"));
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    local_start(&local, NULL);
    local_bucket(&local, "data");
    struct err err = ERR_INIT;
    if (!s3_blocking_new(3, &s, &err)) {
        (void)fprintf(stderr, "%s\n", err.message);
        return 1;
    }
#define WITH_CLIENT(f) cmocka_unit_test_setup_teardown(f, open_client, close_client)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_object__comes_back_as_it_was_put),
        cmocka_unit_test(test_object__empty_and_large),
        cmocka_unit_test(test_object__missing_ones_and_missing_buckets_are_not_found),
        cmocka_unit_test(test_delete__removes_and_may_be_repeated),
        WITH_CLIENT(test_range__gives_exactly_the_bytes_asked_for),
        WITH_CLIENT(test_async__put_head_get_delete),
        WITH_CLIENT(test_list__more_than_a_page_in_order),
        WITH_CLIENT(test_list__one_page_begins_where_it_is_told),
        cmocka_unit_test(test_create_only__the_second_is_refused),
        cmocka_unit_test(test_create_only__of_four_rivals_exactly_one_wins),
        cmocka_unit_test(test_multipart__three_parts_are_one_object),
        cmocka_unit_test(test_multipart__goes_on_in_another_process_as_it_began),
        cmocka_unit_test(test_signature__wrong_secret_and_unknown_key_are_refused),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    s3_blocking_free(s);
    local_stop(&local);
    return failed;
}
