/* Whether requests can be made of a stage's parts, asked before they are there: of the stage once,
 * of each part cheaply. Nothing is borrowed but the stage and its campaign. Pure. */
#pragma once
#include "common/buf.h"
#include "common/err.h"
#include "core/spec/spec.h"

#define REQUEST_CHECK_VARS_MAX 64

struct request_checks {
    const struct spec *spec;
    const struct spec_stage *stage;
    const char *region;
    struct str vars[REQUEST_CHECK_VARS_MAX]; /* of its parts, that templates name */
    int vars_n;
    size_t text_max; /* values no longer than this fit wherever a template puts them */
    int whole_left;  /* requests that may still be made */
    struct buf request;
};
void request_check_begin(struct request_checks *c, const struct spec *s,
                         const struct spec_stage *stage, const char *region);
void request_check_done(struct request_checks *c); /* cleanup function */
/* The stage itself, of any kind: with a part whose texts are short. ERR_INVALID says which field
 * breaks which limit. */
bool request_check_stage(struct request_checks *c, struct err *err) MUST_CHECK;
/* One part of a stage of jobs. vars: JSON text of an object of strings; empty: none. What is short
 * and has each variable fits; of the others a request is made, of a limited number: the leader
 * looks at each again. */
bool request_check_part(struct request_checks *c, int64_t seq, struct str uri, int64_t size,
                        struct str vars, struct err *err) MUST_CHECK;
