/* The settings of drover-local: one JSON file, every key optional, unknown keys rejected with a
 * suggestion. Times are seconds in the file (fractions allowed) and microseconds here. Maps stay
 * jansson objects, read only after settings_load. */
#pragma once
#include "common/json.h"

struct local_settings {
    json_t *all;    /* owns everything borrowed below */
    json_t *quotas; /* quota name -> instances; a bare instance type means its training quota */
    json_t *warm_quotas;       /* instance type -> instances kept warm; absent: 0, AWS' default */
    json_t *spot_quotas;       /* instance type -> spot instances; absent: 0 */
    json_t *endpoint_quotas;   /* instance type -> instances of endpoints; absent: 0 */
    json_t *account_quotas;    /* quota name -> value: limits of the account */
    json_t *prices;            /* instance type -> USD an hour as decimal text */
    json_t *rates;             /* operation -> requests per second; absent: not limited */
    json_t *bursts;            /* operation -> burst; absent: 2 or one second's worth */
    json_t *images;            /* training image -> argv */
    json_t *subnets;           /* id -> {"zone", "free"}; NULL: every subnet is there */
    json_t *credentials;       /* access key id -> secret */
    json_t *containers;        /* name -> role ARN: what GET /v2/credentials/<name> gives keys of */
    json_t *web_identities;    /* token -> role ARN: who may AssumeRoleWithWebIdentity */
    json_t *job_env;           /* extra environment of every job */
    json_t *faults;            /* array of faults active from the start */
    json_t *roles;             /* array of role ARNs that may be assumed; NULL: any */
    json_t *denied_buckets;    /* array of bucket names that answer AccessDenied */
    json_t *public_buckets;    /* array of bucket names that anybody may read without a signature */
    json_t *kms_buckets;       /* array of bucket names encrypted with a key of KMS */
    json_t *kms_only_buckets;  /* array of bucket names whose policy refuses what names no key */
    json_t *queues;            /* name of a queue -> source of the events it takes, "" none */
    json_t *policies;          /* key id or role ARN -> policies of IAM, which bind it then */
    json_t *secrets;           /* ARN of a secret or parameter -> its text */
    const char *region;        /* the region it plays */
    const char *account;       /* the account it plays, 12 digits */
    const char *instance_role; /* role ARN of the instance it plays; NULL: no metadata service */
    const char *container_authorization; /* header wanted for `containers`; "": none */
    int64_t credential_us;               /* longest life of the keys it gives out */
    int64_t cold_start_us;               /* from Create to running instances */
    int64_t warm_start_us;               /* the same on a pool */
    bool warm_newest_first; /* among equally matching pools; AWS does not document its choice */
    int64_t spot_wait_us;   /* reclaimed spot instances come back after this */
    int64_t spot_billed_percent; /* of the time a spot job runs */
    int64_t cluster_life_us;     /* maximum time of a chain of jobs on one cluster */
    int64_t download_us;         /* extra time of Downloading */
    int64_t upload_us;           /* extra time of Uploading */
    int64_t stop_us;             /* from the end of the processes to Stopped */
    int64_t stop_grace_us;       /* from SIGTERM to SIGKILL */
    int64_t endpoint_start_us;   /* from CreateEndpoint to running instances */
    int64_t endpoint_health_us;  /* the longest a container may take to answer /ping */
    int64_t endpoint_stop_us;    /* from DeleteEndpoint to the end */
    int64_t metric_delay_us;     /* until an invocation is counted in CloudWatch */
    int64_t fsx_create_us;       /* from CreateFileSystem to AVAILABLE */
    int64_t fsx_delete_us;       /* from DeleteFileSystem to the end */
    int64_t fsx_task_us;         /* of an association or a task */
    int64_t signature_window_us; /* accepted clock difference of a signature */
    bool kill_jobs_on_exit;      /* kill the jobs when drover-local ends */
    bool list_filters_late;      /* ListTrainingJobs cuts a page, then filters it, as AWS does */
    bool log_bodies;             /* there is a log of whole requests: oracle/request_log.h */
};

/* Read the file (NULL: defaults only). settings_done frees. ERR_IO, ERR_MALFORMED, ERR_INVALID. */
bool settings_load(const char *file, struct local_settings *ret, struct err *err) MUST_CHECK;
void settings_done(struct local_settings *s);
/* Seconds at o[key], integer or real, to microseconds in [0, 10 years]. */
bool settings_seconds(const json_t *o, const char *key, int64_t dflt_us, int64_t *ret_us,
                      struct err *err) MUST_CHECK;
