/* The small services other than SageMaker and S3. Handlers are called with app->mu held. */
#pragma once
#include "local/http/request.h"

#include <limits.h>

/* sts_local.c: GetCallerIdentity, AssumeRole, AssumeRoleWithWebIdentity. The operation is "" when
 * the body names another. */
const char *sts_operation(const struct request *r);
void sts_handle(struct request *r);
/* logs_local.c: CloudWatch Logs over the captured output of the jobs. */
void logs_describe_groups(struct request *r);
void logs_describe_streams(struct request *r);
void logs_get_events(struct request *r);
void logs_filter_events(struct request *r);
/* The file of a host's output, lines of "<ms> <text>"; host: from 1. False: it is too long a
 * path. */
bool logs_path(const struct app *app, const struct local_job *job, int64_t host,
               char out[static PATH_MAX]);
/* metrics_local.c: CloudWatch's GetMetricStatistics over the invocations of endpoints. The form is
 * what Query sends, as the JSON that it stands for. */
void metrics_get_statistics(struct request *r);
json_t *metrics_form(const struct request *r);
/* One more, of a variant of an endpoint. */
void metrics_count_invocation(struct app *app, const char *endpoint, const char *variant,
                              usec_t at);
/* secrets_local.c: GetSecretValue of Secrets Manager, GetParameter of Systems Manager. */
void secrets_get(struct request *r);
void secrets_get_parameter(struct request *r);
/* ecr_local.c: BatchGetImage over the images of the configuration, which have digests. */
void ecr_batch_get_image(struct request *r);
/* The program of an image by its tag or its digest; NULL: there is no such image. */
json_t *ecr_image_argv(const struct app *app, const char *image);
/* ec2_local.c: DescribeSubnets. */
void ec2_describe_subnets(struct request *r);
/* quotas_local.c: Service Quotas from the configuration. */
void quotas_list(struct request *r);
void quotas_get(struct request *r);
void quotas_get_default(struct request *r);
void quotas_list_defaults(struct request *r);
void quotas_request_increase(struct request *r);
void quotas_requests(struct request *r);
/* By order: every pending request is approved, and its value counts. */
void quotas_approve(struct request *r);
/* pricing_local.c: GetProducts of AWS Pricing from the configuration. */
void pricing_get_products(struct request *r);
