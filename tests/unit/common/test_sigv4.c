/* Aim: sign exactly as AWS does, and accept only what was signed so.
 * Method: the golden vectors of tests/vectors/sigv4.tsv through canonical, sign and verify; then
 * each part of a signed request changed in turn. */
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/sigv4.h"
#include "tests/unit/unit.h"

#define COLUMNS     14
#define HEADERS_MAX 8
#define WINDOW_US   (INT64_C(300) * USEC_PER_SEC)

struct vector {
    struct str at[COLUMNS];
    struct sigv4_header headers[HEADERS_MAX];
    char hash[SHA256_HEX_N];
    struct aws_creds creds;
    usec_t now;
    struct sigv4_request r;
};
enum {
    V_NAME,
    V_ORIGIN,
    V_KEY,
    V_SECRET,
    V_DATE,
    V_SERVICE,
    V_METHOD,
    V_PATH,
    V_QUERY,
    V_HEADERS,
    V_TOKEN,
    V_BODY,
    V_CANONICAL,
    V_SIGNATURE
};

static void copy_text(char *to, size_t size, struct str s)
{
    assert_true(s.n < size);
    memcpy(to, s.p, s.n);
    to[s.n] = '\0';
}

static void fill_vector(struct str line, struct vector *v)
{
    memset(v, 0, sizeof *v);
    for (size_t i = 0; i < COLUMNS; i++) {
        v->at[i] = str_split(&line, '\t');
    }
    assert_int_equal(line.n, 0);
    struct str headers = v->at[V_HEADERS];
    size_t n = 0;
    while (headers.n > 0) {
        assert_true(n < HEADERS_MAX);
        struct str value = str_split(&headers, '|');
        v->headers[n].name = str_split(&value, ':');
        v->headers[n++].value = value;
    }
    copy_text(v->creds.key_id, sizeof v->creds.key_id, v->at[V_KEY]);
    copy_text(v->creds.secret, sizeof v->creds.secret, v->at[V_SECRET]);
    copy_text(v->creds.session_token, sizeof v->creds.session_token, v->at[V_TOKEN]);
    char date[17];
    copy_text(date, sizeof date, v->at[V_DATE]);
    assert_true(clock_parse_amz(date, &v->now, NULL));
    bool unsigned_body = str_eq_cstr(v->at[V_BODY], SIGV4_UNSIGNED_PAYLOAD);
    hash_sha256_hex(v->at[V_BODY].p, v->at[V_BODY].n, v->hash);
    v->r = (struct sigv4_request){.method = v->at[V_METHOD],
                                  .path = v->at[V_PATH],
                                  .query = v->at[V_QUERY],
                                  .headers = v->headers,
                                  .headers_n = n,
                                  .payload_hash =
                                      unsigned_body ? STR(SIGV4_UNSIGNED_PAYLOAD) : str_of(v->hash),
                                  .region = STR("us-east-1"),
                                  .service = v->at[V_SERVICE],
                                  .is_s3 = str_eq_cstr(v->at[V_SERVICE], "s3")};
}

static void each_vector(void (*fn)(const struct vector *v))
{
    AUTO_BUF struct buf text = BUF_INIT(1 << 20);
    unit_read_file("tests/vectors/sigv4.tsv", &text);
    struct str rest = buf_str(&text);
    int n = 0;
    while (rest.n > 0) {
        struct str line = str_split(&rest, '\n');
        if (line.n > 0 && line.p[0] != '#') {
            struct vector v;
            fill_vector(line, &v);
            fn(&v);
            n++;
        }
    }
    assert_int_equal(n, 13);
}

static void check_canonical(const struct vector *v)
{
    AUTO_BUF struct buf text = BUF_INIT(1 << 16);
    char date[17];
    char hex[SHA256_HEX_N];
    clock_format_amz(v->now, date);
    sigv4_canonical(&v->r, date, str_of(v->creds.session_token), &text);
    hash_sha256_hex(text.p, text.n, hex);
    assert_str_view(v->at[V_CANONICAL], hex);
}

static void test_sigv4__canonical_requests_are_those_of_the_vectors(void **state)
{
    (void)state;
    each_vector(check_canonical);
}

