/* Readers and writers of fields of the stored form, for spec_json.c, spec_training_json.c,
 * spec_endpoint_json.c and spec_filesystem_json.c. */
#pragma once
#include "spec_json.h"

/* Reads one field a call. After the first field that does not fit every call does nothing. */
/* Reading a stored spec. A fault fills *err and sets bad, and the reader returns a value within its
 * bounds, so that a caller checks `bad` once at the end. Texts are copied into the arena. */
struct stored {
    struct arena *a;
    struct err *err;
    bool bad;
};
/* The value at key does not fit. */
void spec_stored_fail(struct stored *r, const char *key);
/* The value at key, which must be there and of its type (the number within min and max). */
int64_t spec_get_i64(struct stored *r, const json_t *o, const char *key, int64_t min, int64_t max);
bool spec_get_bool(struct stored *r, const json_t *o, const char *key);
/* v as a text. spec_get_text: that at key, NULL when absent; spec_need_text: it must be there. */
const char *spec_text_of(struct stored *r, const json_t *v, const char *key);
const char *spec_get_text(struct stored *r, const json_t *o, const char *key);
const char *spec_need_text(struct stored *r, const json_t *o, const char *key);
/* A list of texts or of pairs, at most max, into ret; returns how many. */
int spec_get_texts(struct stored *r, const json_t *o, const char *key, const char **ret,
                   size_t max);
int spec_get_pairs(struct stored *r, const json_t *o, const char *key, struct spec_pair *ret,
                   size_t max);
/* The stored forms; the caller owns what is returned. */
json_t *spec_pairs_out(const struct spec_pair *p, int n);
json_t *spec_texts_out(const char *const *s, int n);
void spec_put_text(json_t *o, const char *key, const char *s); /* NULL: nothing */

/* spec_training_json.c: `training` of a stage. */
json_t *spec_training_out(const struct spec_stage *s);
void spec_training_in(struct stored *r, const json_t *stage, struct spec_stage *s);
/* spec_endpoint_json.c: `endpoint` of a stage; a stage that has it is of that kind. */
json_t *spec_endpoint_out(const struct spec_endpoint *e);
void spec_endpoint_in(struct stored *r, const json_t *stage, struct spec_stage *s);
/* spec_filesystem_json.c: `filesystem` of a stage; a stage that has it is of kind lustre. */
json_t *spec_filesystem_out(const struct spec_filesystem *f);
void spec_filesystem_in(struct stored *r, const json_t *stage, struct spec_stage *s);
