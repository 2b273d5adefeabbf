/* Typed SageMaker hosting calls: models, endpoint configs, endpoints, and asking an endpoint.
 * Asynchronous on the loop, one callback a call, no retries; rates and what may be repeated are in
 * operation.def. Every create is named, so "exists already" is an answer of its own.
 * Source: Amazon SageMaker API reference, CreateModel, CreateEndpointConfig, CreateEndpoint,
 * InvokeEndpoint. */
#pragma once
#include "core/capacity/endpoint_report.h"
#include "json_call.h"

#define HOSTING_LIST_PAGES_MAX  50
#define ENDPOINT_BODY_BYTES_MAX 6291456
/* Longer than the minute a container has to answer. */
#define ENDPOINT_INVOKE_US (70 * USEC_PER_SEC)

/* Each cb runs once; exactly one of its results holds. failure is NULL unless the call failed. */
/* exists: the name is taken, arn is NULL; by the first of two sends, perhaps. */
typedef void (*hosting_create_cb)(void *ctx, const char *arn, bool exists,
                                  const struct aws_failure *failure);
/* busy: an endpoint in Creating or Updating cannot be changed or deleted yet. */
typedef void (*hosting_change_cb)(void *ctx, bool not_found, bool busy,
                                  const struct aws_failure *failure);
/* e: borrowed; models fill name, arn and created only, configs the instance type, too. NULL: not
 * found, or failed. */
typedef void (*hosting_describe_cb)(void *ctx, const struct endpoint_description *e, bool not_found,
                                    const struct aws_failure *failure);
typedef void (*hosting_list_cb)(void *ctx, const struct hosting_summary *rows, size_t n,
                                const struct aws_failure *failure);
/* What the model said: status 200 and its body, or the status and text of its error. failure: the
 * model was not asked, or nothing is known. */
struct endpoint_answer {
    int status;
    struct str body; /* valid during the callback; at most 1,024 bytes of an error */
    char content_type[129];
    char variant[64];
    int64_t took_us;
};
typedef void (*endpoint_invoke_cb)(void *ctx, const struct endpoint_answer *answer,
                                   const struct aws_failure *failure);

/* The returned handle is for hosting_cancel, after which there is no callback. request: the exact
 * bytes, copied. */
struct hosting_call;
struct hosting_call *hosting_create(struct aws_client *c, struct aws_gate gate,
                                    enum hosting_kind kind, struct str request,
                                    hosting_create_cb cb, void *ctx);
/* Endpoints go in the background: gone when Describe says not found. */
struct hosting_call *hosting_delete(struct aws_client *c, struct aws_gate gate,
                                    enum hosting_kind kind, const char *name, hosting_change_cb cb,
                                    void *ctx);
struct hosting_call *hosting_describe(struct aws_client *c, struct aws_gate gate,
                                      enum hosting_kind kind, const char *name,
                                      hosting_describe_cb cb, void *ctx);
/* All whose name contains `contains`, newest first, over all pages (bounded; a repeated token ends
 * the list). */
struct hosting_call *hosting_list(struct aws_client *c, struct aws_gate gate,
                                  enum hosting_kind kind, const char *contains, hosting_list_cb cb,
                                  void *ctx);
/* body: at most ENDPOINT_BODY_BYTES_MAX, copied. */
struct hosting_call *endpoint_invoke(struct aws_client *c, struct aws_gate gate, const char *name,
                                     const char *content_type, struct str body,
                                     endpoint_invoke_cb cb, void *ctx);
void hosting_cancel(struct hosting_call *call);
