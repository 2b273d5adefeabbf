/* A campaign file as plain values. It is read and written by spec_parse.h, spec_json.h and
 * spec_expand.h. */
#pragma once
#include "common/position.h"
#include "core/model.h"
#include <string.h>

#define SPEC_STAGES_MAX      32
#define SPEC_LADDER_MAX      8
#define SPEC_TEXT_MAX        (1024 * 1024)
#define SPEC_ARENA_BYTES     (16 << 20) /* an arena of this maximum holds any spec */
#define SPEC_PAIRS_MAX       100
#define HYPER_VALUE_MAX      2500 /* bytes of a hyperparameter that CreateTrainingJob takes */
#define ENV_VALUE_MAX        512  /* the same of a variable of its environment */
#define SPEC_RUNTIME_S_MAX   INT64_C(2419200) /* CreateTrainingJob: 28 days */
#define SPEC_CHANGE_X100_MAX 10000
#define SPEC_WEIGHT_DEFAULT  100
#define SPEC_WEIGHT_MAX      10000
#define SPEC_CANARY_MAX      1000
#define SPEC_QUARANTINE_MAX  1000
#define SPEC_COUNT_MAX       100000 /* tasks of fan_out: {count: N} */

struct spec_pair {
    const char *key;
    const char *value; /* templates with {var} left in */
};
enum spec_fan_out {
    FAN_OUT_NONE,
    FAN_OUT_S3,
    FAN_OUT_API,
    FAN_OUT_COUNT
}; /* one task; objects of a listing; POST .../parts; a number of tasks */
enum spec_verify {
    VERIFY_MANIFEST,
    VERIFY_IMG2DATASET,
    VERIFY_EXISTS,
    VERIFY_COUNT,
    VERIFY_ARTIFACTS,
    VERIFY_NONE
};
enum spec_worker { WORKER_NONE, WORKER_DOWNLOAD, WORKER_INDEX, WORKER_COPY };

enum spec_next { /* which instance type the next attempt takes */
                 NEXT_SAME,
                 NEXT_UP,    /* the next of the list, the last one again and again */
                 NEXT_AROUND /* the next of the list, after the last the first */
};
struct spec_change { /* what the next attempt does differently; all 0: nothing */
    enum spec_next next;
    int volume_x100;       /* the volume times this / 100; 0: not changed */
    int volume_max_gb;     /* not beyond; 0: VOLUME_GROWN_GB_MAX of retry_policy.h */
    int runtime_x100;      /* max_runtime times this / 100; 0: not changed */
    int64_t runtime_max_s; /* not beyond; 0: SPEC_RUNTIME_S_MAX */
};
struct spec_retry { /* overrides a row of cause.def */
    bool set;
    int times; /* -1 for ever */
    int64_t wait_from_s, wait_to_s;
    bool counts;
    bool set_change; /* false: the cause's own change */
    struct spec_change change;
};
/* Conditions that stop a stage or a part. The defaults are those of breaker.h and
 * hang_detector.h. */
struct spec_guard {
    int canary;                   /* attempts at once until one passed; 0 off */
    int breaker_same, breaker_of; /* k of the first n; 0 off */
    int quarantine;               /* failures of one part; 0 off */
    int64_t hang_silent_s, hang_standstill_s, hang_start_s; /* 0: that rule is off */
};
#define SPEC_KEEP_ALIVE_AUTO  (-1)
#define SPEC_KEEP_ALIVE_MAX_S 3600 /* what AWS documents and grants by default */

struct spec_warm {             /* warm_pool: the campaign's, with the stage's keys over it */
    int64_t keep_alive_s;      /* SPEC_KEEP_ALIVE_AUTO: break-even decides (default); 0: never */
    musd_t max_idle_cost_musd; /* what the campaign's idle pools may cost; -1: none said */
    bool end_when_queue_empty; /* a pool that nothing waiting matches is ended; default true */
};
#define SPEC_CHANNELS_MAX       20
#define SPEC_METRICS_MAX        40
#define SPEC_STAGE_TAGS_MAX     20
#define SPEC_TAGS_MAX           45 /* of a job: AWS takes 50, drover writes 5 */
#define SPEC_FSX_TAGS_MAX       44 /* of a file system: drover writes 6 */
#define SPEC_ATTRIBUTES_MAX     16
#define SPEC_RETRY_STRATEGY_MAX 30
#define SPEC_SCALES_MAX         16
#define SPEC_PENDING_S_MIN      7200 /* StoppingCondition's MaxPendingTimeInSeconds */
#define SPEC_PENDING_S_MAX      2419200
#define SPEC_HOOK_MAX           20  /* entries of each map and list of the Debugger */
#define SPEC_RULE_PARAMETERS    100 /* of one rule */
#define SPEC_CONFIG_TEXT_MAX    256 /* a key or a value there */
#define SPEC_EXPERIMENT_MAX     120 /* a name of ExperimentConfig */
#define SPEC_LOG_LEVEL          20  /* Python's INFO */

