/* Reads lines of {"uri":..., "size":..., "vars":{...}}: a strict fast parser for the flat form of
 * nearly all lines, jansson for the rest. */
#pragma once
#include "common/arena.h"
#include "common/err.h"
#include "common/str.h"

#define NDJSON_LINE_MAX (64 * 1024)
#define NDJSON_URI_MAX  4096
#define NDJSON_VARS_MAX 32

struct ndjson_part {
    struct str uri;  /* borrowed from the line or the arena */
    int64_t size;    /* 0 when absent */
    struct str vars; /* JSON text, borrowed like uri; empty when absent */
};
/* Parse one line without its newline. The arena is used for lines that are not flat; reset it
 * between lines. On false err says what is wrong and *ret_pointer (static) names the key. */
bool ndjson_part_parse(struct str line, struct arena *a, struct ndjson_part *ret,
                       const char **ret_pointer, struct err *err) MUST_CHECK;
/* The next line of *text without its newline or "\r\n". False at the end. */
bool ndjson_next(struct str *text, struct str *ret_line) MUST_CHECK;
