/* ListModels, ListEndpointConfigs, ListEndpoints, and what the three kinds share: see hosting.h. */
#include "common/clock.h"
#include "hosting.h"
#include "local/app.h"
#include "local/sagemaker/shape.h"
#include <stdio.h>

const struct hosting_class hosting_model = {RECORD_MODEL, "ModelName", "ModelArn",
                                            "model",      "model",     "Models"};
const struct hosting_class hosting_config = {RECORD_ENDPOINT_CONFIG,   "EndpointConfigName",
                                             "EndpointConfigArn",      "endpoint-config",
                                             "endpoint configuration", "EndpointConfigs"};
const struct hosting_class hosting_endpoint = {RECORD_ENDPOINT, "EndpointName", "EndpointArn",
                                               "endpoint",      "endpoint",     "Endpoints"};

void hosting_arn(const struct app *app, const struct hosting_class *k, const char *name,
                 char out[static HOSTING_ARN_MAX])
{
    (void)snprintf(out, HOSTING_ARN_MAX, "arn:aws:sagemaker:%s:%s:%s/%s", app->set.region,
                   app->set.account, k->arn_type, name);
}

json_t *hosting_named(struct request *r, const struct hosting_class *k)
{
    const struct shape_field name = {k->name_key, SHAPE_TEXT,         true, 0, 63,
                                     NULL,        SHAPE_NAME_PATTERN, NULL};
    const struct request_shape shape = {&name, 1};
    char arn[HOSTING_ARN_MAX];
    if (!shape_check(r, &shape)) {
        return NULL;
    }
    const char *text = record_text(r->input, k->name_key);
    json_t *o = record_find(r->app, k->record, text);
    if (o == NULL) {
        hosting_arn(r->app, k, text, arn);
        reply_error(r, 400, "ValidationException", "Could not find %s \"%s\".", k->words, arn);
    }
    return o;
}

bool hosting_is_free(struct request *r, const struct hosting_class *k, const char *name)
{
    char arn[HOSTING_ARN_MAX];
    if (record_find(r->app, k->record, name) == NULL) {
        return true;
    }
    hosting_arn(r->app, k, name, arn);
    reply_error(r, 400, "ValidationException", "Cannot create already existing %s \"%s\".",
                k->words, arn);
    return false;
}

json_t *hosting_record(const struct request *r)
{
    json_t *asked = json_copy(r->input);
    json_t *tags = json_object_get(r->input, "Tags");
    usec_t now = clock_wall_us();
    (void)json_object_del(asked, "Tags");
    return json_pack("{s:o, s:o, s:I, s:I}", "request", asked, "tags",
                     json_is_array(tags) ? json_deep_copy(tags) : json_array(), "created",
                     (json_int_t)now, "modified", (json_int_t)now);
}

void hosting_reply_arn(struct request *r, const struct hosting_class *k, const char *name)
{
    char arn[HOSTING_ARN_MAX];
    hosting_arn(r->app, k, name, arn);
    reply_json(r, json_pack("{s:s}", k->arn_key, arn));
}

void hosting_reply_empty(struct request *r)
{
    r->reply.sync = true;
    r->reply.status = 200;
    r->reply.content_type = "application/x-amz-json-1.1";
}

json_t *hosting_tags(const struct app *app, const char *arn, enum record_kind *ret_kind,
                     const char **ret_name)
{
    const struct hosting_class *const kinds[] = {&hosting_model, &hosting_config,
                                                 &hosting_endpoint};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        char prefix[HOSTING_ARN_MAX];
        hosting_arn(app, kinds[i], "", prefix);
        size_t n = strlen(prefix);
        json_t *o =
            strncmp(arn, prefix, n) == 0 ? record_find(app, kinds[i]->record, arn + n) : NULL;
        if (o != NULL) {
            *ret_kind = kinds[i]->record;
            *ret_name = arn + n;
            return json_object_get(o, "tags");
        }
    }
    return NULL;
}

struct list_row {
    const char *name;
    const json_t *o;
    size_t seq; /* order of creation */
};
struct hosting_query {
    const struct hosting_class *kind;
    const char *contains;
    const char *status;
    usec_t created_after, created_before, modified_after, modified_before;
    bool by_name, by_status, descending;
    int64_t max, skip;
};

static int row_cmp(const void *a, const void *b, void *ctx)
{
    const struct hosting_query *q = ctx;
    const struct list_row *x = a;
    const struct list_row *y = b;
    int d = q->by_name     ? strcmp(x->name, y->name)
            : q->by_status ? strcmp(record_text(x->o, "status"), record_text(y->o, "status"))
                           : 0;
    d = d != 0 ? d : x->seq < y->seq ? -1 : x->seq > y->seq;
    return q->descending ? -d : d;
}

