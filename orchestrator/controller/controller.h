/* The control loop: leads when the lease is ours, then drives every campaign by ticks of
 * view -> decide -> intend -> act -> record. Owned by the loop thread. */
#pragma once
#include "bridge.h"
#include "common/aws.h"
#include "common/loop.h"
#include "status.h"

struct controller_config {
    const char *conninfo;
    const char *holder;           /* host and pid, for people */
    const char *events_queue_url; /* of state changes of jobs; "": none */
    const char *job_prefix;       /* first part of every job name */
    const char *bucket_kms_key;   /* of what is put into S3; "": as the bucket does */
    const char *prices_file;      /* JSON {"ml.m5.large":"0.115"} in USD per hour; NULL none */
    int64_t price_interval_us;    /* AWS Pricing is read this often; 0: never */
    int64_t paid_ppm;             /* of its list prices */
    int64_t observe_interval_us;  /* ListTrainingJobs, >= 100 ms */
    int64_t tick_interval_us;     /* floor between looks at the database */
    int64_t lease_length_us;
    int64_t lease_renew_us;
    int64_t signature_window_us; /* see protocol.h P3 */
    int64_t quota_interval_us;
    int64_t progress_interval_us;   /* look at a job's progress object this often */
    int64_t invocation_interval_us; /* ask CloudWatch about an endpoint at most this often */
    int64_t invocation_delay_us;    /* CloudWatch counts an invocation so late at most */
    int64_t archive_after_days;     /* after its end a campaign is archived; 0: when asked only */
    double create_rate; /* CreateTrainingJob a second until Service Quotas says otherwise; 0 =
                           unlimited */
    double create_burst;
};
struct controller;
bool controller_new(const struct controller_config *cfg, struct loop *loop, struct bridge *bridge,
                    struct api_status *status, struct controller **ret, struct err *err) MUST_CHECK;
/* The region of the account it drives; valid as long as the controller. */
const char *controller_region(const struct controller *c);
/* Give up the lease and let go of everything; intents stay for the next leader. */
void controller_free(struct controller *c);
