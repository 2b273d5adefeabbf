/* SageMaker training jobs: Create, Describe, List, Stop, Update, tags. Handlers are called with
 * app->mu held and the request's input parsed. */
#pragma once
#include "request.h"

#define SAGEMAKER_ARN_MAX 256

struct app;
struct job;

void sagemaker_create(struct request *r);
void sagemaker_describe(struct request *r);
void sagemaker_list(struct request *r);
void sagemaker_stop(struct request *r);
void sagemaker_update(struct request *r);
void sagemaker_add_tags(struct request *r);
void sagemaker_list_tags(struct request *r);

/* ARN of a job by name. */
void sagemaker_arn(const struct app *app, const char *name, char out[static SAGEMAKER_ARN_MAX]);
/* Check the input of CreateTrainingJob against the API's constraints; false: answered.
 * sagemaker_check.c */
bool sagemaker_check_create(struct request *r);
/* Check one name; false: answered. */
bool sagemaker_check_name(struct request *r, const char *name);
/* Limit of a quota: configured by its full name or by the instance type; dflt when neither. */
int64_t quota_limit(const struct app *app, const char *quota, const char *instance_type,
                    int64_t dflt);
