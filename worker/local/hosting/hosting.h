/* SageMaker hosting: models, endpoint configs, endpoints. Handlers are called with app->mu held and
 * the request's input parsed. */
#pragma once
#include "local/http/request.h"
#include "local/oracle/records.h"

#define HOSTING_ARN_MAX 320

struct app;

/* hosting_model.c */
void hosting_create_model(struct request *r);
void hosting_describe_model(struct request *r);
void hosting_delete_model(struct request *r);
/* hosting_config.c */
void hosting_create_config(struct request *r);
void hosting_describe_config(struct request *r);
void hosting_delete_config(struct request *r);
/* hosting_endpoint.c */
void hosting_create_endpoint(struct request *r);
void hosting_update_endpoint(struct request *r);
void hosting_describe_endpoint(struct request *r);
void hosting_delete_endpoint(struct request *r);
/* hosting_list.c */
void hosting_list_models(struct request *r);
void hosting_list_configs(struct request *r);
void hosting_list_endpoints(struct request *r);

/* What the three kinds have in common. hosting_list.c */
struct hosting_class {
    enum record_kind record;
    const char *name_key; /* "ModelName" */
    const char *arn_key;  /* "ModelArn" */
    const char *arn_type; /* "model" */
    const char *words;    /* "model", in messages */
    const char *list_key; /* "Models" */
};
extern const struct hosting_class hosting_model, hosting_config, hosting_endpoint;

void hosting_arn(const struct app *app, const struct hosting_class *k, const char *name,
                 char out[static HOSTING_ARN_MAX]);
/* The object a request names, its name checked; NULL: answered. */
json_t *hosting_named(struct request *r, const struct hosting_class *k);
/* Refuse a name that is taken; false: answered. */
bool hosting_is_free(struct request *r, const struct hosting_class *k, const char *name);
/* The record of a request that passed the checks: what was asked for, tags apart, times; the caller
 * owns it. */
json_t *hosting_record(const struct request *r);
/* 200 with the ARN under the kind's key. */
void hosting_reply_arn(struct request *r, const struct hosting_class *k, const char *name);
/* 200 without a body. */
void hosting_reply_empty(struct request *r);
/* The tags of the model, config or endpoint an ARN names, borrowed, and the record to save after a
 * change; NULL when there is none. */
json_t *hosting_tags(const struct app *app, const char *arn, enum record_kind *ret_kind,
                     const char **ret_name);
