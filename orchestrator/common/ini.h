/* The INI form of the AWS profile files, read as the AWS CLI reads it (Python's configparser):
 * "[section]", "key = value" or "key: value", comments are whole lines that begin with # or ;, a
 * line indented deeper than its key continues the value. A section or key given twice and a line
 * without a delimiter are errors. Pure. */
#pragma once
#include "common/err.h"
#include "common/str.h"

struct ini_row {
    char *section;
    char *key;   /* lower case; NULL in the row of the section itself */
    char *value; /* the lines of a continued value are joined by \n */
};
struct ini {
    struct ini_row *rows; /* rows[n]; a section's own row, then its keys */
    size_t n, cap;
};

/* ERR_MALFORMED with the line's number. Values never appear in the message. *ret is empty then;
 * ini_done frees. */
bool ini_parse(struct str text, struct ini *ret, struct err *err) MUST_CHECK;
void ini_done(struct ini *i);
/* Row of the section; NULL: there is none. */
const struct ini_row *ini_section(const struct ini *i, const char *section);
/* Value of a key in a section; NULL: absent. Section "DEFAULT" holds for all sections. */
const char *ini_value(const struct ini *i, const char *section, const char *key);
/* Value of `key` in a continued value of lines "key = value"; the empty view when absent. */
struct str ini_nested(const char *value, const char *key);