static void check_signature(const struct vector *v)
{
    AUTO_BUF struct buf header = BUF_INIT(1 << 16);
    char date[17];
    sigv4_sign(&v->r, &v->creds, v->now, date, &header);
    assert_str_view(v->at[V_DATE], date);
    struct sigv4_auth auth;
    assert_true(sigv4_parse_authorization(buf_str(&header), &auth, NULL));
    assert_true(str_eq(auth.signature, v->at[V_SIGNATURE]));
    assert_true(str_eq(auth.key_id, v->at[V_KEY]));
    assert_true(str_eq(auth.service, v->at[V_SERVICE]));
}

static void test_sigv4__signatures_are_those_of_the_vectors(void **state)
{
    (void)state;
    each_vector(check_signature);
}

/* As a server sees it: the token is one more header. */
static void check_verify(const struct vector *v)
{
    AUTO_BUF struct buf header = BUF_INIT(1 << 16);
    char date[17];
    sigv4_sign(&v->r, &v->creds, v->now, date, &header);
    struct sigv4_auth auth;
    assert_true(sigv4_parse_authorization(buf_str(&header), &auth, NULL));
    struct sigv4_header received[HEADERS_MAX + 1];
    memcpy(received, v->headers, sizeof v->headers);
    struct sigv4_request r = v->r;
    r.headers = received;
    if (v->creds.session_token[0] != '\0') {
        received[r.headers_n++] =
            (struct sigv4_header){STR("X-Amz-Security-Token"), str_of(v->creds.session_token)};
    }
    struct err err = ERR_INIT;
    assert_true(sigv4_verify(&r, &auth, v->creds.secret, date, v->now, WINDOW_US, &err));
    /* the secret's last letter */
    struct aws_creds other = v->creds;
    other.secret[strlen(other.secret) - 1] ^= 1;
    assert_false(sigv4_verify(&r, &auth, other.secret, date, v->now, WINDOW_US, &err));
    assert_string_equal(err.aws_code, "SignatureDoesNotMatch");
    assert_int_equal(err.code, ERR_FORBIDDEN);
    /* the body's hash */
    r.payload_hash = STR("0000000000000000000000000000000000000000000000000000000000000000");
    assert_false(sigv4_verify(&r, &auth, v->creds.secret, date, v->now, WINDOW_US, &err));
    r.payload_hash = v->r.payload_hash;
    /* method, path, query */
    r.method = STR("DELETE");
    assert_false(sigv4_verify(&r, &auth, v->creds.secret, date, v->now, WINDOW_US, &err));
    r.method = v->r.method;
    r.path = STR("/other");
    assert_false(sigv4_verify(&r, &auth, v->creds.secret, date, v->now, WINDOW_US, &err));
    r.path = v->r.path;
    r.query = STR("other=1");
    assert_false(sigv4_verify(&r, &auth, v->creds.secret, date, v->now, WINDOW_US, &err));
    r.query = v->r.query;
    /* any header's value */
    for (size_t i = 0; i < r.headers_n; i++) {
        struct str kept = received[i].value;
        received[i].value = STR("other");
        assert_false(sigv4_verify(&r, &auth, v->creds.secret, date, v->now, WINDOW_US, &err));
        received[i].value = kept;
    }
    assert_true(sigv4_verify(&r, &auth, v->creds.secret, date, v->now, WINDOW_US, NULL));
}

static void test_sigv4__verify_takes_what_sign_makes_and_nothing_else(void **state)
{
    (void)state;
    each_vector(check_verify);
}

/* A signed GET whose header text and request live on. */
struct signed_get {
    struct sigv4_header headers[1];
    struct sigv4_request r;
    struct aws_creds creds;
    char date[17];
    struct buf header;
    struct sigv4_auth auth;
    usec_t now;
};

static void sign_get(struct signed_get *g)
{
    *g = (struct signed_get){.now = INT64_C(1700000000) * USEC_PER_SEC,
                             .header = BUF_INIT(4096),
                             .creds = {.key_id = "AKID", .secret = "secret"},
                             .headers = {{STR("Host"), STR("example.com")}}};
    g->r = (struct sigv4_request){.method = STR("GET"),
                                  .path = STR("/"),
                                  .headers = g->headers,
                                  .headers_n = 1,
                                  .payload_hash = STR(SIGV4_EMPTY_SHA256),
                                  .region = STR("eu-west-1"),
                                  .service = STR("sagemaker")};
    sigv4_sign(&g->r, &g->creds, g->now, g->date, &g->header);
    assert_true(sigv4_parse_authorization(buf_str(&g->header), &g->auth, NULL));
}

