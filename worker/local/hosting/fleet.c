/* See fleet.h. */
#include "fleet.h"
#include "common/clock.h"
#include "common/log.h"
#include "hosting.h"
#include "local/app.h"
#include "local/jobs/files.h"
#include "local/jobs/process.h"
#include "local/services/issued_keys.h"
#include "local/services/services.h"
#include <stdio.h>

static const char health_text[] =
    "The primary container for production variant %s did not pass the ping health check. Please "
    "check CloudWatch logs for this endpoint.";

static bool fleet_path(const struct app *app, const char *id, const char *file,
                       char out[static PATH_MAX], struct err *err)
{
    return files_path(out, PATH_MAX, err, "%s/fleets/%s%s%s", app->root, id,
                      file[0] == '\0' ? "" : "/", file);
}

static bool fleet_is_alive(const struct app *app, const char *id)
{
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    return fleet_path(app, id, "lock", path, &err) && process_is_locked(path);
}

static void fleet_ask(const struct app *app, const char *id, const char *file)
{
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    if (!fleet_path(app, id, file, path, &err) || !files_mkparents(path, &err) ||
        !files_write(path, STR("\n"), &err)) {
        log_event(LOG_ERROR, "fleet_not_asked", LF_S("fleet", id), LF_ERR(&err));
    }
}

static json_t *fleet_env(const struct app *app, const json_t *fleet)
{
    json_t *env = json_copy(app->set.job_env);
    json_t *own = json_object_get(json_object_get(fleet, "container"), "Environment");
    const char *id = record_text(fleet, "id");
    char proof[33];
    AUTO_FREE char *uri = xasprintf("%s/v2/credentials/%s", app->url, id);
    issued_proof(&app->set, "job", id, proof);
    if (own != NULL) {
        (void)json_object_update(env, own);
    }
    record_set_text(env, "AWS_REGION", app->set.region);
    record_set_text(env, "AWS_DEFAULT_REGION", app->set.region);
    record_set_text(env, "AWS_ENDPOINT_URL", app->url);
    record_set_text(env, "AWS_CONTAINER_CREDENTIALS_FULL_URI", uri);
    record_set_text(env, "AWS_CONTAINER_AUTHORIZATION_TOKEN", proof);
    return env;
}

/* What the supervisor reads. */
static json_t *fleet_spec(const struct app *app, const json_t *fleet)
{
    const char *image = record_text(json_object_get(fleet, "container"), "Image");
    json_t *spec = json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:O, s:o, s:I}", "name", record_text(fleet, "id"), "root",
        app->root, "region", app->set.region, "seq", (json_int_t)0, "hosts",
        (json_int_t)record_i64(fleet, "instances"), "request", json_object_get(fleet, "container"),
        "env", fleet_env(app, fleet), "stop_grace_us", (json_int_t)app->set.stop_grace_us);
    json_t *argv = json_copy(ecr_image_argv(app, image));
    (void)json_array_append_new(argv, json_string("serve"));
    (void)json_object_set_new(spec, "argv", argv);
    if (app->set.denied_buckets != NULL) {
        (void)json_object_set(spec, "denied_buckets", app->set.denied_buckets);
    }
    return spec;
}

/* Write the specification and start the supervisor; harmless when it runs. */
static void fleet_start(const struct app *app, const json_t *fleet)
{
    const char *id = record_text(fleet, "id");
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    AUTO_JSON json_t *spec = fleet_spec(app, fleet);
    AUTO_FREE char *text = json_text(spec);
    bool ok = fleet_path(app, id, "spec.json", path, &err) && files_mkparents(path, &err) &&
              files_write(path, str_of(text), &err) && fleet_path(app, id, "", path, &err) &&
              process_spawn(app, "serve", path, &err);
    if (!ok) {
        log_event(LOG_ERROR, "fleet_start_failed", LF_S("fleet", id), LF_ERR(&err));
    }
}

/* What the supervisor reported; NULL: nothing. */
static json_t *mark_read(const struct app *app, const char *id, const char *kind)
{
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    json_t *o = NULL;
    AUTO_BUF struct buf text = BUF_INIT(MARK_BYTES_MAX);
    bool ok = files_path(path, sizeof path, &err, "%s/state/marks/%s.%s", app->root, id, kind) &&
              files_read(path, &text, &err) && json_parse(buf_str(&text), MARK_BYTES_MAX, &o, &err);
    return ok ? o : NULL;
}

