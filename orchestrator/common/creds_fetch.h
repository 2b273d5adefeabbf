/* Carries a plan for credentials out, on a loop: asks the container's endpoint, the instance
 * metadata service (version 2 only), a process or STS, then assumes the plan's roles one after the
 * other. Each address has a few tries of its own and short time-outs. */
#pragma once
#include "common/http.h"
#include "creds_plan.h"

struct creds_fetch;
/* c NULL: it failed, for the reason in err; both are borrowed for the call. The fetch is freed
 * after it. */
typedef void (*creds_fetch_cb)(void *ctx, const struct aws_creds *c, const struct err *err);

/* Start it. The plan's content moves into the fetch. STS is asked in `region`; skew_us is AWS'
 * clock minus ours. cb runs once, from the loop, never before this returns. */
struct creds_fetch *creds_fetch_start(struct loop *l, struct http *h, struct creds_plan *take_plan,
                                      const char *region, int64_t skew_us, creds_fetch_cb cb,
                                      void *ctx);
/* No callback. NULL is ignored. */
void creds_fetch_cancel(struct creds_fetch *f);