static void test_sigv4__the_window_ends_on_both_sides(void **state)
{
    (void)state;
    struct signed_get g;
    struct err err = ERR_INIT;
    sign_get(&g);
    assert_true(sigv4_verify(&g.r, &g.auth, "secret", g.date, g.now + WINDOW_US, WINDOW_US, NULL));
    assert_true(sigv4_verify(&g.r, &g.auth, "secret", g.date, g.now - WINDOW_US, WINDOW_US, NULL));
    assert_false(
        sigv4_verify(&g.r, &g.auth, "secret", g.date, g.now + WINDOW_US + 1, WINDOW_US, &err));
    assert_string_equal(err.aws_code, "RequestExpired");
    assert_non_null(strstr(err.message, "Signature expired"));
    assert_false(
        sigv4_verify(&g.r, &g.auth, "secret", g.date, g.now - WINDOW_US - 1, WINDOW_US, &err));
    assert_non_null(strstr(err.message, "not yet current"));
    g.r.is_s3 = true;
    assert_false(
        sigv4_verify(&g.r, &g.auth, "secret", g.date, g.now + WINDOW_US + 1, WINDOW_US, &err));
    assert_string_equal(err.aws_code, "RequestTimeTooSkewed");
    buf_done(&g.header);
}

static void test_sigv4__another_scope_date_or_header_list_is_refused(void **state)
{
    (void)state;
    struct signed_get g;
    struct err err = ERR_INIT;
    sign_get(&g);
    struct sigv4_request r = g.r;
    r.region = STR("us-east-1");
    assert_false(sigv4_verify(&r, &g.auth, "secret", g.date, g.now, WINDOW_US, &err));
    assert_non_null(strstr(err.message, "another region"));
    r = g.r;
    r.service = STR("s3");
    assert_false(sigv4_verify(&r, &g.auth, "secret", g.date, g.now, WINDOW_US, &err));
    assert_non_null(strstr(err.message, "another region or service"));
    assert_false(sigv4_verify(&g.r, &g.auth, "secret", "garbage", g.now, WINDOW_US, &err));
    assert_string_equal(err.aws_code, "IncompleteSignature");
    assert_false(sigv4_verify(&g.r, &g.auth, "secret", "", g.now, WINDOW_US, &err));
    struct sigv4_auth auth = g.auth;
    auth.date = STR("20231113");
    assert_false(sigv4_verify(&g.r, &auth, "secret", g.date, g.now, WINDOW_US, &err));
    auth = g.auth;
    auth.signed_headers = STR("x-amz-date");
    assert_false(sigv4_verify(&g.r, &auth, "secret", g.date, g.now, WINDOW_US, &err));
    r = g.r;
    r.headers_n = 0; /* host unsigned */
    auth.signed_headers = STR("x-amz-date");
    assert_false(sigv4_verify(&r, &auth, "secret", g.date, g.now, WINDOW_US, &err));
    assert_non_null(strstr(err.message, "host"));
    auth = g.auth;
    auth.signature = STR("00");
    assert_false(sigv4_verify(&g.r, &auth, "secret", g.date, g.now, WINDOW_US, &err));
    buf_done(&g.header);
}

#define SIG64 "00000000000000000000000000000000000000000000000000000000000000ab"

static void test_sigv4__parse_reads_the_known_forms(void **state)
{
    (void)state;
    struct sigv4_auth a;
    assert_true(sigv4_parse_authorization(
        STR("AWS4-HMAC-SHA256 Credential=AK/ID/20260102/us-east-1/s3/aws4_request,"
            "SignedHeaders=host;x-amz-date,Signature=" SIG64),
        &a, NULL));
    assert_str_view(a.key_id, "AK/ID");
    assert_str_view(a.date, "20260102");
    assert_str_view(a.region, "us-east-1");
    assert_str_view(a.service, "s3");
    assert_str_view(a.signed_headers, "host;x-amz-date");
    assert_str_view(a.signature, SIG64);
}