json_t *fleets_new(const struct app *app, const char *endpoint, const json_t *config, int64_t n,
                   const char **ret_missing)
{
    json_t *list = json_array();
    const json_t *variants =
        json_object_get(json_object_get(config, "request"), "ProductionVariants");
    size_t i;
    const json_t *v;
    json_array_foreach(variants, i, v)
    {
        const json_t *model = record_find(app, RECORD_MODEL, record_text(v, "ModelName"));
        const json_t *asked = json_object_get(model, "request");
        json_t *container = json_object_get(asked, "PrimaryContainer");
        const json_t *weight = json_object_get(v, "InitialVariantWeight");
        if (model == NULL) {
            *ret_missing = record_text(v, "ModelName");
            json_decref(list);
            return NULL;
        }
        if (container == NULL) {
            container = json_array_get(json_object_get(asked, "Containers"), 0);
        }
        AUTO_FREE char *id = xasprintf("ep_%s_%lld_%zu", endpoint, (long long)n, i);
        json_t *fleet =
            json_pack("{s:s, s:s, s:s, s:I, s:f, s:s, s:O, s:I}", "id", id, "variant",
                      record_text(v, "VariantName"), "type", record_text(v, "InstanceType"),
                      "instances", (json_int_t)record_i64(v, "InitialInstanceCount"), "weight",
                      weight == NULL ? 1.0 : json_number_value(weight), "role",
                      record_text(asked, "ExecutionRoleArn"), "container", container, "health_s",
                      (json_int_t)record_i64(v, "ContainerStartupHealthCheckTimeoutInSeconds"));
        (void)json_array_append_new(list, fleet);
    }
    return list;
}

static int64_t list_instances(const json_t *list, const char *type)
{
    int64_t n = 0;
    size_t i;
    const json_t *f;
    json_array_foreach(list, i, f)
    {
        n += type == NULL || strcmp(record_text(f, "type"), type) == 0 ? record_i64(f, "instances")
                                                                       : 0;
    }
    return n;
}

int64_t fleets_instances(const struct app *app, const char *type)
{
    const char *name;
    const json_t *o;
    int64_t n = 0;
    json_object_foreach(app->records.all[RECORD_ENDPOINT], name, o)
    {
        n += list_instances(json_object_get(o, "fleets"), type) +
             list_instances(json_object_get(o, "next"), type);
    }
    return n;
}

void fleets_leave(struct app *app, const char *endpoint, json_t *list, usec_t at)
{
    size_t i;
    const json_t *f;
    json_array_foreach(list, i, f)
    {
        int64_t since = record_i64(f, "since");
        fleet_ask(app, record_text(f, "id"), "stop");
        if (since == 0) {
            continue; /* never in service, so never billed */
        }
        json_t *line = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "name", endpoint, "kind",
                                 "hosting", "instance_type", record_text(f, "type"), "instances",
                                 (json_int_t)record_i64(f, "instances"), "from", (json_int_t)since,
                                 "to", (json_int_t)MAX(at, since));
        AUTO_FREE char *key = xasprintf("%s/%lld", record_text(f, "id"), (long long)since);
        (void)!record_add(app, RECORD_CHARGE, key, line, NULL);
    }
    (void)json_array_clear(list);
}

/* Calls fn for each fleet there is, until it returns false. */
static void fleets_each(const struct app *app,
                        bool (*fn)(const struct app *app, const json_t *fleet, void *ctx),
                        void *ctx)
{
    static const char *const lists[] = {"fleets", "next"};
    const char *name;
    const json_t *o;
    json_object_foreach(app->records.all[RECORD_ENDPOINT], name, o)
    {
        for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
            size_t i;
            const json_t *f;
            json_array_foreach(json_object_get(o, lists[l]), i, f)
            {
                if (!fn(app, f, ctx)) {
                    return;
                }
            }
        }
    }
}

static bool kill_one(const struct app *app, const json_t *fleet, void *ctx UNUSED)
{
    fleet_ask(app, record_text(fleet, "id"), "kill");
    return true;
}

void fleets_kill(const struct app *app)
{
    fleets_each(app, kill_one, NULL);
}

static bool count_alive(const struct app *app, const json_t *fleet, void *ctx)
{
    size_t *n = ctx;
    *n += fleet_is_alive(app, record_text(fleet, "id"));
    return true;
}

size_t fleets_alive(const struct app *app)
{
    size_t n = 0;
    fleets_each(app, count_alive, &n);
    return n;
}

struct role_wanted {
    const char *id;
    const char *role;
};

static bool role_of(const struct app *app UNUSED, const json_t *fleet, void *ctx)
{
    struct role_wanted *w = ctx;
    if (strcmp(record_text(fleet, "id"), w->id) == 0) {
        w->role = record_text(fleet, "role");
    }
    return w->role == NULL;
}

const char *fleet_role(const struct app *app, const char *id)
{
    struct role_wanted w = {id, NULL};
    fleets_each(app, role_of, &w);
    return w.role;
}

static void fail(struct app *app, const char *name, json_t *o, const char *reason, usec_t now)
{
    bool updating = strcmp(record_text(o, "status"), "Updating") == 0;
    fleets_leave(app, name, json_object_get(o, "next"), now);
    record_set_text(o, "status", updating ? "InService" : "Failed");
    record_set_text(o, "reason", reason);
    record_set_text(o, "next_config", "");
    record_set_i64(o, "modified", now);
    record_set_i64(o, "due", 0);
    record_save(app, RECORD_ENDPOINT, name);
}

