/* What the answers of SageMaker and of the output check mean for an attempt: each becomes one fact
 * for its protocol, and what the answer tells of the job is kept in the attempt. boot_us is when
 * the answer came. Pure. */
#pragma once
#include "common/aws_outcome.h"
#include "core/capacity/job_report.h"
#include "core/failure/log_tail.h"
#include "leader_state.h"
#include "output_verdict.h"
#include "quota_learning.h"

/* SageMaker's words as the protocol's; unknown words are JOB_STATUS_UNKNOWN and PHASE_OTHER. */
struct job_seen leader_job_seen(const char *status, const char *secondary, usec_t modified);
/* True when a Describe shows its end. */
bool leader_job_over(const struct job_description *job);
/* When that was; 0: it is not over. AWS tells no end of some jobs, of those that never started. */
usec_t leader_job_ended(const struct job_description *job);

struct create_notes {
    bool silent;        /* no answer, or nothing was sent: AWS could not be reached */
    bool quota_refused; /* and what it teaches is learned */
    struct quota_learning_refusal refusal;
};
/* f NULL: taken, as arn. Else the reason is kept for people. A permanent refusal carries its cause;
 * what our own keys, the network or the rate refuse is never the part's fault. now_us: wall. */
struct fact leader_create_answer(struct leader_state *s, struct live_attempt *a, const char *arn,
                                 const struct aws_failure *f, usec_t now_us, int64_t boot_us,
                                 struct create_notes *ret);
/* True when this Describe will be believed by the name alone: it does not say whose the job is, as
 * those before it. Nobody else can have made the name: it carries the campaign's random nonce. */
bool leader_ours_by_name(const struct live_attempt *a, const struct job_description *job);
/* job is read unless failed or not_found. What it says of the job is kept only when its request is
 * ours; the fact of a job that ended carries its cause. Not found counts from when it was asked; of
 * one that is gone (absence.h) it is kept that it ran for as long as it could. Without a request's
 * hash the job is asked about again, since no other installation can have made its name; so often
 * in a row, it is ours. One that says another owner is not. now_us: wall. */
struct fact leader_describe_answer(struct live_attempt *a, const struct job_description *job,
                                   bool not_found, bool failed, usec_t now_us, int64_t boot_us);
/* A job that List no longer finds has not been stopped: the stop is asked for again. */
struct fact leader_stop_answer(bool failed, bool not_found, int64_t boot_us);
/* What the log of a job that failed said of it; NULL: nothing, or it cannot be read in time. The
 * line that decided becomes the reason, with the host, and is kept as evidence. It chooses the
 * cause, never whether the attempt counts. */
struct fact leader_log_answer(struct live_attempt *a, const struct log_tail_evidence *e,
                              int64_t boot_us);
/* Its log could not be read. A refusal does not go away by waiting, so it is concluded without. */
struct fact leader_log_unread(struct live_attempt *a, const struct aws_failure *f, int64_t boot_us);
/* Nobody wants its output and nobody knows where it is: it ends unseen. */
struct fact leader_verify_unseen(struct live_attempt *a, int64_t boot_us);
/* A job that has ended is described only to learn where its output is: nothing else of it is kept.
 * job is read unless failed or not_found. True: the place is known now. Else *ret is the fact: it
 * is asked again, or of one that is gone (absence.h) the output is not looked at. now_us: wall. */
bool leader_place_answer(struct live_attempt *a, const struct job_description *job, bool not_found,
                         bool failed, usec_t now_us, int64_t boot_us, struct fact *ret);
/* Takes v->manifest. */
struct fact leader_verify_answer(struct live_attempt *a, struct output_verdict *v, int64_t boot_us);