struct spec_channel { /* input of a training job; NULL: not said */
    const char *name;
    const char *from;   /* template of an s3:// place; NULL: a file system */
    const char *type;   /* S3Prefix, ManifestFile, AugmentedManifestFile */
    const char *spread; /* FullyReplicated, ShardedByS3Key */
    const char *mode;   /* File, FastFile, Pipe */
    const char *content_type, *compression, *record_wrapper;
    const char *attributes[SPEC_ATTRIBUTES_MAX];
    int attributes_n;
    int64_t shuffle_seed;    /* -1: not shuffled */
    const char *file_system; /* fs-0123456789abcdef0 */
    const char
        *lustre_stage; /* the stage that makes the file system; directory is below its root */
    const char *file_system_type, *directory, *access;
};
struct spec_metric {
    const char *name, *regex;
};
struct spec_rule { /* of the Debugger or the Profiler: a job beside the job; NULL: not said */
    const char *name, *image, *instance_type;
    const char *to, *path;              /* to: a template of an s3:// place */
    int volume_gb;                      /* 0: not said */
    const struct spec_pair *parameters; /* values are templates */
    int parameters_n;
};
struct spec_collection { /* of tensors */
    const char *name;
    const struct spec_pair *parameters;
    int parameters_n;
};
struct spec_hook {    /* `debugger` or `profiler`, as a map */
    const char *to;   /* template; NULL: the stage's output */
    const char *path; /* the debugger's, in the container */
    int interval_ms;  /* the profiler's; 0: not said */
    const struct spec_pair *parameters;
    int parameters_n;
    const struct spec_collection *collections; /* the debugger's */
    int collections_n;
    const struct spec_rule *rules;
    int rules_n;
};
struct spec_gate {      /* of a stage: what its metric must be for it to succeed */
    const char *metric; /* NULL: no gate */
    bool has_below, has_above;
    double below, above;
};
/* What `distribution` switches on, by the names of the SageMaker Python SDK. */
enum spec_distribution {
    DISTRIBUTION_DATA_PARALLEL,
    DISTRIBUTION_MODEL_PARALLEL,
    DISTRIBUTION_MPI,
    DISTRIBUTION_PYTORCHDDP,
    DISTRIBUTION_TORCH,
    DISTRIBUTION_XLA,
    DISTRIBUTION_PARAMETER_SERVER,
    DISTRIBUTION_COUNT
};
/* What only training stages say. core/lowering makes fields and hyperparameters of it. */
struct spec_training {
    bool script;               /* framework or source_dir: hyperparameters go out as JSON */
    bool framework;            /* the image is AWS's */
    bool metrics_series;       /* EnableSageMakerMetricsTimeSeries */
    const char *source_dir;    /* s3://bucket/key.tar.gz */
    const char *source_sha256; /* of a source that was sent to droverd; else NULL */
    const char *entry_point;
    int log_level;
    bool quoted[SPEC_PAIRS_MAX]; /* of hyperparameters: text that JSON puts in quotes */
    const char
        *distribution[DISTRIBUTION_COUNT]; /* true, false or "true", as sent; NULL: not said */
    bool ddp_rewrite;                      /* pytorchddp in the form of the SDK since 2.221 */
    const char *dp_options;                /* MPI options of data parallel, verbatim */
    const char *mpi_options;
    int mpi_processes;         /* a host; 0: not said */
    const char *mp_parameters; /* a JSON object; NULL: none */
    bool compiler, compiler_debug;
    const char *input_mode; /* File, FastFile, Pipe */
    struct spec_channel channels[SPEC_CHANNELS_MAX];
    int channels_n;
    struct spec_metric metrics[SPEC_METRICS_MAX];
    int metrics_n;
    const char *checkpoint; /* template; NULL: none */
    const char *checkpoint_path;
    int retry_strategy; /* attempts of SageMaker itself after an internal error; 0: none */
    const char *output_kms_key, *training_plan;
    const char *image_access;      /* Platform, Vpc; NULL: not said */
    const char *image_credentials; /* a Lambda function's ARN; NULL: none */
    int64_t max_pending_s;         /* 0: as SageMaker has it */
    struct spec_hook debug, profile;
    const char *tensorboard, *tensorboard_path; /* template of a place, a path in the container */
    const char *experiment, *experiment_trial, *experiment_display, *experiment_run; /* templates */
    bool debugger, profiler, infra_check, remote_debug, uncompressed;
    const char *entrypoint[16];
    int entrypoint_n;
    struct spec_pair tags[SPEC_STAGE_TAGS_MAX];
    int tags_n;
};
enum spec_kind {
#define X(kind, word) SPEC_KIND_##kind,
#include "core/spec/stage_kind.def"
#undef X
    SPEC_KIND_COUNT
};
const char *spec_kind_word(enum spec_kind kind); /* as in a campaign file */
#define SPEC_TTL_S_MAX        (INT64_C(30) * 86400)
#define SPEC_IDLE_S_MIN       60 /* CloudWatch counts invocations by the minute */
#define SPEC_HOSTING_GB_MAX   512
#define SPEC_HOSTING_WAIT_MIN 60 /* ProductionVariant: both timeouts, in seconds */
#define SPEC_HOSTING_WAIT_MAX 3600
#define SPEC_MODEL_TEXT_MAX   1024 /* of CreateModel: a key or a value of Environment, a place */
/* Variables that drover adds for AWS's image of a framework, when the file has none of the name. */
#define SPEC_SERVER_SETTINGS                                                                       \
    {                                                                                              \
        "SAGEMAKER_PROGRAM", "SAGEMAKER_SUBMIT_DIRECTORY", "SAGEMAKER_CONTAINER_LOG_LEVEL",        \
            "SAGEMAKER_REGION"                                                                     \
    }
