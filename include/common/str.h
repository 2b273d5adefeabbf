/* Views of bytes (not owned, not NUL-terminated), strict number parsing, encoders. */
#pragma once
#include "err.h"

struct buf;
struct str {
    const char *p;
    size_t n;
};
#define STR(lit)   ((struct str){(lit), sizeof(lit) - 1})
#define STR_FMT    "%.*s"
#define STR_ARG(s) (int)(s).n, (s).p

struct str str_of(const char *cstr); /* NULL gives the empty view */
bool str_eq(struct str a, struct str b);
bool str_eq_cstr(struct str a, const char *b);
bool str_ieq_cstr(struct str a, const char *b); /* ignores ASCII case */
int str_cmp(struct str a, struct str b);        /* by bytes */
bool str_starts(struct str s, const char *prefix);
bool str_ends(struct str s, const char *suffix);
struct str str_trim(struct str s); /* without ASCII white space at both ends */
/* Without the byte order mark (U+FEFF) that editors of Windows put at the beginning of a file. */
struct str str_without_mark(struct str s);
/* Return the part before the first sep and set *s to the part after it (empty, at the end, when sep
 * does not occur). */
struct str str_split(struct str *s, char sep);
ptrdiff_t str_find(struct str s, struct str needle); /* offset or -1 */
char *str_dup(struct str s);                         /* the caller frees it */
bool str_is_utf8(struct str s);                      /* well-formed, no NUL */

/* A whole decimal number in [min, max] with optional '-'. Anything else is ERR_INVALID with the
 * text. */
bool parse_i64(struct str s, int64_t min, int64_t max, int64_t *ret, struct err *err) MUST_CHECK;
/* Decimal like "12.34" to an integer scaled by 10^digits, exact; more digits are an error. */
bool parse_decimal(struct str s, int digits, int64_t min, int64_t max, int64_t *ret,
                   struct err *err) MUST_CHECK;
/* "90", "90s", "15m", "4h", "2d", "1h30m" to whole seconds in [min_s, max_s]. */
bool parse_duration_s(struct str s, int64_t min_s, int64_t max_s, int64_t *ret,
                      struct err *err) MUST_CHECK;
/* "900 USD", "12.50 USD", "900" to micro-USD, >= 0. */
bool parse_usd(struct str s, int64_t *ret_musd, struct err *err) MUST_CHECK;

/* Append s percent-encoded by RFC 3986 (unreserved characters kept; '/' too when keep_slash). */
void str_url_encode(struct buf *out, struct str s, bool keep_slash);
/* Append s with %XX decoded ('+' becomes a space when plus_is_space); false on a bad escape. */
bool str_url_decode(struct buf *out, struct str s, bool plus_is_space) MUST_CHECK;
void str_hex(const uint8_t *p, size_t n,
             char *out); /* out holds 2n+1 bytes; lower case, NUL-terminated */
bool str_unhex(struct str s, uint8_t *out, size_t out_n) MUST_CHECK; /* exactly out_n bytes */
void str_base64(struct buf *out, const void *p, size_t n);
/* Levenshtein distance, capped at 64; for "did you mean". */
size_t str_distance(struct str a, struct str b);
