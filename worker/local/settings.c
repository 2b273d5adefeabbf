/* Reading the configuration file of drover-local: see settings.h. */
#include "settings.h"
#include "local/iam/policy.h"
#include <errno.h>
#include <math.h>

#define SETTINGS_BYTES_MAX (8u << 20)
#define SECONDS_MAX        (10.0 * 365 * 86400)

static const char *const known_keys[] = {"quotas",
                                         "warm_quotas",
                                         "spot_quotas",
                                         "endpoint_quotas",
                                         "account_quotas",
                                         "prices",
                                         "rates",
                                         "bursts",
                                         "images",
                                         "credentials",
                                         "containers",
                                         "web_identities",
                                         "instance_role",
                                         "container_authorization",
                                         "credential_seconds",
                                         "job_env",
                                         "faults",
                                         "roles",
                                         "denied_buckets",
                                         "public_buckets",
                                         "kms_buckets",
                                         "kms_only_buckets",
                                         "queues",
                                         "policies",
                                         "secrets",
                                         "subnets",
                                         "region",
                                         "account",
                                         "stop_seconds",
                                         "cold_start_seconds",
                                         "warm_start_seconds",
                                         "warm_newest_first",
                                         "cluster_life_seconds",
                                         "spot_wait_seconds",
                                         "spot_billed_percent",
                                         "download_seconds",
                                         "upload_seconds",
                                         "stop_grace_seconds",
                                         "endpoint_start_seconds",
                                         "endpoint_health_seconds",
                                         "endpoint_stop_seconds",
                                         "metric_delay_seconds",
                                         "fsx_create_seconds",
                                         "fsx_delete_seconds",
                                         "fsx_task_seconds",
                                         "signature_window_seconds",
                                         "kill_jobs_on_exit",
                                         "log_bodies",
                                         "list_filters_late",
                                         NULL};

bool settings_seconds(const json_t *o, const char *key, int64_t dflt_us, int64_t *ret_us,
                      struct err *err)
{
    const json_t *v = json_object_get(o, key);
    if (v == NULL) {
        *ret_us = dflt_us;
        return true;
    }
    if (!json_is_number(v)) {
        return err_set(err, ERR_INVALID, "'%s' must be a number of seconds", key);
    }
    double s = json_number_value(v);
    if (!(s >= 0.0 && s <= SECONDS_MAX)) {
        return err_set(err, ERR_INVALID, "'%s' is out of range", key);
    }
    *ret_us = (int64_t)llround(s * (double)USEC_PER_SEC);
    return true;
}

static bool file_read(const char *file, struct buf *out, struct err *err)
{
    AUTO_FILE FILE *f = fopen(file, "re");
    if (f == NULL) {
        return err_set_os(err, ERR_IO, errno, "cannot open '%s'", file);
    }
    if (buf_add_file(out, f)) {
        return true;
    }
    return out->overflow ? err_set(err, ERR_TOO_LARGE, "'%s' is larger than %u bytes", file,
                                   SETTINGS_BYTES_MAX)
                         : err_set_os(err, ERR_IO, errno, "cannot read '%s'", file);
}

/* The map or list at key, or the default text parsed in its place. */
static bool part_get(json_t *all, const char *key, const char *dflt, bool list, json_t **ret,
                     struct err *err)
{
    json_t *v = json_object_get(all, key);
    if (v == NULL) {
        if (dflt == NULL) {
            *ret = NULL;
            return true;
        }
        v = json_loads(dflt, 0, NULL);
        ASSERT(v != NULL);
        (void)json_object_set_new(all, key, v);
    }
    if (list ? !json_is_array(v) : !json_is_object(v)) {
        return err_set(err, ERR_INVALID, "'%s' must be %s", key, list ? "a list" : "an object");
    }
    *ret = v;
    return true;
}

static bool values_check(json_t *map, const char *what, bool strings, struct err *err)
{
    const char *key;
    json_t *v;
    json_object_foreach(map, key, v)
    {
        bool ok = strings ? json_is_string(v) : json_is_number(v) && json_number_value(v) >= 0.0;
        if (!ok) {
            return err_set(err, ERR_INVALID, "'%s' in '%s' must be %s", key, what,
                           strings ? "a string" : "a number, 0 or more");
        }
    }
    return true;
}

