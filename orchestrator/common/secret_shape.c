/* Shapes of keys; see secret_shape.h. */
#include "common/secret_shape.h"
#include <ctype.h>

enum letters { UPPER_DIGITS, ALNUM, WORD };
static const struct shape {
    const char *prefix;
    enum letters letters;
    size_t least; /* letters after the prefix */
    const char *what;
} shapes[] = {
    {"AKIA", UPPER_DIGITS, 16, "an AWS access key id"},
    {"ASIA", UPPER_DIGITS, 16, "an AWS access key id"},
    {"ghp_", ALNUM, 36, "a GitHub token"},
    {"gho_", ALNUM, 36, "a GitHub token"},
    {"ghs_", ALNUM, 36, "a GitHub token"},
    {"github_pat_", WORD, 22, "a GitHub token"},
    {"glpat-", WORD, 20, "a GitLab token"},
    {"hf_", ALNUM, 30, "a Hugging Face token"},
    {"xoxb-", WORD, 10, "a Slack token"},
    {"xoxp-", WORD, 10, "a Slack token"},
    {"sk-", WORD, 20, "an API key"},
    {"sk_live_", ALNUM, 20, "an API key"},
    {"AIza", WORD, 35, "a Google API key"},
    {"npm_", ALNUM, 36, "an npm token"},
    {"pypi-", WORD, 50, "a PyPI token"},
    {"dckr_pat_", WORD, 20, "a Docker token"},
};

static bool is_letter(char c, enum letters set)
{
    unsigned char u = (unsigned char)c;
    switch (set) {
    case UPPER_DIGITS:
        return isupper(u) || isdigit(u);
    case ALNUM:
        return isalnum(u);
    case WORD:
        return isalnum(u) || c == '_' || c == '-';
    }
    return false;
}

static size_t letters_at(struct str s, size_t at, enum letters set)
{
    size_t n = 0;
    while (at + n < s.n && is_letter(s.p[at + n], set)) {
        n++;
    }
    return n;
}

static bool is_base64(char c)
{
    return isalnum((unsigned char)c) || c == '/' || c == '+';
}

static bool has(struct str s, const char *word)
{
    return str_find(s, str_of(word)) >= 0;
}

/* What a key's letters are, without the prefix that tells its kind. */
struct key_range {
    size_t at, n; /* n 0: nothing there */
    const char *what;
};

static struct key_range shape_at(struct str s, size_t at)
{
    if (at > 0 && is_letter(s.p[at - 1], ALNUM)) {
        return (struct key_range){0};
    }
    for (size_t k = 0; k < ARRAY_LEN(shapes); k++) {
        const struct shape *f = &shapes[k];
        size_t n = strlen(f->prefix);
        if (s.n - at < n || memcmp(s.p + at, f->prefix, n) != 0) {
            continue;
        }
        size_t letters = letters_at(s, at + n, f->letters);
        if (letters >= f->least) {
            return (struct key_range){at + n, letters, f->what};
        }
    }
    return (struct key_range){0};
}

/* eyJ...eyJ...: all of it but the first letters */
static struct key_range jwt_at(struct str s, size_t at)
{
    if (s.n - at < 4 || memcmp(s.p + at, "eyJ", 3) != 0) {
        return (struct key_range){0};
    }
    size_t n = 3, dots = 0;
    while (at + n < s.n && (is_letter(s.p[at + n], WORD) || s.p[at + n] == '.')) {
        dots += s.p[at + n] == '.' && at + n + 3 < s.n && memcmp(s.p + at + n + 1, "eyJ", 3) == 0;
        n++;
    }
    return (struct key_range){at + 3, dots > 0 ? n - 3 : 0, "a signed token (JWT)"};
}

static struct key_range private_key_at(struct str s, size_t at)
{
    const struct str head = STR("PRIVATE KEY-----");
    struct str rest = {s.p + at, s.n - at};
    if (rest.n <= head.n || memcmp(rest.p, head.p, head.n) != 0) {
        return (struct key_range){0};
    }
    rest = (struct str){rest.p + head.n, rest.n - head.n};
    ptrdiff_t end = str_find(rest, STR("-----END"));
    return (struct key_range){at + head.n, end >= 0 ? (size_t)end : rest.n, "a private key"};
}

/* user:password@ in a URL: the password */
static struct key_range url_password_at(struct str s, size_t at)
{
    size_t colon = 0;
    if (s.n - at < 3 || memcmp(s.p + at, "://", 3) != 0) {
        return (struct key_range){0};
    }
    for (size_t i = at + 3; i < s.n && s.p[i] != '/' && !isspace((unsigned char)s.p[i]); i++) {
        if (s.p[i] == '@') {
            bool any = colon > 0 && i > colon + 1;
            return (struct key_range){colon + 1, any ? i - colon - 1 : 0, "a URL with a password"};
        }
        colon = s.p[i] == ':' && colon == 0 ? i : colon;
    }
    return (struct key_range){0};
}

/* By its first letter, since millions of addresses of parts are looked through. */
static struct key_range key_at(struct str s, size_t at)
{
    switch (s.p[at]) {
    case 'A':
    case 'd':
    case 'g':
    case 'h':
    case 'n':
    case 'p':
    case 's':
    case 'x':
        return shape_at(s, at);
    case 'e':
        return jwt_at(s, at);
    case 'P':
        return private_key_at(s, at);
    case ':':
        return url_password_at(s, at);
    default:
        return (struct key_range){0};
    }
}

