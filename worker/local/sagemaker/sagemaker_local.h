/* SageMaker training jobs: Create, Describe, List, Stop, Update, tags. Handlers are called with
 * app->mu held and the request's input parsed. */
#pragma once
#include "local/http/request.h"

#define SAGEMAKER_ARN_MAX 256
/* AWS' default limits per job. */
#define INSTANCES_MAX 20
#define LONGEST_RUN_S 432000
#define VOLUME_MAX_GB 1024

struct app;
struct local_job;

/* One operation of the API each: reads the request, changes the jobs, answers. */
void sagemaker_create(struct request *r);
void sagemaker_describe(struct request *r);
void sagemaker_list(struct request *r);
void sagemaker_search(struct request *r);
void sagemaker_stop(struct request *r);
/* Denied to everybody: the name could be used, and paid for, a second time. */
void sagemaker_delete(struct request *r);
void sagemaker_update(struct request *r);
void sagemaker_add_tags(struct request *r);
void sagemaker_list_tags(struct request *r);
void sagemaker_delete_tags(struct request *r);

/* A job as Describe shows it now; the caller owns it. sagemaker_read.c */
json_t *sagemaker_description(const struct app *app, const struct local_job *job);

/* ARN of a job by name. */
void sagemaker_arn(const struct app *app, const char *name, char out[static SAGEMAKER_ARN_MAX]);
/* Check the input of CreateTrainingJob against the API's constraints; false: answered.
 * sagemaker_check.c */
bool sagemaker_check_create(struct request *r);
/* Check one name; false: answered. */
bool sagemaker_check_name(struct request *r, const char *name);
enum type_quota { QUOTA_TRAINING, QUOTA_SPOT, QUOTA_WARM, QUOTA_ENDPOINT, TYPE_QUOTA_COUNT };
#define QUOTA_NAME_MAX 200

/* The limit of an instance type, configured by the quota's full name or by the type; else 0. Writes
 * the quota's name. quotas_local.c */
int64_t quota_of_type(const struct app *app, enum type_quota kind, const char *type,
                      char name[static QUOTA_NAME_MAX]);
/* Refuse a request that passes a quota. */
void sagemaker_limit_exceeded(struct request *r, const char *quota, const char *unit, int64_t limit,
                              int64_t used, int64_t delta);
/* The role may be assumed; false: answered. sagemaker_check.c */
bool sagemaker_role_ok(struct request *r, const char *role);
/* The limit of a quota by its full name; dflt when not configured. */
int64_t quota_limit(const struct app *app, const char *quota, int64_t dflt);
