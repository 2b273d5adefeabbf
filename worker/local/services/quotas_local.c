/* Service Quotas out of the configuration: instance quotas by type, totals, the rate of
 * CreateTrainingJob. See services.h. Codes that public lists name are those; the others are made
 * from the names, so they stay the same. */
#include "common/clock.h"
#include "common/hash.h"
#include "local/app.h"
#include "local/sagemaker/sagemaker_local.h"
#include "services.h"
#include <stdio.h>

struct quota {
    char name[QUOTA_NAME_MAX];
    double value;
    const char *unit;
};

int64_t quota_limit(const struct app *app, const char *quota, int64_t dflt)
{
    const json_t *v = json_object_get(app->set.quotas, quota);
    v = v != NULL ? v : json_object_get(app->set.account_quotas, quota);
    return v == NULL ? dflt : (int64_t)json_number_value(v);
}

int64_t quota_of_type(const struct app *app, enum type_quota kind, const char *type,
                      char name[static QUOTA_NAME_MAX])
{
    static const char *const suffixes[TYPE_QUOTA_COUNT] = {
        [QUOTA_TRAINING] = " for training job usage",
        [QUOTA_SPOT] = " for spot training job usage",
        [QUOTA_WARM] = " for training warm pool usage",
        [QUOTA_ENDPOINT] = " for endpoint usage",
    };
    const json_t *by_type[TYPE_QUOTA_COUNT] = {
        [QUOTA_TRAINING] = app->set.quotas,
        [QUOTA_SPOT] = app->set.spot_quotas,
        [QUOTA_WARM] = app->set.warm_quotas,
        [QUOTA_ENDPOINT] = app->set.endpoint_quotas,
    };
    (void)snprintf(name, QUOTA_NAME_MAX, "%s%s", type, suffixes[kind]);
    return quota_limit(app, name, (int64_t)json_number_value(json_object_get(by_type[kind], type)));
}

static void quota_code(const char *name, char out[static 16])
{
    static const struct {
        const char *name;
        const char *code;
    } published[] = {
        {"ml.p4d.24xlarge for training job usage", "L-09B4A649"},
        {"ml.p4d.24xlarge for spot training job usage", "L-09D56C4F"},
        {"ml.p4d.24xlarge for endpoint usage", "L-09F79647"},
        {"Number of instances across all training jobs", "L-00C91CB5"},
        {"Number of instances across active endpoints", "L-7A3DF611"},
        {"Longest run time for a training job", "L-33A961FD"},
        {"Rate of CreateTrainingJob requests", "L-21A1652A"},
    };
    for (size_t i = 0; i < ARRAY_LEN(published); i++) {
        if (strcmp(published[i].name, name) == 0) {
            (void)snprintf(out, 16, "%s", published[i].code);
            return;
        }
    }
    (void)snprintf(out, 16, "L-%08X", hash_crc32(name, strlen(name)));
}

static size_t quota_add(struct quota *q, size_t n, const char *name, double value, const char *unit)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(q[i].name, name) == 0) {
            return n;
        }
    }
    (void)snprintf(q[n].name, sizeof q[n].name, "%s", name);
    q[n].value = value;
    q[n].unit = unit;
    return n + 1;
}

