/* Requests held against the shapes of the service, in tables: what is required, lengths, ranges,
 * words and patterns, where the service asks for more than its model (../model) says. Faults in the
 * services' words, all at once. */
#pragma once
#include "sagemaker_rules.h"

enum shape_kind {
    SHAPE_TEXT,
    SHAPE_INT,
    SHAPE_BOOL,
    SHAPE_NUMBER,
    SHAPE_PART,
    SHAPE_LIST,
    SHAPE_TEXTS,
    SHAPE_MAP
};

struct shape_field {
    const char *name;
    enum shape_kind kind;
    bool required;
    int64_t min, max;  /* TEXT: characters; INT, NUMBER: value; LIST, TEXTS: items; MAP: entries */
    const char *words; /* TEXT: the enum, words parted by one blank; NULL: any */
    const char *pattern;            /* TEXT, each of TEXTS: POSIX extended, anchored; NULL: any */
    const struct request_shape *of; /* PART, each of LIST */
};
struct request_shape {
    const struct shape_field *fields;
    size_t n;
};
#define SHAPE(fields)                                                                              \
    {                                                                                              \
        (fields), ARRAY_LEN(fields)                                                                \
    }

#define SHAPE_NAME_PATTERN "[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}"
#define SHAPE_ROLE_PATTERN "arn:aws[a-z-]*:iam::[0-9]{12}:role/?[a-zA-Z_0-9+=,.@/_-]+"

/* The `Tags` member that most requests have. */
#define SHAPE_TAGS                                                                                 \
    {                                                                                              \
        "Tags", SHAPE_LIST, false, 0, 50, NULL, NULL, &shape_tag                                   \
    }
extern const struct request_shape shape_tag;

/* Check r->input; false: answered with a ValidationException that names every fault. */
bool shape_check(struct request *r, const struct request_shape *shape) MUST_CHECK;
