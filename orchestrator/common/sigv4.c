/* AWS Signature Version 4. Canonical request -> string to sign -> signature; signing, presigning
 * and verifying all go through the same canonical(). Pure: no clock, no network. */
#include "common/sigv4.h"
#include "common/cleanup.h"
#include "common/clock.h"

#define SIGV4_ALGORITHM   "AWS4-HMAC-SHA256"
#define SIGV4_HEADERS_MAX ((size_t)64)
#define SIGV4_BYTES_MAX   ((size_t)1024 * 1024) /* of a canonical request */
#define SIGV4_SCOPE_BYTES ((size_t)256)

/* Path without ".", ".." and empty segments. A final '/' is kept when anything stands before it. */
static void add_normalised_path(struct buf *out, struct str path)
{
    bool final_slash = str_ends(path, "/");
    AUTO_BUF struct buf kept = BUF_INIT(path.n + 1);
    while (path.n > 0) {
        struct str segment = str_split(&path, '/');
        if (segment.n == 0 || str_eq_cstr(segment, ".")) {
            continue;
        }
        if (str_eq_cstr(segment, "..")) {
            while (kept.n > 0 && kept.p[--kept.n] != '/') {
            }
            continue;
        }
        buf_add_char(&kept, '/');
        buf_add_str(&kept, segment);
    }
    if (kept.n == 0 || final_slash) {
        buf_add_char(&kept, '/');
    }
    str_url_encode(out, buf_str(&kept), true);
}

static void add_path(struct buf *out, const struct sigv4_request *r)
{
    if (!r->is_s3) {
        add_normalised_path(out, r->path);
    } else if (r->path.n == 0) {
        buf_add_char(out, '/');
    } else {
        buf_add_str(out, r->path);
    }
}

struct param {
    struct str name;
    struct str value;
};

static int compare_params(const void *a, const void *b)
{
    const struct param *x = a;
    const struct param *y = b;
    int c = str_cmp(x->name, y->name);
    return c != 0 ? c : str_cmp(x->value, y->value);
}

/* Decodes and encodes again, so that "%7e", "~" and lower-case escapes give the same text. A broken
 * escape is taken literally. room is large enough for all calls, so earlier views stay valid. */
static struct str encode_again(struct buf *room, struct str s)
{
    AUTO_BUF struct buf plain = BUF_INIT(s.n);
    size_t start = room->n;
    struct str decoded = str_url_decode(&plain, s, true) ? buf_str(&plain) : s;
    str_url_encode(room, decoded, false);
    return (struct str){buf_cstr(room) + start, room->n - start};
}

static void add_query(struct buf *out, struct str query)
{
    size_t most = 1;
    for (size_t i = 0; i < query.n; i++) {
        most += query.p[i] == '&' ? 1 : 0;
    }
    AUTO_BUF struct buf room = BUF_INIT(query.n * 3);
    AUTO_FREE struct param *params = xcalloc(most, sizeof *params);
    size_t n = 0;
    char *fixed = buf_reserve(&room, query.n * 3);
    ASSERT(fixed != NULL);
    while (query.n > 0) {
        struct str value = str_split(&query, '&');
        if (value.n > 0) {
            struct str name = str_split(&value, '=');
            params[n].name = encode_again(&room, name);
            params[n].value = encode_again(&room, value);
            n++;
        }
    }
    if (n > 0) {
        qsort(params, n, sizeof *params, compare_params);
    }
    for (size_t i = 0; i < n; i++) {
        buf_add(out, "&", i == 0 ? 0 : 1);
        buf_add_str(out, params[i].name);
        buf_add_char(out, '=');
        buf_add_str(out, params[i].value);
    }
}

struct header_list {
    struct sigv4_header at[SIGV4_HEADERS_MAX + 2];
    size_t n;
};

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static int compare_names(struct str a, struct str b)
{
    size_t n = MIN(a.n, b.n);
    for (size_t i = 0; i < n; i++) {
        int d = (uint8_t)lower(a.p[i]) - (uint8_t)lower(b.p[i]);
        if (d != 0) {
            return d;
        }
    }
    return a.n < b.n ? -1 : a.n > b.n ? 1 : 0;
}

/* Insert after all that are not greater: equal names keep the order in which they were sent. */
static void insert_header(struct header_list *l, struct sigv4_header h)
{
    ASSERT(l->n < ARRAY_LEN(l->at));
    size_t i = l->n++;
    for (; i > 0 && compare_names(l->at[i - 1].name, h.name) > 0; i--) {
        l->at[i] = l->at[i - 1];
    }
    l->at[i] = h;
}

