/* Readers and writers of fields of the stored form, for spec_json.c and spec_training_json.c. */
#pragma once
#include "spec_json.h"

/* Reads one field a call. After the first field that does not fit every call does nothing. */
struct stored {
    struct arena *a;
    struct err *err;
    bool bad;
};
void spec_stored_fail(struct stored *r, const char *key);
int64_t spec_get_i64(struct stored *r, const json_t *o, const char *key, int64_t min, int64_t max);
bool spec_get_bool(struct stored *r, const json_t *o, const char *key);
const char *spec_text_of(struct stored *r, const json_t *v, const char *key);
const char *spec_get_text(struct stored *r, const json_t *o, const char *key);
const char *spec_need_text(struct stored *r, const json_t *o, const char *key);
int spec_get_texts(struct stored *r, const json_t *o, const char *key, const char **ret,
                   size_t max);
int spec_get_pairs(struct stored *r, const json_t *o, const char *key, struct spec_pair *ret,
                   size_t max);
json_t *spec_pairs_out(const struct spec_pair *p, int n);
json_t *spec_texts_out(const char *const *s, int n);
void spec_put_text(json_t *o, const char *key, const char *s); /* NULL: nothing */

/* spec_training_json.c: `training` of a stage. */
json_t *spec_training_out(const struct spec_stage *s);
void spec_training_in(struct stored *r, const json_t *stage, struct spec_stage *s);
