/* Whether an output is there and whole: asks S3 and judges with core/failure/verify.h. */
#pragma once
#include "core/leader/output_verdict.h"
#include "shell.h"

/* Where the output of `a` lies; false: its stage names no folder. */
bool output_folder(const struct live_attempt *a, struct s3_uri *ret);
/* The answer, in a later turn of the loop. The callback takes v->manifest. */
typedef void (*output_cb)(void *ctx, struct output_verdict *v);
/* Checks the output of `a`. The check is freed after its answer, or after output_cancel. */
struct output_check *output_verify(struct live_attempt *a, output_cb cb, void *ctx);
/* No answer comes any more; NULL ignored. */
void output_cancel(struct output_check *k);
/* Whether what done_if names is there: VERIFYING's check, for any task's output. */
struct output_check *output_check_done(struct controller *c, const struct live_campaign *lc,
                                       const struct live_stage *ls, const struct task_input *t,
                                       output_cb cb, void *ctx);