/* A policy: the document itself, or the file that has it, which is read here. */
static bool policy_load(json_t *all, size_t i, struct err *err)
{
    json_t *document = json_array_get(all, i);
    if (json_is_string(document)) {
        const char *file = json_string_value(document);
        AUTO_BUF struct buf text = BUF_INIT(SETTINGS_BYTES_MAX);
        json_t *read;
        if (!file_read(file, &text, err)) {
            return false;
        }
        if (!json_parse(buf_str(&text), SETTINGS_BYTES_MAX, &read, err)) {
            return err_wrap(err, "%s", file);
        }
        (void)json_array_set_new(all, i, read);
        document = read;
    }
    return policy_check(document, err) || err_wrap(err, "policy %zu", i + 1);
}

static bool policies_load(json_t *policies, struct err *err)
{
    const char *principal;
    json_t *all;
    json_object_foreach(policies, principal, all)
    {
        if (!json_is_array(all)) {
            return err_set(err, ERR_INVALID, "the policies of '%s' must be a list", principal);
        }
        for (size_t i = 0; i < json_array_size(all); i++) {
            if (!policy_load(all, i, err)) {
                return err_wrap(err, "'%s' in 'policies'", principal);
            }
        }
    }
    return true;
}

static bool images_check(json_t *images, struct err *err)
{
    const char *key;
    json_t *argv;
    json_object_foreach(images, key, argv)
    {
        size_t i;
        json_t *arg;
        if (!json_is_array(argv) || json_array_size(argv) == 0) {
            return err_set(err, ERR_INVALID, "image '%s' needs a list of arguments", key);
        }
        json_array_foreach(argv, i, arg)
        {
            if (!json_is_string(arg)) {
                return err_set(err, ERR_INVALID, "image '%s': arguments are strings", key);
            }
        }
    }
    return true;
}

static bool maps_load(struct local_settings *s, struct err *err)
{
    json_t *a = s->all;
    return part_get(a, "quotas", "{\"ml.m5.large\":4}", false, &s->quotas, err) &&
           part_get(a, "warm_quotas", "{}", false, &s->warm_quotas, err) &&
           part_get(a, "spot_quotas", "{}", false, &s->spot_quotas, err) &&
           part_get(a, "endpoint_quotas", "{}", false, &s->endpoint_quotas, err) &&
           part_get(a, "account_quotas", "{}", false, &s->account_quotas, err) &&
           part_get(a, "prices", "{\"ml.m5.large\":\"0.115\"}", false, &s->prices, err) &&
           part_get(a, "rates", "{}", false, &s->rates, err) &&
           part_get(a, "bursts", "{}", false, &s->bursts, err) &&
           part_get(a, "images", "{}", false, &s->images, err) &&
           part_get(a, "subnets", NULL, false, &s->subnets, err) &&
           part_get(a, "credentials", "{\"AKIDLOCAL\":\"local-secret\"}", false, &s->credentials,
                    err) &&
           part_get(a, "containers", "{}", false, &s->containers, err) &&
           part_get(a, "web_identities", "{}", false, &s->web_identities, err) &&
           part_get(a, "job_env", "{}", false, &s->job_env, err) &&
           part_get(a, "faults", "[]", true, &s->faults, err) &&
           part_get(a, "roles", NULL, true, &s->roles, err) &&
           part_get(a, "denied_buckets", NULL, true, &s->denied_buckets, err) &&
           part_get(a, "public_buckets", NULL, true, &s->public_buckets, err) &&
           part_get(a, "kms_buckets", NULL, true, &s->kms_buckets, err) &&
           part_get(a, "kms_only_buckets", NULL, true, &s->kms_only_buckets, err) &&
           part_get(a, "queues", "{}", false, &s->queues, err) &&
           values_check(s->queues, "queues", true, err) &&
           part_get(a, "secrets", "{}", false, &s->secrets, err) &&
           part_get(a, "policies", "{}", false, &s->policies, err) &&
           policies_load(s->policies, err) && values_check(s->quotas, "quotas", false, err) &&
           values_check(s->warm_quotas, "warm_quotas", false, err) &&
           values_check(s->spot_quotas, "spot_quotas", false, err) &&
           values_check(s->endpoint_quotas, "endpoint_quotas", false, err) &&
           values_check(s->account_quotas, "account_quotas", false, err) &&
           values_check(s->prices, "prices", true, err) &&
           values_check(s->rates, "rates", false, err) &&
           values_check(s->bursts, "bursts", false, err) &&
           values_check(s->credentials, "credentials", true, err) &&
           values_check(s->containers, "containers", true, err) &&
           values_check(s->web_identities, "web_identities", true, err) &&
           values_check(s->secrets, "secrets", true, err) &&
           values_check(s->job_env, "job_env", true, err) && images_check(s->images, err);
}