/* All quotas; caller frees. */
static struct quota *quotas_all(const struct app *app, size_t *ret_n)
{
    static const struct {
        const char *name;
        double value;
        const char *unit;
    } fixed[] = {
        {"Maximum number of instances per training job", INSTANCES_MAX, "None"},
        {"Longest run time for a training job", LONGEST_RUN_S, "Second"},
        {"Keep alive period for cluster reuse", 3600, "Second"},
        {"Size of EBS volume for a training job instance", VOLUME_MAX_GB, "Gigabytes"},
    };
    const json_t *by_type[] = {app->set.quotas, app->set.warm_quotas, app->set.spot_quotas,
                               app->set.endpoint_quotas};
    size_t room = json_object_size(app->set.account_quotas) + ARRAY_LEN(fixed) + 1;
    for (size_t i = 0; i < ARRAY_LEN(by_type); i++) {
        room += TYPE_QUOTA_COUNT * json_object_size(by_type[i]);
    }
    struct quota *q = xcalloc(room, sizeof *q);
    size_t n = 0;
    const char *key;
    json_t *v;
    char name[QUOTA_NAME_MAX];
    const json_t *named[] = {app->set.quotas, app->set.account_quotas};
    for (size_t i = 0; i < ARRAY_LEN(named); i++) {
        json_object_foreach((json_t *)(uintptr_t)named[i], key, v)
        {
            if (strchr(key, ' ') != NULL) {
                n = quota_add(q, n, key, json_number_value(v), "None");
            }
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(by_type); i++) {
        json_object_foreach((json_t *)(uintptr_t)by_type[i], key, v)
        {
            for (int kind = 0; kind < TYPE_QUOTA_COUNT && strchr(key, ' ') == NULL; kind++) {
                int64_t limit = quota_of_type(app, (enum type_quota)kind, key, name);
                n = quota_add(q, n, name, (double)limit, "None");
            }
        }
    }
    const json_t *rate = json_object_get(app->set.rates, "CreateTrainingJob");
    if (rate != NULL) {
        n = quota_add(q, n, "Rate of CreateTrainingJob requests", json_number_value(rate), "None");
    }
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
        n = quota_add(q, n, fixed[i].name, fixed[i].value, fixed[i].unit);
    }
    *ret_n = n;
    return q;
}

static json_t *quota_json(const struct app *app, const struct quota *q)
{
    char code[16];
    quota_code(q->name, code);
    AUTO_FREE char *arn = xasprintf("arn:aws:servicequotas:%s:%s:sagemaker/%s", app->set.region,
                                    app->set.account, code);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:s, s:b, s:b}", "ServiceCode", "sagemaker",
                     "ServiceName", "Amazon SageMaker", "QuotaArn", arn, "QuotaCode", code,
                     "QuotaName", q->name, "Value", q->value, "Unit", q->unit, "Adjustable", 1,
                     "GlobalQuota", 0);
}

/* Check that the request is for SageMaker's quotas; false: answered. */
static bool service_ok(struct request *r)
{
    const char *service = json_string_value(json_object_get(r->input, "ServiceCode"));
    if (service == NULL || strcmp(service, "sagemaker") != 0) {
        reply_error(r, 400, "NoSuchResourceException",
                    "The request failed because the specified service does not exist.");
        return false;
    }
    return true;
}

/* The default of an instance quota is independent of what was granted. */
static void quota_default(struct quota *q)
{
    q->value = strstr(q->name, " usage") != NULL ? 0 : q->value;
}

static void list(struct request *r, bool dflt)
{
    int64_t max;
    int64_t at = 0;
    struct err err = ERR_INIT;
    const char *token;
    if (!service_ok(r)) {
        return;
    }
    if (!json_get_i64(r->input, "MaxResults", 1, 100, 100, &max, &err) ||
        !json_get_str(r->input, "NextToken", "0", &token, &err)) {
        reply_error(r, 400, "IllegalArgumentException", "%s", err.message);
        return;
    }
    size_t n;
    AUTO_FREE struct quota *q = quotas_all(r->app, &n);
    if (!parse_i64(str_of(token), 0, (int64_t)n, &at, &err)) {
        reply_error(r, 400, "InvalidPaginationTokenException", "Invalid token was used.");
        return;
    }
    json_t *rows = json_array();
    size_t end = MIN(n, (size_t)(at + max));
    const struct injected_fault *f = faults_take(r, STAGE_READ);
    bool omits = f != NULL && f->kind == FAULT_LIST_OMITS;
    for (size_t i = (size_t)at; i < end; i++) {
        if (omits && strstr(q[i].name, f->name_contains) != NULL) {
            continue;
        }
        if (dflt) {
            quota_default(&q[i]);
        }
        (void)json_array_append_new(rows, quota_json(r->app, &q[i]));
    }
    json_t *o = json_pack("{s:o}", "Quotas", rows);
    if (end < n) {
        char next[24];
        (void)snprintf(next, sizeof next, "%zu", end);
        (void)json_object_set_new(o, "NextToken", json_string(next));
    }
    reply_json(r, o);
}

void quotas_list(struct request *r)
{
    list(r, false);
}

void quotas_list_defaults(struct request *r)
{
    list(r, true);
}

