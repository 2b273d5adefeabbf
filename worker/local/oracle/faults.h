/* Failures on order: a list of faults, each saying which requests it meets, what it does, how
 * often.
 *
 * {"operation":"CreateTrainingJob","name_contains":"part-7","kind":"drop_after","times":1,
 *  "after":0,"probability":0.1,"seed":7,"delay_seconds":2,"reason":"...","same_name":true}
 *
 * Only `kind` is required. `repeat` is for spot_interrupt: how often the same job is interrupted,
 * each time `delay_seconds` after it began to train; it meets spot jobs only. `after` lets that
 * many matching requests pass first; `times` bounds how often it acts (1 when neither `times` nor
 * `probability` is given, without bound when only `probability` is). */
#pragma once
#include "common/json.h"
#include "common/rng.h"
#include "local/http/request.h"

#define FAULTS_LIST_MAX  1024
#define FAULT_REPEAT_MAX 5 /* each costs a job four steps of its history */

enum fault_kind {
#define X(KIND, name, stage) FAULT_##KIND,
#include "faults.def"
#undef X
    FAULT_KIND_COUNT
};

struct fault {
    enum fault_kind kind;
    char operation[64];      /* "" any */
    char name_contains[128]; /* "" any */
    int64_t times;           /* left; -1: no bound */
    int64_t after;           /* matching requests still to let pass */
    double probability;      /* 1 when not given */
    struct rng rng;
    int64_t delay_us; /* -1: the kind's own */
    char reason[1025];
    bool same_name;
    int64_t repeat;
    int64_t hits;
};
struct faults {
    struct fault *items[FAULTS_LIST_MAX];
    size_t n;
    struct fault **retired; /* replaced, but a request in flight may still point to one */
    size_t retired_n;
};

void faults_init(struct faults *f);
void faults_done(struct faults *f);
/* Set the list from a JSON array; on a fault in it nothing changes. */
bool faults_set(struct faults *f, const json_t *list, bool append, struct err *err) MUST_CHECK;
json_t *faults_to_json(const struct faults *f);
/* Decide which faults meet this request: fills r->armed. Call once a request, mutex held. */
void faults_arm(struct faults *f, struct request *r);
/* The armed fault of a stage, now acting (its count goes down); NULL when none. */
const struct fault *faults_take(struct request *r, enum fault_stage stage);
const char *fault_kind_name(enum fault_kind k);
/* The fault's delay, or the kind's when it gives none. */
int64_t fault_delay_us(const struct fault *f, int64_t dflt_us);
