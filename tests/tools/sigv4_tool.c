/* Signs and verifies requests given as lines, for tests/integration/common/sigv4_botocore.py,
 * which holds the results against botocore's. sigv4_tool make N SEED     N random requests, signed:
 * one JSON object a line sigv4_tool verify          reads such lines with an "authorization" of
 * the other side; "ok" or the code */
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/rng.h"
#include "common/sigv4.h"
#include <stdio.h>

#define HEADERS_MAX 16
#define LINE_MAX_B  ((size_t)1 << 16)
#define WINDOW_US   (INT64_C(300) * USEC_PER_SEC)

struct tool_request {
    char method[8];
    char region[32];
    char service[32];
    struct buf path;
    struct buf query;
    struct buf names[HEADERS_MAX];
    struct buf values[HEADERS_MAX];
    struct sigv4_header headers[HEADERS_MAX];
    size_t headers_n;
    struct buf body;
    char hash[SHA256_HEX_N];
};

static void random_text(struct rng *r, const char *letters, size_t most, struct buf *out)
{
    size_t n = rng_below(r, most + 1);
    for (size_t i = 0; i < n; i++) {
        buf_add_char(out, letters[rng_below(r, strlen(letters))]);
    }
}

static void random_encoded(struct rng *r, size_t most, struct buf *out)
{
    static const char *const others[] = {"\u00e9", "e\u0301",    "\u00df",     "\u65e5\u672c",
                                         "\u202e", "\U0001f600", "\U0001d54f", "\u0661"};
    AUTO_BUF struct buf plain = BUF_INIT(1024);
    for (uint64_t n = rng_below(r, most + 1); n > 0; n--) {
        if (rng_chance(r, 0.15)) {
            buf_add_cstr(&plain, others[rng_below(r, ARRAY_LEN(others))]);
        } else {
            random_text(r, "abcXYZ019-_.~ /+=&%?#:@!$'()*,;", 1, &plain);
        }
    }
    str_url_encode(out, buf_str(&plain), false);
}

/* Segments: odd and encoded, of characters that need no escape, empty, "." or "..". */
static void random_path(struct rng *r, struct buf *out)
{
    buf_add_char(out, '/');
    for (uint64_t i = rng_below(r, 6); i > 0; i--) {
        switch (rng_below(r, 8)) {
        case 0:
            buf_add_cstr(out, ".");
            break;
        case 1:
            buf_add_cstr(out, "..");
            break;
        case 2:
            break;
        case 3:
            random_text(r, "ab=+:@,;!$'()*~", 8, out);
            break;
        default:
            random_encoded(r, 12, out);
        }
        buf_add(out, "/", i > 1 ? 1 : rng_below(r, 2));
    }
}

/* Names and values come more than once, a value may be empty or absent. */
static void random_query(struct rng *r, struct buf *out)
{
    for (uint64_t i = rng_below(r, 6); i > 0; i--) {
        buf_add(out, "&", out->n > 0 ? 1 : 0);
        buf_add_char(out, "abAB"[rng_below(r, 4)]);
        if (rng_chance(r, 0.5)) {
            random_encoded(r, 6, out);
        }
        if (rng_chance(r, 0.8)) {
            buf_add_char(out, '=');
            random_encoded(r, rng_chance(r, 0.3) ? 0 : 10, out);
        }
    }
}

static void add_header(struct tool_request *q, const char *name)
{
    struct buf *b = &q->names[q->headers_n++];
    buf_init(b, LINE_MAX_B);
    buf_add_cstr(b, name);
    buf_init(&q->values[q->headers_n - 1], LINE_MAX_B);
}

