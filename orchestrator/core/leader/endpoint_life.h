/* The life of an endpoint and of the model and config that it consists of, from its intent to the
 * proof that all three are gone. All three have one name, made from the identity of the try, so a
 * call whose answer was lost is resolved by Describe of that name and never makes a second one. It
 * is deleted when its time is over, when a person or the end of its campaign asks for it, and when
 * it fails; without a sight of it when AWS does not tell of it, and it is gone when a Delete says
 * so. Pure: now_us is the wall clock as AWS has it, CLOCK_BOOTTIME is boot_us.
 * Source: Amazon SageMaker API reference, CreateEndpoint, DeleteEndpoint, DescribeEndpoint. */
#pragma once
#include "common/aws_outcome.h"
#include "core/capacity/endpoint_report.h"
#include "endpoint_list.h"

#define ENDPOINT_CREATE_MAX_US (INT64_C(7200) * USEC_PER_SEC) /* longer: it has failed */

enum endpoint_act {
    ENDPOINT_ACT_NONE,
    ENDPOINT_ACT_CREATE,
    ENDPOINT_ACT_DESCRIBE,
    ENDPOINT_ACT_DELETE,
    ENDPOINT_ACT_PAYLOADS, /* what its smoke test sends has to be read */
    ENDPOINT_ACT_INVOKE    /* payload `asked` of it */
};
struct endpoint_call {
    enum endpoint_act act;
    enum hosting_kind kind; /* of CREATE, DESCRIBE and DELETE */
};
/* The next call about one that has none under way. *wake_us is lowered to when to ask again. */
struct endpoint_call leader_endpoint_next(const struct leader_state *s,
                                          const struct live_endpoint *e, usec_t now_us,
                                          int64_t boot_us, int64_t poll_us, int64_t *wake_us);
enum endpoint_word {
    ENDPOINT_SAID_YES,    /* made or there already; there; deletion begun; answered */
    ENDPOINT_SAID_ABSENT, /* of Describe and Delete */
    ENDPOINT_SAID_BUSY,   /* of Delete: it is being created */
    ENDPOINT_SAID_NO,     /* a clean refusal: *failure */
    ENDPOINT_SAID_NOTHING /* nobody knows, or nothing was sent: *failure */
};
struct endpoint_fact { /* how a call was answered; pointers are borrowed, and NULL when they say
                          nothing */
    struct endpoint_call call;
    enum endpoint_word said;
    const struct endpoint_description *seen; /* YES of DESCRIBE */
    const struct aws_failure *failure;       /* NO, NOTHING */
    int status;                              /* YES of INVOKE: of the model */
    int64_t took_us;                         /* YES of INVOKE */
    const char *text;                        /* YES of INVOKE with another status; NO of PAYLOADS */
    int payloads_n;                          /* YES of PAYLOADS */
    int p95_ms;                              /* of INVOKE: slower fails; 0: not said */
    int64_t window_us; /* for so long after a Create was signed it may still take effect */
    int64_t asked_us;  /* of ABSENT: when the call was made, by CLOCK_BOOTTIME */
};

enum endpoint_news {
    ENDPOINT_AS_BEFORE,
    ENDPOINT_MOVED, /* `row` is to be written */
    ENDPOINT_OVER   /* `row` and `end` are */
};
struct endpoint_writes {
    enum endpoint_news news;
    struct endpoint_row row;
    struct endpoint_end end; /* OVER */
    bool tell;               /* MOVED: people are alerted of its reason */
    struct err error;        /* what could not be booked; it is tried again */
};
/* What follows from an answer. */
void leader_plan_endpoint_fact(struct live_endpoint *e, const struct endpoint_fact *f,
                               usec_t now_us, int64_t boot_us, struct endpoint_writes *ret);
/* What follows from the time and from what people want. */
/* Its end may be written: a write of its row that failed was long enough ago. */
bool leader_endpoint_end_due(const struct live_endpoint *e, int64_t boot_us);
void leader_plan_endpoint_end(const struct leader_state *s, const struct live_endpoint *e,
                              usec_t now_us, struct endpoint_writes *ret);
/* It is committed. */
void leader_apply_endpoint(struct leader_state *s, struct live_endpoint *e,
                           const struct endpoint_writes *w);
/* It was not: asked again after a pause. */
void leader_endpoint_not_written(struct live_endpoint *e, int64_t boot_us);
/* When it is deleted for its time; before it is in service, the latest that can be said. */
usec_t leader_endpoint_until(const struct endpoint_row *r);