static bool scalars_load(struct local_settings *s, struct err *err)
{
    json_t *a = s->all;
    return json_get_str(a, "region", "us-east-1", &s->region, err) &&
           json_get_str(a, "account", "123456789012", &s->account, err) &&
           json_get_str(a, "instance_role", NULL, &s->instance_role, err) &&
           json_get_str(a, "container_authorization", "", &s->container_authorization, err) &&
           settings_seconds(a, "credential_seconds", 3600 * USEC_PER_SEC, &s->credential_us, err) &&
           settings_seconds(a, "cold_start_seconds", 500 * USEC_PER_MSEC, &s->cold_start_us, err) &&
           settings_seconds(a, "warm_start_seconds", MIN(s->cold_start_us, 50 * USEC_PER_MSEC),
                            &s->warm_start_us, err) &&
           json_get_bool(a, "warm_newest_first", false, &s->warm_newest_first, err) &&
           settings_seconds(a, "spot_wait_seconds", s->cold_start_us, &s->spot_wait_us, err) &&
           json_get_i64(a, "spot_billed_percent", 1, 100, 30, &s->spot_billed_percent, err) &&
           settings_seconds(a, "cluster_life_seconds", 28 * 86400 * USEC_PER_SEC,
                            &s->cluster_life_us, err) &&
           settings_seconds(a, "download_seconds", 0, &s->download_us, err) &&
           settings_seconds(a, "upload_seconds", 0, &s->upload_us, err) &&
           settings_seconds(a, "stop_seconds", 500 * USEC_PER_MSEC, &s->stop_us, err) &&
           settings_seconds(a, "stop_grace_seconds", 120 * USEC_PER_SEC, &s->stop_grace_us, err) &&
           settings_seconds(a, "endpoint_start_seconds", s->cold_start_us, &s->endpoint_start_us,
                            err) &&
           settings_seconds(a, "endpoint_health_seconds", 240 * USEC_PER_SEC,
                            &s->endpoint_health_us, err) &&
           settings_seconds(a, "endpoint_stop_seconds", s->stop_us, &s->endpoint_stop_us, err) &&
           settings_seconds(a, "metric_delay_seconds", 0, &s->metric_delay_us, err) &&
           settings_seconds(a, "fsx_create_seconds", s->cold_start_us, &s->fsx_create_us, err) &&
           settings_seconds(a, "fsx_delete_seconds", s->stop_us, &s->fsx_delete_us, err) &&
           settings_seconds(a, "fsx_task_seconds", 100 * USEC_PER_MSEC, &s->fsx_task_us, err) &&
           settings_seconds(a, "signature_window_seconds", 900 * USEC_PER_SEC,
                            &s->signature_window_us, err) &&
           json_get_bool(a, "kill_jobs_on_exit", false, &s->kill_jobs_on_exit, err) &&
           json_get_bool(a, "log_bodies", false, &s->log_bodies, err) &&
           json_get_bool(a, "list_filters_late", false, &s->list_filters_late, err);
}

bool settings_load(const char *file, struct local_settings *ret, struct err *err)
{
    struct local_settings s = {0};
    if (file == NULL) {
        s.all = json_object();
    } else {
        AUTO_BUF struct buf text = BUF_INIT(SETTINGS_BYTES_MAX);
        if (!file_read(file, &text, err)) {
            return false;
        }
        if (!json_parse(buf_str(&text), SETTINGS_BYTES_MAX, &s.all, err)) {
            return err_wrap(err, "%s", file);
        }
        if (!json_is_object(s.all)) {
            json_decref(s.all);
            return err_set(err, ERR_INVALID, "%s: must be an object", file);
        }
    }
    if (!json_only_keys(s.all, known_keys, err) || !maps_load(&s, err) || !scalars_load(&s, err)) {
        json_decref(s.all);
        return err_wrap(err, "%s", file == NULL ? "defaults" : file);
    }
    *ret = s;
    return true;
}

void settings_done(struct local_settings *s)
{
    json_decref(s->all);
    *s = (struct local_settings){0};
}