#define SPEC_PAYLOADS_MAX      100
#define SPEC_PAYLOAD_BYTES_MAX 4096

/* What only stages of kind endpoint say. core/lowering makes three requests of it. The image is
 * that of the stage. */
struct spec_endpoint {
    struct position at;      /* of its `kind` in the file; {0, 0} when it was stored */
    const char *model_stage; /* the stage whose model is served; NULL: model_data */
    const char *model_data;  /* s3://bucket/model.tar.gz */
    const char *model_type;  /* of a model that is no .tar.gz: S3Prefix, S3Object; NULL: it is */
    bool framework;          /* the image is AWS's, with the SageMaker Python SDK's environment */
    const char *entry_point; /* a script below code/ of the model; NULL: none */
    int64_t ttl_s;
    int64_t idle_s;             /* deleted after so long without an invocation; 0: never */
    int volume_gb;              /* 0: as SageMaker has it */
    int64_t download_timeout_s; /* of the model to an instance; 0: as SageMaker has it */
    int64_t startup_timeout_s;  /* of the container's health check; 0: as SageMaker has it */
    const char *payloads_from;  /* smoke test: an object in S3 with a JSON list; NULL: payloads */
    const char *payloads[SPEC_PAYLOADS_MAX]; /* the bodies as they are sent */
    int payloads_n;                          /* 0 and no payloads_from: no smoke test */
    const char *content_type;                /* of each payload */
    int p95_ms;                              /* slower answers fail the smoke test; 0: not said */
    struct spec_pair tags[SPEC_STAGE_TAGS_MAX];
    int tags_n;
};
#define SPEC_STORAGE_PREFIX   "storage:" /* and the deployment: where prices are looked up */
#define SPEC_STORAGE_GIB_MAX  INT64_C(1000800)
#define SPEC_STORAGE_GIB_STEP 2400

/* What only stages of kind lustre say. Their instance type is SPEC_STORAGE_PREFIX with the
 * deployment, and they have one subnet. */
