/* Why something failed: AWS' texts and our worker's words to one row of cause.def. Pure,
 * table-driven. */
#pragma once
#include "common/str.h"
#include "core/model.h"

#define SIGNATURE_MAX 160
/* Of a job that ended: status and FailureReason of Describe (exit codes and the worker's "<cause>:
 * " inside it). */
enum job_end { JOB_END_FAILED, JOB_END_STOPPED, JOB_END_MAX_RUNTIME, JOB_END_MAX_WAIT };
enum cause cause_of_job(enum job_end end, struct str failure_reason, bool stopped_by_us);
/* The worker's own words in a FailureReason: without AWS' frame, the cause before them and the exit
 * code behind. All of it when they are not the worker's. Borrowed from it. */
struct str cause_words(struct str failure_reason);
/* Of an API refusal: error code, HTTP status and text. */
enum cause cause_of_refusal(int status, const char *code, struct str message);
/* The reason with what differs between parts (numbers, hex, URIs, job names) folded: groups equal
 * failures. */
void cause_signature(struct str reason, char out[static SIGNATURE_MAX + 1]);
/* Numbers in a ResourceLimitExceeded text: limit, use, delta, and the quota's name. False when it
 * has none. */
struct quota_refusal {
    char quota_name[128];
    int64_t limit, in_use, delta;
};
bool cause_parse_quota(struct str message, struct quota_refusal *ret);
