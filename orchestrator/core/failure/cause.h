/* Maps the texts of AWS and of our worker to one row of cause.def: why something failed. Pure,
 * table-driven. */
#pragma once
#include "common/str.h"
#include "core/model.h"

#define SIGNATURE_MAX 160
/* The cause of a job that ended, from Describe's status and FailureReason (which contains exit
 * codes and the worker's "<cause>: "). */
enum job_end { JOB_END_FAILED, JOB_END_STOPPED, JOB_END_MAX_RUNTIME, JOB_END_MAX_WAIT };
enum cause cause_of_job(enum job_end end, struct str failure_reason, bool stopped_by_us);
/* True: the FailureReason tells no more than an exit code, or nothing that is known. The job's log
 * may tell (log_tail.h). */
bool cause_is_bare(struct str failure_reason);
/* The worker's text in a FailureReason, without AWS' frame, the leading cause and the trailing exit
 * code. The whole reason when the worker did not write it. Borrowed from failure_reason. */
struct str cause_words(struct str failure_reason);
/* The cause of an API refusal, from error code, HTTP status and text. */
enum cause cause_of_refusal(int status, const char *code, struct str message);
/* The reason with everything that differs between parts (numbers, hex, URIs, job names) folded, so
 * that equal failures have equal signatures. */
void cause_signature(struct str reason, char out[static SIGNATURE_MAX + 1]);
/* n without a last UTF-8 character of s that was cut in half. */
size_t cause_whole_characters(const char *s, size_t n);
/* Limit, use, delta and the quota's name in a ResourceLimitExceeded text. False when it has none of
 * them. */
struct quota_refusal {
    char quota_name[128];
    int64_t limit, in_use, delta;
};
bool cause_parse_quota(struct str message, struct quota_refusal *ret);