static void collect_headers(const struct sigv4_request *r, struct str amz_date, struct str token,
                            struct header_list *ret)
{
    ret->n = 0;
    ASSERT(r->headers_n <= SIGV4_HEADERS_MAX);
    for (size_t i = 0; i < r->headers_n; i++) {
        insert_header(ret, r->headers[i]);
    }
    if (amz_date.n > 0) {
        insert_header(ret, (struct sigv4_header){STR("x-amz-date"), amz_date});
    }
    if (token.n > 0) {
        insert_header(ret, (struct sigv4_header){STR("x-amz-security-token"), token});
    }
}

/* Trimmed, inner white space down to one space. */
static void add_value(struct buf *out, struct str value)
{
    value = str_trim(value);
    bool gap = false;
    for (size_t i = 0; i < value.n; i++) {
        char c = value.p[i];
        if (c == ' ' || c == '\t') {
            gap = true;
            continue;
        }
        if (gap) {
            buf_add_char(out, ' ');
            gap = false;
        }
        buf_add_char(out, c);
    }
}

static void add_lower(struct buf *out, struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        buf_add_char(out, lower(name.p[i]));
    }
}

static bool same_as_before(const struct header_list *l, size_t i)
{
    // cppcheck-suppress arrayIndexOutOfBoundsCond ; i is below l->n, at most the array's length
    return i > 0 && compare_names(l->at[i].name, l->at[i - 1].name) == 0;
}

static void add_canonical_headers(struct buf *out, const struct header_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        if (same_as_before(l, i)) {
            buf_add_char(out, ',');
        } else {
            buf_add(out, "\n", i == 0 ? 0 : 1);
            add_lower(out, l->at[i].name);
            buf_add_char(out, ':');
        }
        add_value(out, l->at[i].value);
    }
    buf_add_char(out, '\n');
}

static void add_signed_names(struct buf *out, const struct header_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        if (!same_as_before(l, i)) {
            buf_add(out, ";", i == 0 ? 0 : 1);
            add_lower(out, l->at[i].name);
        }
    }
}

static void canonical(const struct sigv4_request *r, struct str query, const struct header_list *l,
                      struct buf *out)
{
    buf_add_str(out, r->method);
    buf_add_char(out, '\n');
    add_path(out, r);
    buf_add_char(out, '\n');
    add_query(out, query);
    buf_add_char(out, '\n');
    add_canonical_headers(out, l);
    buf_add_char(out, '\n');
    add_signed_names(out, l);
    buf_add_char(out, '\n');
    buf_add_str(out, r->payload_hash);
}

void sigv4_canonical(const struct sigv4_request *r, const char amz_date[static 17],
                     struct str token, struct buf *out)
{
    struct header_list l;
    collect_headers(r, str_of(amz_date), token, &l);
    canonical(r, r->query, &l, out);
}

static void add_scope(struct buf *out, const struct sigv4_request *r, const char *amz_date)
{
    buf_addf(out, "%.8s/" STR_FMT "/" STR_FMT "/aws4_request", amz_date, STR_ARG(r->region),
             STR_ARG(r->service));
}

/* Signature of a canonical request, 64 hex digits. */
static void signature(const struct sigv4_request *r, struct str canonical_request,
                      const char *secret, const char *amz_date, char out[static SHA256_HEX_N])
{
    char hash[SHA256_HEX_N];
    hash_sha256_hex(canonical_request.p, canonical_request.n, hash);
    AUTO_BUF struct buf text = BUF_INIT(SIGV4_SCOPE_BYTES * 2);
    buf_addf(&text, SIGV4_ALGORITHM "\n%s\n", amz_date);
    add_scope(&text, r, amz_date);
    buf_addf(&text, "\n%s", hash);
    ASSERT(!text.overflow);

    AUTO_BUF struct buf start = BUF_INIT(4 + sizeof((struct aws_creds *)0)->secret);
    buf_addf(&start, "AWS4%s", secret);
    ASSERT(!start.overflow);
    uint8_t key[32];
    uint8_t next[32];
    hash_hmac_sha256(start.p, start.n, amz_date, 8, key);
    hash_hmac_sha256(key, sizeof key, r->region.p, r->region.n, next);
    hash_hmac_sha256(next, sizeof next, r->service.p, r->service.n, key);
    hash_hmac_sha256(key, sizeof key, "aws4_request", strlen("aws4_request"), next);
    hash_hmac_sha256(next, sizeof next, text.p, text.n, key);
    str_hex(key, sizeof key, out);
    explicit_bzero(start.p, start.n);
    explicit_bzero(next, sizeof next);
}

