/* Injected failures: a list of faults, each with the requests it applies to, what it does and how
 * often.
 *
 * {"operation":"CreateTrainingJob","name_contains":"part-7","kind":"drop_after","times":1,
 * "after":0,"probability":0.1,"seed":7,"delay_seconds":2,"reason":"...","same_name":true}
 *
 * Only `kind` is required. `instance_type` and `subnet`: it meets requests that want that type, and
 * whose subnets are that one alone: another zone still has room. `repeat` is for spot_interrupt:
 * how often the same job is interrupted, each time `delay_seconds` after it began to train; it
 * meets spot jobs only. `after` lets that many matching requests pass first; `times` bounds how
 * often it acts (1 when neither `times` nor `probability` is given, unbounded when only
 * `probability` is). */
#pragma once
#include "common/json.h"
#include "common/rng.h"
#include "local/http/request.h"

#define FAULTS_LIST_MAX  1024
#define FAULT_REPEAT_MAX 5 /* each interruption adds four entries to a job's history */

enum injected_fault_kind {
#define X(KIND, name, stage) FAULT_##KIND,
#include "faults.def"
#undef X
    FAULT_KIND_COUNT
};

struct injected_fault {
    enum injected_fault_kind kind;
    char operation[64];      /* "" any */
    char name_contains[128]; /* "" any */
    char instance_type[64];  /* "" any */
    char subnet[64];         /* "" any */
    int64_t times;           /* activations left; -1: unbounded */
    int64_t after;           /* matching requests to let pass first */
    double probability;      /* 1 when not given */
    struct rng rng;
    int64_t delay_us; /* -1: the kind's default */
    char reason[1025];
    bool same_name;
    int64_t repeat;
    int64_t limit; /* quota_lower */
    int64_t hits;
};
struct injected_faults {
    struct injected_fault *items[FAULTS_LIST_MAX];
    size_t n;
    struct injected_fault *
        *retired; /* replaced faults that a request in flight may still point to */
    size_t retired_n;
};

void faults_init(struct injected_faults *f);
void faults_done(struct injected_faults *f);
/* Set the list from a JSON array; on an error nothing changes. */
bool faults_set(struct injected_faults *f, const json_t *list, bool append,
                struct err *err) MUST_CHECK;
json_t *faults_to_json(const struct injected_faults *f);
/* Decide which faults apply to this request: fills r->armed. Call once per request, with the mutex
 * held. */
void faults_arm(struct injected_faults *f, struct request *r);
/* The fault of STAGE_EVENT that meets the next event of a job: it acts. NULL: none does. */
const struct injected_fault *faults_take_event(struct injected_faults *f, const char *job);
/* The armed fault of a stage, which now acts (its count decreases); NULL when there is none. */
const struct injected_fault *faults_take(struct request *r, enum fault_stage stage);
const char *fault_kind_name(enum injected_fault_kind k);
/* The fault's delay, or the kind's when it gives none. */
int64_t fault_delay_us(const struct injected_fault *f, int64_t dflt_us);