static void test_sigv4__parse_refuses_what_is_not_whole(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "AWS4-HMAC-SHA256",
        "Basic abc",
        "AWS4-HMAC-SHA256 ",
        "aws4-hmac-sha256 Credential=A/20260102/r/s/aws4_request, SignedHeaders=h, "
        "Signature=" SIG64,
        "AWS4-HMAC-SHA256 SignedHeaders=h, Signature=" SIG64,
        "AWS4-HMAC-SHA256 Credential=A/20260102/r/s/aws4_request, Signature=" SIG64,
        "AWS4-HMAC-SHA256 Credential=A/20260102/r/s/aws4_request, SignedHeaders=h",
        "AWS4-HMAC-SHA256 Credential=A/20260102/r/s/aws4_request, SignedHeaders=, Signature=" SIG64,
        "AWS4-HMAC-SHA256 Credential=A/20260102/r/s/aws5_request, SignedHeaders=h, "
        "Signature=" SIG64,
        "AWS4-HMAC-SHA256 Credential=20260102/r/s/aws4_request, SignedHeaders=h, Signature=" SIG64,
        "AWS4-HMAC-SHA256 Credential=/20260102/r/s/aws4_request, SignedHeaders=h, Signature=" SIG64,
        "AWS4-HMAC-SHA256 Credential=A/2026/r/s/aws4_request, SignedHeaders=h, Signature=" SIG64,
        "AWS4-HMAC-SHA256 Credential=A/20260102/r//aws4_request, SignedHeaders=h, Signature=" SIG64,
        "AWS4-HMAC-SHA256 Credential=A/20260102/r/s/aws4_request, SignedHeaders=h, Signature=xyz",
        "AWS4-HMAC-SHA256 Credential=A/20260102/r/s/aws4_request, SignedHeaders=h, Signature=" SIG64
        "0",
        "AWS4-HMAC-SHA256 Credential=A/20260102/r/s/aws4_request, SignedHeaders=h, Signature=" SIG64
        ", Signature=" SIG64,
        "AWS4-HMAC-SHA256 Credential=A/20260102/r/s/aws4_request, SignedHeaders=h, Signature=" SIG64
        ", Other=1",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct sigv4_auth a = {.date = STR("untouched")};
        struct err err = ERR_INIT;
        assert_false(sigv4_parse_authorization(str_of(bad[i]), &a, &err));
        assert_string_equal(err.aws_code, "IncompleteSignature");
        assert_str_view(a.date, "untouched");
    }
}

static void canonical_lines(struct sigv4_request r, const char *want_path, const char *want_query)
{
    AUTO_BUF struct buf text = BUF_INIT(1 << 16);
    sigv4_canonical(&r, "20260102T030405Z", STR(""), &text);
    struct str rest = buf_str(&text);
    (void)str_split(&rest, '\n');
    assert_str_view(str_split(&rest, '\n'), want_path);
    assert_str_view(str_split(&rest, '\n'), want_query);
}