/* The quota of a code; false: answered. */
static bool quota_find(struct request *r, struct quota *ret)
{
    const char *code = json_string_value(json_object_get(r->input, "QuotaCode"));
    size_t n;
    if (!service_ok(r)) {
        return false;
    }
    AUTO_FREE struct quota *q = quotas_all(r->app, &n);
    for (size_t i = 0; i < n && code != NULL; i++) {
        char have[16];
        quota_code(q[i].name, have);
        if (strcmp(have, code) == 0) {
            *ret = q[i];
            return true;
        }
    }
    reply_error(r, 400, "NoSuchResourceException",
                "The request failed because the specified quota does not exist.");
    return false;
}

static void quota_get(struct request *r, bool dflt)
{
    struct quota q;
    if (quota_find(r, &q)) {
        if (dflt) {
            quota_default(&q);
        }
        reply_json(r, json_pack("{s:o}", "Quota", quota_json(r->app, &q)));
    }
}

void quotas_get(struct request *r)
{
    quota_get(r, false);
}

void quotas_get_default(struct request *r)
{
    quota_get(r, true);
}

static bool is_pending(const json_t *asked, const char *name)
{
    return strcmp(json_string_value(json_object_get(asked, "Status")), "PENDING") == 0 &&
           (name == NULL ||
            strcmp(json_string_value(json_object_get(asked, "QuotaName")), name) == 0);
}

void quotas_request_increase(struct request *r)
{
    struct quota q;
    size_t i;
    json_t *v;
    char code[16], id[40];
    const json_t *value = json_object_get(r->input, "DesiredValue");
    if (!quota_find(r, &q)) {
        return;
    }
    if (!json_is_number(value) || json_number_value(value) <= q.value) {
        reply_error(r, 400, "IllegalArgumentException",
                    "You must provide a quota value greater than the current quota value.");
        return;
    }
    json_array_foreach(r->app->quota_requests, i, v)
    {
        if (is_pending(v, q.name)) {
            reply_error(r, 400, "ResourceAlreadyExistsException",
                        "Only one open service quota increase request is allowed per quota.");
            return;
        }
    }
    if (r->app->quota_requests == NULL) {
        r->app->quota_requests = json_array();
    }
    quota_code(q.name, code);
    (void)snprintf(id, sizeof id, "%032zx", json_array_size(r->app->quota_requests) + 1);
    AUTO_FREE char *arn = xasprintf("arn:aws:servicequotas:%s:%s:sagemaker/%s", r->app->set.region,
                                    r->app->set.account, code);
    double now = (double)clock_wall_us() / (double)USEC_PER_SEC;
    json_t *asked = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:f, s:s, s:f, s:f, s:s, s:b, s:s}", "Id", id, "ServiceCode",
        "sagemaker", "ServiceName", "Amazon SageMaker", "QuotaCode", code, "QuotaName", q.name,
        "DesiredValue", json_number_value(value), "Status", "PENDING", "Created", now,
        "LastUpdated", now, "QuotaArn", arn, "GlobalQuota", 0, "Unit", q.unit);
    (void)json_array_append_new(r->app->quota_requests, asked);
    reply_json(r, json_pack("{s:O}", "RequestedQuota", asked));
}

void quotas_requests(struct request *r)
{
    const char *status = json_string_value(json_object_get(r->input, "Status"));
    size_t i;
    json_t *v;
    if (!service_ok(r)) {
        return;
    }
    json_t *rows = json_array();
    json_array_foreach(r->app->quota_requests, i, v)
    {
        if (status == NULL ||
            strcmp(json_string_value(json_object_get(v, "Status")), status) == 0) {
            (void)json_array_append(rows, v);
        }
    }
    reply_json(r, json_pack("{s:o}", "RequestedQuotas", rows));
}

void quotas_approve(struct request *r)
{
    size_t i, n = 0;
    json_t *v;
    json_array_foreach(r->app->quota_requests, i, v)
    {
        if (is_pending(v, NULL)) {
            (void)json_object_set_new(v, "Status", json_string("APPROVED"));
            (void)json_object_set(r->app->set.quotas,
                                  json_string_value(json_object_get(v, "QuotaName")),
                                  json_object_get(v, "DesiredValue"));
            n++;
        }
    }
    reply_json(r, json_pack("{s:I}", "approved", (json_int_t)n));
}
