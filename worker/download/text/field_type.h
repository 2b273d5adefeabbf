/* Types of columns that have none, from all their values. Pure. */
#pragma once
#include "common/buf.h"
#include "common/str.h"
#include <jansson.h>

/* Of texts, as pyarrow's csv reader infers them, of all rows instead of the first megabyte:
 * integer, then boolean, then real, else text. Dates stay text. */
struct field_guess { /* zeroed: no value yet */
    bool some;       /* a value that is not null */
    bool not_int, not_bool, not_real;
};
/* True for the texts that are null in a column that is not text: "", NA, null, NaN ... */
bool field_is_null(struct str s);
bool field_int(struct str s, int64_t *ret);
bool field_bool(struct str s, bool *ret);
bool field_real(struct str s, double *ret);
void field_guess_add(struct field_guess *g, struct str s);
/* SQL type: BIGINT, BOOLEAN, DOUBLE, VARCHAR; "NULL": no value. */
const char *field_guess_type(const struct field_guess *g);

/* Of JSON values. Integers and reals are one column of reals; other mixtures are a fault. */
struct field_type;
struct field_type *field_type_new(void);
void field_type_free(struct field_type *t);
/* Widen t to v. False: it does not fit, *ret_why says why ("a text, before a list"). */
bool field_type_add(struct field_type *t, const json_t *v, char ret_why[static 80]) MUST_CHECK;
/* Append the SQL type, as BIGINT[] or STRUCT("a" DOUBLE); "NULL": no value. */
void field_type_sql(const struct field_type *t, struct buf *out);
/* Append a value as compact JSON, numbers as Python writes them. With a type (NULL: none) objects
 * have all its members: those that v lacks are null. */
void field_json(struct buf *out, const struct field_type *t, const json_t *v);