static void test_sigv4__paths_are_normalised_except_for_s3(void **state)
{
    (void)state;
    static const struct {
        const char *wire, *other, *s3;
    } cases[] = {
        {"", "/", "/"},
        {"/", "/", "/"},
        {"/a/./b", "/a/b", "/a/./b"},
        {"/a/../b", "/b", "/a/../b"},
        {"/../..", "/", "/../.."},
        {"//a//b//", "/a/b/", "//a//b//"},
        {"/endpoints/my%20ep/invocations", "/endpoints/my%2520ep/invocations",
         "/endpoints/my%20ep/invocations"},
        {"/a=b", "/a%3Db", "/a=b"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct sigv4_request r = {.method = STR("GET"), .path = str_of(cases[i].wire)};
        canonical_lines(r, cases[i].other, "");
        r.is_s3 = true;
        canonical_lines(r, cases[i].s3, "");
    }
}

static void test_sigv4__queries_are_sorted_and_encoded(void **state)
{
    (void)state;
    static const struct {
        const char *wire, *canonical;
    } cases[] = {
        {"uploads", "uploads="},
        {"b=2&a=1&a=0", "a=0&a=1&b=2"},
        {"a=%7e%41&b=%2f", "a=~A&b=%2F"},
        {"a=b=c", "a=b%3Dc"},
        {"a=x+y", "a=x%20y"},
        {"a=%zz", "a=%25zz"},
        {"&&a=1&", "a=1"},
        {"A=1&a=1&_=1", "A=1&_=1&a=1"},
        {"x-id=GetObject&X=%C3%A9", "X=%C3%A9&x-id=GetObject"},
        {"ab=1&a=2&a%2F=3", "a=2&a%2F=3&ab=1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct sigv4_request r = {
            .method = STR("GET"), .path = STR("/"), .query = str_of(cases[i].wire)};
        canonical_lines(r, "/", cases[i].canonical);
    }
}

static void test_sigv4__header_values_are_folded(void **state)
{
    (void)state;
    AUTO_BUF struct buf text = BUF_INIT(1 << 16);
    struct sigv4_header h[] = {{STR("X-B"), STR("  1 \t 2  ")},
                               {STR("HOST"), STR("h")},
                               {STR("x-b"), STR("3")},
                               {STR("X-A"), STR("")}};
    struct sigv4_request r = {.method = STR("GET"),
                              .path = STR("/"),
                              .headers = h,
                              .headers_n = ARRAY_LEN(h),
                              .payload_hash = STR("HASH")};
    sigv4_canonical(&r, "20260102T030405Z", STR("TOKEN"), &text);
    assert_string_equal(buf_cstr(&text), "GET\n/\n\nhost:h\nx-a:\nx-amz-date:20260102T030405Z\n"
                                         "x-amz-security-token:TOKEN\nx-b:1 2,3\n\n"
                                         "host;x-a;x-amz-date;x-amz-security-token;x-b\nHASH");
}

/* The presigned GET of the S3 documentation ("Authenticating Requests: Using Query Parameters"). */
static void test_sigv4__presigned_url_of_the_s3_documentation(void **state)
{
    (void)state;
    struct aws_creds c = {.key_id = "AKIAIOSFODNN7EXAMPLE",
                          .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
    struct sigv4_header h[] = {{STR("host"), STR("examplebucket.s3.amazonaws.com")}};
    struct sigv4_request r = {.method = STR("GET"),
                              .path = STR("/test.txt"),
                              .headers = h,
                              .headers_n = 1,
                              .payload_hash = STR(SIGV4_UNSIGNED_PAYLOAD),
                              .region = STR("us-east-1"),
                              .service = STR("s3"),
                              .is_s3 = true};
    usec_t now;
    assert_true(clock_parse_amz("20130524T000000Z", &now, NULL));
    AUTO_BUF struct buf out = BUF_INIT(8192);
    sigv4_presign(&r, &c, now, 86400, &out);
    assert_string_equal(
        buf_cstr(&out),
        "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2F"
        "us-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&"
        "X-Amz-SignedHeaders=host&X-Amz-Signature="
        "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
}

/* The chain of HMACs, step by step as the documentation writes it, against published keys. */
static void check_key(const char *secret, const char *date, const char *service, const char *want)
{
    AUTO_FREE char *start = xasprintf("AWS4%s", secret);
    uint8_t a[32];
    uint8_t b[32];
    char hex[SHA256_HEX_N];
    hash_hmac_sha256(start, strlen(start), date, strlen(date), a);
    hash_hmac_sha256(a, 32, "us-east-1", 9, b);
    hash_hmac_sha256(b, 32, service, strlen(service), a);
    hash_hmac_sha256(a, 32, "aws4_request", 12, b);
    str_hex(b, 32, hex);
    assert_string_equal(hex, want);
}

static void test_sigv4__signing_keys_are_the_published_ones(void **state)
{
    (void)state;
    const char *a = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    const char *b = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    check_key(a, "20150830", "iam",
              "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9");
    check_key(a, "20150830", "service",
              "938127b5336810ddb6a5d6af445fcac9e371f9ed418ed386b022aed82901be75");
    check_key(b, "20130524", "s3",
              "dbb893acc010964918f1fd433add87c70e8b0db6be30c1fbeafefa5ec6ba8378");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sigv4__canonical_requests_are_those_of_the_vectors),
        cmocka_unit_test(test_sigv4__signatures_are_those_of_the_vectors),
        cmocka_unit_test(test_sigv4__verify_takes_what_sign_makes_and_nothing_else),
        cmocka_unit_test(test_sigv4__the_window_ends_on_both_sides),
        cmocka_unit_test(test_sigv4__another_scope_date_or_header_list_is_refused),
        cmocka_unit_test(test_sigv4__parse_reads_the_known_forms),
        cmocka_unit_test(test_sigv4__parse_refuses_what_is_not_whole),
        cmocka_unit_test(test_sigv4__paths_are_normalised_except_for_s3),
        cmocka_unit_test(test_sigv4__queries_are_sorted_and_encoded),
        cmocka_unit_test(test_sigv4__header_values_are_folded),
        cmocka_unit_test(test_sigv4__presigned_url_of_the_s3_documentation),
        cmocka_unit_test(test_sigv4__signing_keys_are_the_published_ones),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