static bool query_read(struct request *r, struct hosting_query *q)
{
    static const struct shape_field fields[] = {
        {"NameContains", SHAPE_TEXT, false, 0, 63, NULL, "[a-zA-Z0-9-]+", NULL},
        {"SortBy", SHAPE_TEXT, false, 0, 20, "Name CreationTime Status", NULL, NULL},
        {"SortOrder", SHAPE_TEXT, false, 0, 20, "Ascending Descending", NULL, NULL},
        {"MaxResults", SHAPE_INT, false, 1, 100, NULL, NULL, NULL},
        {"StatusEquals", SHAPE_TEXT, false, 0, 20,
         "OutOfService Creating Updating SystemUpdating RollingBack InService Deleting Failed "
         "UpdateRollbackFailed",
         NULL, NULL},
        {"NextToken", SHAPE_TEXT, false, 0, 8192, NULL, "after-[0-9]{1,9}", NULL},
    };
    static const struct request_shape shape = SHAPE(fields);
    const json_t *in = r->input;
    struct err err = ERR_INIT;
    if (!shape_check(r, &shape)) {
        return false;
    }
    q->contains = record_text(in, "NameContains");
    q->status = record_text(in, "StatusEquals");
    q->by_name = strcmp(record_text(in, "SortBy"), "Name") == 0;
    q->by_status = strcmp(record_text(in, "SortBy"), "Status") == 0;
    q->descending = strcmp(record_text(in, "SortOrder"), "Ascending") != 0; /* AWS' default here */
    q->max = json_object_get(in, "MaxResults") == NULL ? 10 : record_i64(in, "MaxResults");
    const char *token = record_text(in, "NextToken");
    if (!json_get_epoch(in, "CreationTimeAfter", 0, &q->created_after, &err) ||
        !json_get_epoch(in, "CreationTimeBefore", USEC_NEVER, &q->created_before, &err) ||
        !json_get_epoch(in, "LastModifiedTimeAfter", 0, &q->modified_after, &err) ||
        !json_get_epoch(in, "LastModifiedTimeBefore", USEC_NEVER, &q->modified_before, &err) ||
        (token[0] != '\0' && !parse_i64(str_of(token + 6), 0, RECORDS_MAX, &q->skip, &err))) {
        reply_error(r, 400, "ValidationException", "%s", err.message);
        return false;
    }
    return true;
}

static bool row_listed(const struct hosting_query *q, const char *name, const json_t *o,
                       const struct injected_fault *f)
{
    if (f != NULL && f->kind == FAULT_LIST_OMITS && strstr(name, f->name_contains) != NULL) {
        return false;
    }
    usec_t created = record_i64(o, "created");
    usec_t modified = record_i64(o, "modified");
    return strstr(name, q->contains) != NULL &&
           (q->status[0] == '\0' || strcmp(record_text(o, "status"), q->status) == 0) &&
           created >= q->created_after && created <= q->created_before &&
           modified >= q->modified_after && modified <= q->modified_before;
}

static json_t *summary(const struct app *app, const struct hosting_query *q,
                       const struct list_row *row)
{
    char arn[HOSTING_ARN_MAX];
    hosting_arn(app, q->kind, row->name, arn);
    json_t *o = json_pack("{s:s, s:s, s:o}", q->kind->name_key, row->name, q->kind->arn_key, arn,
                          "CreationTime", record_epoch(record_i64(row->o, "created")));
    if (q->kind->record == RECORD_ENDPOINT) {
        (void)json_object_set_new(o, "LastModifiedTime",
                                  record_epoch(record_i64(row->o, "modified")));
        record_set_text(o, "EndpointStatus", record_text(row->o, "status"));
    }
    return o;
}

static void list(struct request *r, const struct hosting_class *kind)
{
    struct hosting_query q = {.kind = kind};
    json_t *all = r->app->records.all[kind->record];
    const char *name;
    const json_t *o;
    size_t n = 0;
    size_t seq = 0;
    if (!query_read(r, &q)) {
        return;
    }
    const struct injected_fault *f = faults_take(r, STAGE_READ);
    AUTO_FREE struct list_row *rows = xcalloc(json_object_size(all) + 1, sizeof *rows);
    json_object_foreach(all, name, o)
    {
        if (row_listed(&q, name, o, f)) {
            rows[n++] = (struct list_row){name, o, seq};
        }
        seq++;
    }
    qsort_r(rows, n, sizeof *rows, row_cmp, &q);
    json_t *found = json_array();
    size_t end = MIN(n, (size_t)(q.skip + q.max));
    for (size_t i = (size_t)q.skip; i < end; i++) {
        (void)json_array_append_new(found, summary(r->app, &q, &rows[i]));
    }
    json_t *reply = json_pack("{s:o}", kind->list_key, found);
    bool loops = f != NULL && f->kind == FAULT_LOOPING_NEXT_TOKEN;
    if (end < n || loops) {
        char token[32];
        (void)snprintf(token, sizeof token, "after-%zu", loops ? (size_t)q.skip : end);
        record_set_text(reply, "NextToken", token);
    }
    reply_json(r, reply);
}

void hosting_list_models(struct request *r)
{
    list(r, &hosting_model);
}

void hosting_list_configs(struct request *r)
{
    list(r, &hosting_config);
}

void hosting_list_endpoints(struct request *r)
{
    list(r, &hosting_endpoint);
}