void sigv4_sign(const struct sigv4_request *r, const struct aws_creds *c, usec_t now,
                char ret_date[static 17], struct buf *out)
{
    struct header_list l;
    clock_format_amz(now, ret_date);
    collect_headers(r, str_of(ret_date), str_of(c->session_token), &l);
    AUTO_BUF struct buf text = BUF_INIT(SIGV4_BYTES_MAX);
    canonical(r, r->query, &l, &text);
    ASSERT(!text.overflow); /* our own requests are far smaller */
    char hex[SHA256_HEX_N];
    signature(r, buf_str(&text), c->secret, ret_date, hex);
    buf_addf(out, SIGV4_ALGORITHM " Credential=%s/", c->key_id);
    add_scope(out, r, ret_date);
    buf_add_cstr(out, ", SignedHeaders=");
    add_signed_names(out, &l);
    buf_addf(out, ", Signature=%s", hex);
}

/* The date and token go into the query, so neither is among the headers. */
void sigv4_presign(const struct sigv4_request *r, const struct aws_creds *c, usec_t now,
                   int64_t expires_s, struct buf *out)
{
    struct header_list l;
    char date[17];
    ASSERT(expires_s > 0 && expires_s <= SIGV4_EXPIRES_S_MAX);
    clock_format_amz(now, date);
    collect_headers(r, STR(""), STR(""), &l);

    AUTO_BUF struct buf credential = BUF_INIT(SIGV4_SCOPE_BYTES * 2);
    buf_addf(&credential, "%s/", c->key_id);
    add_scope(&credential, r, date);
    AUTO_BUF struct buf names = BUF_INIT(SIGV4_BYTES_MAX);
    add_signed_names(&names, &l);
    AUTO_BUF struct buf query = BUF_INIT(SIGV4_BYTES_MAX);
    buf_add_cstr(&query, "X-Amz-Algorithm=" SIGV4_ALGORITHM "&X-Amz-Credential=");
    str_url_encode(&query, buf_str(&credential), false);
    buf_addf(&query, "&X-Amz-Date=%s&X-Amz-Expires=%lld", date, (long long)expires_s);
    if (c->session_token[0] != '\0') {
        buf_add_cstr(&query, "&X-Amz-Security-Token=");
        str_url_encode(&query, str_of(c->session_token), false);
    }
    buf_add_cstr(&query, "&X-Amz-SignedHeaders=");
    str_url_encode(&query, buf_str(&names), false);
    if (r->query.n > 0) {
        buf_add_char(&query, '&');
        buf_add_str(&query, r->query);
    }
    AUTO_BUF struct buf text = BUF_INIT(SIGV4_BYTES_MAX);
    canonical(r, buf_str(&query), &l, &text);
    ASSERT(!text.overflow && !query.overflow);
    char hex[SHA256_HEX_N];
    signature(r, buf_str(&text), c->secret, date, hex);
    buf_add_str(out, buf_str(&query));
    buf_addf(out, "&X-Amz-Signature=%s", hex);
}

static bool refuse(struct err *err, enum err_code code, const char *aws_code, const char *message)
{
    (void)err_set(err, code, "%s", message);
    if (err != NULL) {
        (void)snprintf(err->aws_code, sizeof err->aws_code, "%s", aws_code);
    }
    return false;
}

static bool incomplete(struct err *err, const char *message)
{
    return refuse(err, ERR_UNAUTHENTICATED, "IncompleteSignature", message);
}

/* The part behind the last '/', taken off *s. */
static bool take_last(struct str *s, struct str *ret)
{
    const char *slash = s->n == 0 ? NULL : memrchr(s->p, '/', s->n);
    if (slash == NULL) {
        return false;
    }
    size_t head = (size_t)(slash - s->p);
    *ret = (struct str){slash + 1, s->n - head - 1};
    s->n = head;
    return ret->n > 0;
}

/* KEYID/20260102/region/service/aws4_request, read from the end since a key id may hold '/'. */
static bool parse_credential(struct str s, struct sigv4_auth *a)
{
    struct str terminator;
    if (!take_last(&s, &terminator) || !str_eq_cstr(terminator, "aws4_request") ||
        !take_last(&s, &a->service) || !take_last(&s, &a->region) || !take_last(&s, &a->date)) {
        return false;
    }
    a->key_id = s;
    return s.n > 0 && a->date.n == 8;
}

static bool is_signature(struct str s)
{
    uint8_t bytes[32];
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] >= 'A' && s.p[i] <= 'F') {
            return false;
        }
    }
    return str_unhex(s, bytes, sizeof bytes);
}