struct spec_filesystem {
    const char *deployment;  /* SCRATCH_2, PERSISTENT_1, PERSISTENT_2 */
    int64_t capacity_gib;    /* a size that FSx has */
    int throughput;          /* MB/s a TiB, of PERSISTENT; 0 of SCRATCH */
    const char *import_from; /* s3://bucket/prefix/; NULL: it begins empty */
    bool exports;            /* what jobs wrote goes there at the end */
    bool keep;               /* until its ttl is over, used or not */
    int64_t ttl_s;           /* from its creation */
    struct spec_pair tags[SPEC_STAGE_TAGS_MAX];
    int tags_n;
};
struct spec_stage {
    enum spec_kind kind;
    const char *name;
    const char *needs[SPEC_STAGES_MAX];
    int needs_n;
    enum spec_worker worker;
    const char *image; /* when worker is WORKER_NONE, or an override */
    enum spec_fan_out fan_out;
    const char *fan_out_from; /* s3://bucket/prefix*suffix, variables expanded */
    int fan_out_count;        /* of FAN_OUT_COUNT, >= 1; they have {part} and no input */
    int per_part;             /* input files a task, >= 1 */
    const char *instance_type[SPEC_LADDER_MAX];
    int instance_type_n;
    int instance_count;
    int volume_gb;         /* default 30 */
    int64_t max_runtime_s; /* default 86400 */
    int64_t min_runtime_s; /* default = max_runtime_s */
    int64_t expect_s;      /* 0: not said */
    bool network_isolation;
    struct spec_pair hyperparameters[SPEC_PAIRS_MAX];
    int hyperparameters_n;
    struct spec_pair environment[SPEC_PAIRS_MAX];
    int environment_n;       /* of an endpoint: texts, no templates */
    const char *command[16]; /* ContainerArguments of a user's image */
    int command_n;
    enum spec_verify verify;
    const char *verify_target; /* exists: key; count: prefix */
    int64_t verify_count;
    const char
        *output; /* template of the output's place: hyperparameters.output_folder for download */
    const char
        *done_if; /* template of the manifest / stats prefix that proves a part done; NULL: none */
    enum spec_verify done_if_kind; /* how done_if is looked at: MANIFEST, IMG2DATASET, EXISTS */
    int64_t allow_failed_ppm;      /* of the stage's tasks: 2% = 20000 */
    int64_t parts_limit;           /* of the stage at once; -1: none */
    struct spec_guard guard;
    musd_t budget_musd;                   /* -1: none */
    musd_t per_task_musd;                 /* -1: none */
    struct spec_retry retry[CAUSE_COUNT]; /* campaign's rows with the stage's over them */
    const char *role;
    const char *subnets[16];
    int subnets_n;
    const char *security_groups[5];
    int security_groups_n;
    bool encrypt_traffic;
    bool session_tags;                        /* SessionChainingConfig */
    const char *volume_kms_key;               /* NULL: none */
    const struct spec_training *training;     /* NULL: a stage stored before there was any */
    const struct spec_endpoint *endpoint;     /* of kind endpoint only, else NULL */
    const struct spec_filesystem *filesystem; /* of kind lustre only, else NULL */
    struct spec_gate gate;
    struct spec_warm warm;
    bool spot;         /* managed spot: no warm pool, and only what is resumable */
    bool resumable;    /* a restart goes on from what is in S3; always for our workers */
    const char *group; /* the matrix that it is a row of; NULL: none */
    const char *scales_with[SPEC_SCALES_MAX]; /* keys that may differ within a scaling table */
    int scales_with_n;
};
/* Whether a job that ends at its run time is continued by the next one, so that a run may last
 * longer than any job. */
static inline bool spec_goes_on(const struct spec_stage *s)
{
    return s->training != NULL && s->training->checkpoint != NULL;
}
/* Whether its image is one that the VPC reaches, which ECR knows nothing of. */
static inline bool spec_image_by_vpc(const struct spec_stage *s)
{
    return s->training != NULL && s->training->image_access != NULL &&
           strcmp(s->training->image_access, "Vpc") == 0;
}
struct spec_limit {
    const char *instance_type;
    int64_t n;
};
struct spec {
    const char *name;
    const char *project;
    struct spec_pair tags[40];
    int tags_n;
    int64_t parts_limit; /* -1: none */
    int priority;        /* 0..100, default 50 */
    usec_t deadline_us;  /* when it should have ended; 0: no deadline */
    int64_t weight;      /* of its fair share, 1..10000, default 100 */
    struct spec_limit instances[16];
    int instances_n;
    musd_t budget_musd; /* -1: none */
    enum at_limit at_limit;
    int64_t warn_at_ppm[WARNS_MAX]; /* of budget_musd; rising; default 50 %, 80 % */
    int warn_at_n;
    struct spec_stage *stages[SPEC_STAGES_MAX]; /* in dependency order */
    int stages_n;
};

/* Index of the stage of that name; -1 when there is none. */
#define SPEC_STORAGE_TIER_MAX 24
/* What storage is priced by: "SCRATCH_2", or of PERSISTENT with its throughput "PERSISTENT_2/125".
 * Behind SPEC_STORAGE_PREFIX that is the key of its price; where no such price is known, the
 * deployment alone has one, of AWS Pricing its dearest. */
void spec_storage_tier(const char *deployment, int64_t throughput, char ret[SPEC_STORAGE_TIER_MAX]);
static inline int spec_stage_find(const struct spec *s, const char *name)
{
    for (int i = 0; i < s->stages_n; i++) {
        if (strcmp(s->stages[i]->name, name) == 0) {
            return i;
        }
    }
    return -1;
}
