/* What-if: changes to try on a forecast, and their text form:
 * slots=30,type=ml.c5n.18xlarge,parts=12,spot_loss=0.2,order=fifo. Pure. */
#pragma once
#include "common/position.h"
#include "common/str.h"
#include "core/model.h"

#define WHAT_IF_TEXT_MAX 512

struct what_if {
    int64_t slots;      /* quota of the type in instances; -1: unchanged */
    int64_t parts;      /* limits.parts; -1: unchanged */
    double spot_loss;   /* probability that a try is lost to spot, [0, 1); < 0: unchanged */
    bool fifo;          /* order=fifo instead of longest first */
    bool longest_first; /* order=longest */
    char instance_type[INSTANCE_TYPE_MAX + 1]; /* "": unchanged */
};
/* Parse the text form. Reports all faults at once: unknown key (with a suggestion), given twice,
 * out of range. Empty text changes nothing. */
bool what_if_parse(struct str text, struct what_if *ret, struct faults *faults) MUST_CHECK;