bool sigv4_parse_authorization(struct str header, struct sigv4_auth *ret, struct err *err)
{
    struct sigv4_auth a = {0};
    struct str rest = str_trim(header);
    if (!str_eq_cstr(str_split(&rest, ' '), SIGV4_ALGORITHM)) {
        return incomplete(err, "the authorization is not of the kind " SIGV4_ALGORITHM);
    }
    struct str credential = {0};
    while (rest.n > 0) {
        struct str value = str_trim(str_split(&rest, ','));
        struct str name = str_split(&value, '=');
        struct str *to = str_eq_cstr(name, "Credential")      ? &credential
                         : str_eq_cstr(name, "SignedHeaders") ? &a.signed_headers
                         : str_eq_cstr(name, "Signature")     ? &a.signature
                                                              : NULL;
        if (to == NULL || to->p != NULL || value.n == 0) {
            return incomplete(err, "the authorization has an unknown, empty or repeated part");
        }
        *to = value;
    }
    if (credential.n == 0 || a.signed_headers.n == 0 || a.signature.n == 0) {
        return incomplete(err, "the authorization lacks Credential, SignedHeaders or Signature");
    }
    if (!parse_credential(credential, &a)) {
        return incomplete(err, "Credential is not KEY/DATE/REGION/SERVICE/aws4_request");
    }
    if (!is_signature(a.signature)) {
        return incomplete(err, "Signature is not 64 lower-case hex digits");
    }
    *ret = a;
    return true;
}

static bool mismatch(struct err *err, const char *message)
{
    return refuse(err, ERR_FORBIDDEN, "SignatureDoesNotMatch", message);
}

static bool date_ok(const struct sigv4_request *r, const struct sigv4_auth *auth,
                    const char *amz_date, usec_t now, int64_t window_us, struct err *err)
{
    usec_t at;
    if (!clock_parse_amz(amz_date, &at, NULL)) {
        return incomplete(err, "x-amz-date is not of the form 20260102T030405Z");
    }
    if (!str_eq(auth->date, (struct str){amz_date, 8})) {
        return mismatch(err, "Date in Credential scope does not match x-amz-date");
    }
    const char *code = r->is_s3 ? "RequestTimeTooSkewed" : "RequestExpired";
    if (now - at > window_us) {
        return refuse(err, ERR_FORBIDDEN, code, "Signature expired: x-amz-date is too old");
    }
    if (at - now > window_us) {
        return refuse(err, ERR_FORBIDDEN, code, "Signature not yet current: x-amz-date is ahead");
    }
    return true;
}

static bool has_host(const struct sigv4_request *r)
{
    for (size_t i = 0; i < r->headers_n; i++) {
        if (str_ieq_cstr(r->headers[i].name, "host")) {
            return true;
        }
    }
    return false;
}

bool sigv4_verify(const struct sigv4_request *r, const struct sigv4_auth *auth, const char *secret,
                  const char *amz_date, usec_t now, int64_t window_us, struct err *err)
{
    if (!str_eq(auth->region, r->region) || !str_eq(auth->service, r->service)) {
        return mismatch(err, "Credential should be scoped to another region or service");
    }
    if (r->headers_n > SIGV4_HEADERS_MAX || r->region.n + r->service.n > SIGV4_SCOPE_BYTES / 2 ||
        strlen(secret) >= sizeof((struct aws_creds *)0)->secret) {
        return mismatch(err, "too many signed headers, or a scope or secret too long");
    }
    if (!date_ok(r, auth, amz_date, now, window_us, err)) {
        return false;
    }
    if (!has_host(r)) {
        return mismatch(err, "'host' must be a signed header");
    }
    struct header_list l;
    collect_headers(r, str_of(amz_date), STR(""), &l);
    AUTO_BUF struct buf names = BUF_INIT(SIGV4_BYTES_MAX);
    add_signed_names(&names, &l);
    if (!str_eq(buf_str(&names), auth->signed_headers)) {
        return mismatch(err, "SignedHeaders do not name the headers sent, or are not sorted");
    }
    AUTO_BUF struct buf text = BUF_INIT(SIGV4_BYTES_MAX);
    canonical(r, r->query, &l, &text);
    if (text.overflow) {
        return mismatch(err, "the request is too large to verify");
    }
    char hex[SHA256_HEX_N];
    signature(r, buf_str(&text), secret, amz_date, hex);
    if (auth->signature.n != SHA256_HEX_N - 1 ||
        !hash_equal(hex, auth->signature.p, SHA256_HEX_N - 1)) {
        return mismatch(err, "The request signature we calculated does not match the signature "
                             "you provided. Check your key and signing method.");
    }
    return true;
}