/* Its new fleets answer: they take the traffic, the old ones end. */
static void serve_from(struct app *app, const char *name, json_t *o, usec_t now)
{
    json_t *next = json_object_get(o, "next");
    size_t i;
    json_t *f;
    fleets_leave(app, name, json_object_get(o, "fleets"), now);
    json_array_foreach(next, i, f)
    {
        record_set_i64(f, "since", now);
    }
    (void)json_object_set(o, "fleets", next);
    (void)json_object_set_new(o, "next", json_array());
    if (record_text(o, "next_config")[0] != '\0') {
        AUTO_FREE char *config = xstrdup(record_text(o, "next_config"));
        record_set_text(o, "config", config);
        record_set_text(o, "next_config", "");
    }
    record_set_text(o, "status", "InService");
    record_set_text(o, "reason", "");
    record_set_i64(o, "modified", now);
    record_set_i64(o, "due", 0);
    record_save(app, RECORD_ENDPOINT, name);
}

/* Instances are up: the model is fetched and the containers are started. */
static void launch(struct app *app, const char *name, json_t *o, usec_t now)
{
    int64_t health_us = 0;
    size_t i;
    const json_t *f;
    const char *inject = record_text(o, "inject");
    if (inject[0] != '\0') {
        AUTO_FREE char *reason = xstrdup(inject);
        record_set_text(o, "inject", "");
        fail(app, name, o, reason, now);
        return;
    }
    json_array_foreach(json_object_get(o, "next"), i, f)
    {
        int64_t asked_us = record_i64(f, "health_s") * USEC_PER_SEC;
        health_us = MAX(health_us, asked_us == 0 ? app->set.endpoint_health_us
                                                 : MIN(asked_us, app->set.endpoint_health_us));
        fleet_start(app, f);
    }
    record_set_i64(o, "due", now + health_us); /* they must answer by then */
    (void)json_object_set_new(o, "launched", json_true());
    record_save(app, RECORD_ENDPOINT, name);
}

static void starting(struct app *app, const char *name, json_t *o, usec_t now)
{
    size_t i;
    json_t *f;
    size_t ready = 0;
    const char *slow = "";
    json_t *next = json_object_get(o, "next");
    if (!json_is_true(json_object_get(o, "launched"))) {
        if (now >= record_i64(o, "due")) {
            launch(app, name, o, now);
        }
        return;
    }
    json_array_foreach(next, i, f)
    {
        const char *id = record_text(f, "id");
        AUTO_JSON json_t *end = mark_read(app, id, "end");
        AUTO_JSON json_t *up = mark_read(app, id, "ready");
        if (end != NULL) {
            fail(app, name, o, record_text(end, "text"), now);
            return;
        }
        if (up != NULL) {
            record_set_text(f, "net", record_text(up, "text"));
            ready++;
        } else {
            slow = record_text(f, "variant");
        }
    }
    if (ready == json_array_size(next)) {
        serve_from(app, name, o, now);
    } else if (now >= record_i64(o, "due")) {
        char reason[512];
        (void)snprintf(reason, sizeof reason, health_text, slow);
        fail(app, name, o, reason, now);
    }
}

static void deleting(struct app *app, const char *name, const json_t *o, usec_t now)
{
    if (now >= record_i64(o, "due")) {
        record_remove(app, RECORD_ENDPOINT, name);
    }
}

/* Supervisors that died are started again, and their new addresses are taken. */
static void fleets_watch(struct app *app, const json_t *list)
{
    size_t i;
    json_t *f;
    json_array_foreach(list, i, f)
    {
        const char *id = record_text(f, "id");
        if (!fleet_is_alive(app, id)) {
            fleet_start(app, f);
        }
        AUTO_JSON json_t *up = mark_read(app, id, "ready");
        if (up != NULL) {
            record_set_text(f, "net", record_text(up, "text"));
        }
    }
}

usec_t hosting_tick(struct app *app, usec_t now)
{
    const char *name;
    json_t *o;
    void *tmp;
    usec_t next = USEC_NEVER;
    bool check = now >= app->fleets_check || app->fleets_check > now + 2 * CHECK_EVERY_US;
    if (check) {
        app->fleets_check = now + CHECK_EVERY_US;
    }
    json_object_foreach_safe(app->records.all[RECORD_ENDPOINT], tmp, name, o)
    {
        const char *status = record_text(o, "status");
        if (check) {
            fleets_watch(app, json_object_get(o, "fleets"));
            if (json_is_true(json_object_get(o, "launched"))) {
                fleets_watch(app, json_object_get(o, "next"));
            }
        }
        if (strcmp(status, "Creating") == 0 || strcmp(status, "Updating") == 0) {
            starting(app, name, o, now);
        } else if (strcmp(status, "Deleting") == 0) {
            deleting(app, name, o, now);
            continue;
        }
        int64_t due = record_i64(o, "due");
        next = due != 0 ? MIN(next, due) : next;
    }
    return json_object_size(app->records.all[RECORD_ENDPOINT]) > 0 ? MIN(next, app->fleets_check)
                                                                   : next;
}