/* Each part is there or not, short or long, by the draw. */
static void make_request(struct rng *r, struct tool_request *q)
{
    static const char *const methods[] = {"GET", "PUT", "POST", "DELETE", "HEAD"};
    static const char *const services[] = {"s3", "sagemaker", "sts", "logs", "servicequotas"};
    static const char *const regions[] = {"us-east-1", "eu-west-1", "cn-north-1"};
    static const char *const extra[] = {"X-Amz-Target", "content-type", "Range", "x-amz-meta-A",
                                        "if-none-match"};
    *q = (struct tool_request){
        .path = BUF_INIT(LINE_MAX_B), .query = BUF_INIT(LINE_MAX_B), .body = BUF_INIT(LINE_MAX_B)};
    (void)snprintf(q->method, sizeof q->method, "%s", methods[rng_below(r, 5)]);
    (void)snprintf(q->service, sizeof q->service, "%s", services[rng_below(r, 5)]);
    (void)snprintf(q->region, sizeof q->region, "%s", regions[rng_below(r, 3)]);
    random_path(r, &q->path);
    random_query(r, &q->query);
    add_header(q, "Host");
    buf_add_cstr(&q->values[0], "service.example.com");
    for (size_t i = 0; i < ARRAY_LEN(extra); i++) {
        for (int n = 0; n < 2 && rng_chance(r, 0.4); n++) { /* a header may come twice */
            add_header(q, extra[i]);
            random_text(r, "ab  \t1/;=\",", 20, &q->values[q->headers_n - 1]);
        }
    }
    random_text(r, "{}\":abc \n", 60, &q->body);
    hash_sha256_hex(q->body.p, q->body.n, q->hash);
    if (strcmp(q->service, "s3") == 0) {
        add_header(q, "x-amz-content-sha256");
        buf_add_cstr(&q->values[q->headers_n - 1], q->hash);
    }
}

static struct sigv4_request view(struct tool_request *q)
{
    for (size_t i = 0; i < q->headers_n; i++) {
        q->headers[i] = (struct sigv4_header){buf_str(&q->names[i]), buf_str(&q->values[i])};
    }
    return (struct sigv4_request){.method = str_of(q->method),
                                  .path = buf_str(&q->path),
                                  .query = buf_str(&q->query),
                                  .headers = q->headers,
                                  .headers_n = q->headers_n,
                                  .payload_hash = str_of(q->hash),
                                  .region = str_of(q->region),
                                  .service = str_of(q->service),
                                  .is_s3 = strcmp(q->service, "s3") == 0};
}

static void request_done(struct tool_request *q)
{
    buf_done(&q->path);
    buf_done(&q->query);
    buf_done(&q->body);
    for (size_t i = 0; i < q->headers_n; i++) {
        buf_done(&q->names[i]);
        buf_done(&q->values[i]);
    }
}

static void print_request(const struct tool_request *q, const struct aws_creds *c, const char *date,
                          const char *authorization)
{
    AUTO_BUF struct buf line = BUF_INIT(LINE_MAX_B);
    struct json_out w;
    json_out_init(&w, &line);
    json_out_object(&w, NULL);
    json_out_str(&w, "method", q->method);
    json_out_str(&w, "path", buf_cstr(&q->path));
    json_out_str(&w, "query", buf_cstr(&q->query));
    json_out_str(&w, "body", buf_cstr(&q->body));
    json_out_str(&w, "region", q->region);
    json_out_str(&w, "service", q->service);
    json_out_str(&w, "key", c->key_id);
    json_out_str(&w, "secret", c->secret);
    json_out_str(&w, "token", c->session_token);
    json_out_str(&w, "date", date);
    json_out_str(&w, "authorization", authorization);
    json_out_array(&w, "headers");
    for (size_t i = 0; i < q->headers_n; i++) {
        json_out_array(&w, NULL);
        json_out_str(&w, NULL, buf_cstr(&q->names[i]));
        json_out_str(&w, NULL, buf_cstr(&q->values[i]));
        json_out_end_array(&w);
    }
    json_out_end_array(&w);
    json_out_end_object(&w);
    (void)printf("%s\n", buf_cstr(&line));
}

