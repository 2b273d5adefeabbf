/* Strict JSON over jansson: no duplicate keys, depth <= 32, valid UTF-8, no NUL. Readers fail with
 * ERR_MALFORMED or ERR_INVALID and a message that names the key. */
#pragma once
#include "cleanup.h"
#include "str.h"
#include "units.h"
#include <jansson.h>

#define JSON_DEPTH_MAX 32
#define JSON_ABSENT    INT64_MIN /* as a default: the key is required */

/* Parse a whole document of at most max_bytes; the caller decrefs. */
bool json_parse(struct str text, size_t max_bytes, json_t **ret, struct err *err) MUST_CHECK;
/* Getters of object o. null counts as absent. An absent key takes `dflt`; JSON_ABSENT as the
 * default of a number makes the key required. The default may lie outside min..max; that of
 * json_get_str may be NULL. Strings are borrowed from o. json_get_required_str fails when the key
 * is absent or empty. */
bool json_get_i64(const json_t *o, const char *key, int64_t min, int64_t max, int64_t dflt,
                  int64_t *ret, struct err *err) MUST_CHECK;
bool json_get_bool(const json_t *o, const char *key, bool dflt, bool *ret,
                   struct err *err) MUST_CHECK;
bool json_get_str(const json_t *o, const char *key, const char *dflt, const char **ret,
                  struct err *err) MUST_CHECK;
bool json_get_required_str(const json_t *o, const char *key, const char **ret,
                           struct err *err) MUST_CHECK;
/* An absent key sets *ret to NULL and returns true. */
bool json_get_object(const json_t *o, const char *key, json_t **ret, struct err *err) MUST_CHECK;
bool json_get_array(const json_t *o, const char *key, json_t **ret, struct err *err) MUST_CHECK;
/* Epoch seconds with a fraction (AWS json 1.x) to microseconds; absent gives dflt. */
bool json_get_epoch(const json_t *o, const char *key, usec_t dflt, usec_t *ret,
                    struct err *err) MUST_CHECK;
/* Fail unless every key of o is in the NULL-terminated list; the message suggests the nearest
 * key. */
bool json_only_keys(const json_t *o, const char *const *keys, struct err *err) MUST_CHECK;
/* Compact text, keys in insertion order; the caller frees it. */
char *json_text(const json_t *v);

/* A streaming writer without a tree; it adds the commas. Depth <= JSON_DEPTH_MAX. Appends to b. */
struct json_out {
    struct buf *b;
    int depth;
    bool first[JSON_DEPTH_MAX + 1];
    bool after_key;
};
void json_out_init(struct json_out *w, struct buf *b);
void json_out_object(struct json_out *w,
                     const char *key); /* key is NULL inside an array and at the top */
void json_out_array(struct json_out *w, const char *key);
void json_out_end_object(struct json_out *w);
void json_out_end_array(struct json_out *w);
void json_out_str(struct json_out *w, const char *key, const char *v); /* v NULL writes null */
void json_out_strn(struct json_out *w, const char *key, struct str v);
void json_out_i64(struct json_out *w, const char *key, int64_t v);
void json_out_bool(struct json_out *w, const char *key, bool v);
void json_out_double(struct json_out *w, const char *key,
                     double v); /* shortest text that reads back as the same number */
void json_out_null(struct json_out *w, const char *key);
/* json is valid JSON already */
void json_out_raw(struct json_out *w, const char *key, struct str json);
void json_out_time(struct json_out *w, const char *key,
                   usec_t t); /* RFC 3339; USEC_NEVER or 0 writes null */
/* Append v as Python's json writes a float: "100.0", "1e-05", "1e+16", "NaN", "-Infinity". */
void json_python_float(struct buf *b, double v);
void json_escape(struct buf *b, struct str s,
                 bool ascii_only); /* with quotes; ascii_only: \uXXXX and surrogate pairs */
