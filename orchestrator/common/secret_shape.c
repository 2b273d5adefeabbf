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

static bool has(struct str s, const char *word)
{
    return str_find(s, str_of(word)) >= 0;
}

/* user:password@ in a URL */
static bool url_password(struct str s)
{
    ptrdiff_t at = str_find(s, STR("://"));
    if (at < 0) {
        return false;
    }
    bool colon = false;
    for (size_t i = (size_t)at + 3; i < s.n && s.p[i] != '/' && s.p[i] != ' '; i++) {
        if (s.p[i] == '@') {
            return colon;
        }
        colon |= s.p[i] == ':' && i + 1 < s.n && s.p[i + 1] != '@';
    }
    return false;
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
        other = !isalnum(c) && c != '/' && c != '+';
    }
    return upper && lower && digit && !other;
}

const char *secret_shape(struct str text)
{
    for (size_t k = 0; k < ARRAY_LEN(shapes); k++) {
        const struct shape *f = &shapes[k];
        size_t n = strlen(f->prefix);
        struct str rest = text;
        for (ptrdiff_t at; (at = str_find(rest, str_of(f->prefix))) >= 0;) {
            size_t i = (size_t)at;
            bool begins = i == 0 || !is_letter(rest.p[i - 1], ALNUM);
            if (begins && letters_at(rest, i + n, f->letters) >= f->least) {
                return f->what;
            }
            rest = (struct str){rest.p + i + n, rest.n - i - n};
        }
    }
    struct str trimmed = str_trim(text);
    return has(text, "PRIVATE KEY-----")           ? "a private key"
           : has(text, "eyJ") && has(text, ".eyJ") ? "a signed token (JWT)"
           : aws_secret(trimmed)                   ? "an AWS secret access key"
           : url_password(text)                    ? "a URL with a password"
                                                   : NULL;
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
