/* What-if: changes to try on a forecast, and their text form:
 * slots=30,type=ml.c5n.18xlarge,parts=12,spot_loss=0.2,order=fifo,budget=900,priority=80. Those of
 * a campaign's own limits change what PATCH of them would. Pure. */
#pragma once
#include "common/position.h"
#include "common/str.h"
#include "core/model.h"

#define WHAT_IF_TEXT_MAX 512
#define WHAT_IF_NO_LIMIT (-2) /* "none" */

struct what_if {
    int64_t slots;      /* quota of the type in instances; -1: unchanged */
    int64_t parts;      /* limits.parts, of `stage` or of the campaign; -1: unchanged */
    musd_t budget_musd; /* the cap of the same; -1: unchanged */
    int priority;       /* -1: unchanged */
    double spot_loss;   /* probability that a try is lost to spot, [0, 1); < 0: unchanged */
    bool fifo;          /* order=fifo instead of longest first */
    bool longest_first; /* order=longest */
    char instance_type[INSTANCE_TYPE_MAX + 1]; /* "": unchanged */
    char stage[64];                            /* whose limits these are; "": the campaign's */
};
#define WHAT_IF_NOTHING                                                                            \
    {                                                                                              \
        .slots = -1, .parts = -1, .budget_musd = -1, .priority = -1, .spot_loss = -1               \
    }
/* Parse the text form. Reports all faults at once: unknown key (with a suggestion), given twice,
 * out of range, a stage without a limit. Empty text changes nothing. */
bool what_if_parse(struct str text, struct what_if *ret, struct faults *faults) MUST_CHECK;