/* The first key at or after `from` whose own letters say so. */
static struct key_range next_key(struct str s, size_t from)
{
    for (size_t at = from; at < s.n; at++) {
        struct key_range r = key_at(s, at);
        if (r.n > 0) {
            return r;
        }
    }
    return (struct key_range){0};
}

/* 40 letters of base64 with upper case, lower case and a digit: a SHA-1 has no upper case. */
static bool aws_secret(struct str s)
{
    bool upper = false, lower = false, digit = false, other = s.n != 40;
    for (size_t i = 0; i < s.n && !other; i++) {
        unsigned char c = (unsigned char)s.p[i];
        upper |= isupper(c) != 0;
        lower |= islower(c) != 0;
        digit |= isdigit(c) != 0;
        other = !is_base64((char)c);
    }
    return upper && lower && digit && !other;
}

const char *secret_shape(struct str text)
{
    struct key_range r = next_key(text, 0);
    return r.n > 0                         ? r.what
           : has(text, "PRIVATE KEY-----") ? "a private key"
           : aws_secret(str_trim(text))    ? "an AWS secret access key"
                                           : NULL;
}

/* Letters go to `to`, which stands at or before what is read. */
static char *copy(char *to, const char *from, size_t n)
{
    memmove(to, from, n);
    return to + n;
}

static void mask_keys(char *text)
{
    struct str s = str_of(text);
    size_t at = 0;
    char *to = text;
    for (struct key_range r; (r = next_key(s, at)).n > 0; at = r.at + r.n) {
        to = copy(to, s.p + at, r.at - at);
        to = copy(to, "***", MIN(r.n, (size_t)3));
    }
    to = copy(to, s.p + at, s.n - at);
    *to = '\0';
}

/* Words that are an AWS secret by their letters alone may be a path or a hash: only where the text
 * speaks of a secret. */
static void mask_aws_secrets(char *text)
{
    if (strcasestr(text, "secret") == NULL) {
        return;
    }
    for (char *p = text; *p != '\0';) {
        struct str word = {p, 0};
        while (is_base64(p[word.n])) {
            word.n++;
        }
        if (aws_secret(word)) {
            memcpy(p, "***", 3);
            memmove(p + 3, p + word.n, strlen(p + word.n) + 1);
            word.n = 3;
        }
        p += MAX(word.n, (size_t)1);
    }
}

void secret_mask(char *text)
{
    mask_keys(text);
    mask_aws_secrets(text);
}

/* What stands behind the last blank, which a time or a level of the log may stand before. */
static struct str last_word(const char *text)
{
    struct str s = str_trim(str_of(text));
    size_t from = s.n;
    while (from > 0 && !isspace((unsigned char)s.p[from - 1])) {
        from--;
    }
    return (struct str){s.p + from, s.n - from};
}

/* Letters of base64, filled up with = at the end. *ret_mixed: of all kinds, as a key has them and
 * a hash or a word does not. */
static bool is_encoded(struct str word, bool *ret_mixed)
{
    bool upper = false, lower = false, digit = false;
    size_t fill = 0;
    while (fill < 2 && fill < word.n && word.p[word.n - 1 - fill] == '=') {
        fill++;
    }
    for (size_t i = 0; i + fill < word.n; i++) {
        unsigned char c = (unsigned char)word.p[i];
        if (!is_base64((char)c)) {
            return false;
        }
        upper |= isupper(c) != 0;
        lower |= islower(c) != 0;
        digit |= isdigit(c) != 0;
    }
    *ret_mixed = upper && lower && digit;
    return word.n > 0;
}

void secret_mask_line(char *text, bool *in_key)
{
    const size_t usual = 64, openssh = 70, mime = 76; /* letters of a key's line */
    struct str word = last_word(text);
    const char *begins = strstr(text, "PRIVATE KEY-----");
    bool mixed = false, was = *in_key;
    bool encoded = is_encoded(word, &mixed);
    bool full = encoded && mixed && (word.n == usual || word.n == openssh || word.n == mime);
    *in_key = full || (begins != NULL && strstr(text, "-----END") == NULL);
    if (full || (was && encoded && word.n % 2 == 0)) {
        char *at = text + (word.p - text);
        (void)memcpy(at, "***", MIN(word.n, (size_t)3));
        at[MIN(word.n, (size_t)3)] = '\0';
    }
    secret_mask(text);
}

const char *secret_shape_named(const char *name, struct str value)
{
    static const char *const ends[] = {"TOKEN",      "SECRET",      "PASSWORD",   "PASSWD",
                                       "SECRET_KEY", "ACCESS_KEY",  "API_KEY",    "APIKEY",
                                       "CREDENTIAL", "CREDENTIALS", "PRIVATE_KEY"};
    struct str v = str_trim(value), key = str_of(name);
    bool reference =
        v.n < 8 || str_starts(v, "arn:") || v.p[0] == '/' || has(v, "://") || has(v, " ");
    for (size_t i = 0; i < ARRAY_LEN(ends) && !reference; i++) {
        size_t n = strlen(ends[i]);
        struct str tail = {key.p + key.n - MIN(n, key.n), MIN(n, key.n)};
        bool whole = key.n == n || (key.n > n && key.p[key.n - n - 1] == '_');
        if (whole && str_ieq_cstr(tail, ends[i])) {
            return "a secret, by the name of its variable";
        }
    }
    return secret_shape(value);
}