static int make(int64_t n, int64_t seed)
{
    struct rng r;
    rng_seed(&r, (uint64_t)seed);
    for (int64_t i = 0; i < n; i++) {
        struct tool_request q;
        struct aws_creds c = {.key_id = "AKIDEXAMPLE"};
        AUTO_BUF struct buf text = BUF_INIT(256);
        AUTO_BUF struct buf out = BUF_INIT(LINE_MAX_B);
        char date[17];
        make_request(&r, &q);
        random_text(&r, "abcXYZ019+/", 40, &text);
        (void)snprintf(c.secret, sizeof c.secret, "s%s", buf_cstr(&text));
        if (rng_chance(&r, 0.3)) {
            (void)snprintf(c.session_token, sizeof c.session_token, "FQo%s==", buf_cstr(&text));
        }
        usec_t now = (INT64_C(1500000000) + (int64_t)rng_below(&r, 500000000)) * USEC_PER_SEC;
        struct sigv4_request v = view(&q);
        sigv4_sign(&v, &c, now, date, &out);
        print_request(&q, &c, date, buf_cstr(&out));
        request_done(&q);
    }
    return 0;
}

static void copy(char *to, size_t size, const char *s)
{
    (void)snprintf(to, size, "%s", s);
}

/* One line of the other side: the same fields; the token is among the headers as it would arrive.
 */
static bool verify_line(const json_t *o, struct err *err)
{
    struct tool_request q = {
        .path = BUF_INIT(LINE_MAX_B), .query = BUF_INIT(LINE_MAX_B), .body = BUF_INIT(LINE_MAX_B)};
    const char *s[8] = {""};
    static const char *const keys[8] = {"method", "path",    "query",  "body",
                                        "region", "service", "secret", "date"};
    for (size_t i = 0; i < 8; i++) {
        if (!json_get_str(o, keys[i], "", &s[i], err)) {
            return false;
        }
    }
    copy(q.method, sizeof q.method, s[0]);
    buf_add_cstr(&q.path, s[1]);
    buf_add_cstr(&q.query, s[2]);
    hash_sha256_hex(s[3], strlen(s[3]), q.hash);
    copy(q.region, sizeof q.region, s[4]);
    copy(q.service, sizeof q.service, s[5]);
    json_t *headers = json_object_get(o, "headers");
    size_t i;
    json_t *pair;
    json_array_foreach(headers, i, pair)
    {
        ASSERT(q.headers_n < HEADERS_MAX);
        add_header(&q, json_string_value(json_array_get(pair, 0)));
        buf_add_cstr(&q.values[q.headers_n - 1], json_string_value(json_array_get(pair, 1)));
    }
    const char *authorization = "";
    struct sigv4_auth auth;
    usec_t now;
    struct sigv4_request v = view(&q);
    bool ok = json_get_str(o, "authorization", "", &authorization, err) &&
              sigv4_parse_authorization(str_of(authorization), &auth, err) &&
              clock_parse_amz(s[7], &now, err) &&
              sigv4_verify(&v, &auth, s[6], s[7], now, WINDOW_US, err);
    request_done(&q);
    return ok;
}

static int verify(void)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    while ((n = getline(&line, &cap, stdin)) > 0) {
        AUTO_JSON json_t *o = NULL;
        struct err err = ERR_INIT;
        bool ok =
            json_parse((struct str){line, (size_t)n}, LINE_MAX_B, &o, &err) && verify_line(o, &err);
        (void)printf("%s\n", ok ? "ok" : err.aws_code[0] != '\0' ? err.aws_code : err.message);
    }
    free(line);
    return 0;
}

int main(int argc, char **argv)
{
    int64_t n, seed;
    if (argc == 4 && strcmp(argv[1], "make") == 0 &&
        parse_i64(str_of(argv[2]), 1, 100000, &n, NULL) &&
        parse_i64(str_of(argv[3]), 0, INT64_MAX, &seed, NULL)) {
        return make(n, seed);
    }
    if (argc == 2 && strcmp(argv[1], "verify") == 0) {
        return verify();
    }
    (void)fprintf(stderr, "usage: sigv4_tool make N SEED | verify\n");
    return 64;
}
