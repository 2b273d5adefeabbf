/* Lines of {"uri":..., "size":..., "vars":{...}}: a strict parser for the flat form nearly all
 * have, jansson for the rest. */
#pragma once
#include "common/arena.h"
#include "common/err.h"
#include "common/str.h"

#define NDJSON_LINE_MAX (64 * 1024)
#define NDJSON_URI_MAX  4096
#define NDJSON_VARS_MAX 32

struct ndjson_part {
    struct str uri;  /* into the line, or into the arena */
    int64_t size;    /* 0 when absent */
    struct str vars; /* JSON text, as uri; empty when absent */
};
/* One line without its newline. The arena is used for lines that are not flat; reset it between
 * lines. err names what is wrong; *ret_pointer (static) the key at fault. */
bool ndjson_part_parse(struct str line, struct arena *a, struct ndjson_part *ret,
                       const char **ret_pointer, struct err *err) MUST_CHECK;
/* Next line of *text, without its newline and a \r before it; false at the end. */
bool ndjson_next(struct str *text, struct str *ret_line) MUST_CHECK;
