/* Data repository associations and tasks: see fsx.h. */
#include "common/clock.h"
#include "fsx.h"
#include "fsx_life.h"
#include "local/app.h"
#include "local/sagemaker/job_clock.h"
#include "local/sagemaker/shape.h"

#define ASSOCIATIONS_MAX 8

static const struct shape_field policy_fields[] = {
    {"Events", SHAPE_TEXTS, false, 0, 3, "NEW CHANGED DELETED", NULL, NULL},
};
static const struct request_shape policy = SHAPE(policy_fields);
static const struct shape_field s3_fields[] = {
    {"AutoImportPolicy", SHAPE_PART, false, 0, 0, NULL, NULL, &policy},
    {"AutoExportPolicy", SHAPE_PART, false, 0, 0, NULL, NULL, &policy},
};
static const struct request_shape s3 = SHAPE(s3_fields);
static const struct shape_field association_fields[] = {
    {"FileSystemId", SHAPE_TEXT, true, 11, 21, NULL, "fs-[0-9a-f]{8,}", NULL},
    {"FileSystemPath", SHAPE_TEXT, false, 1, 4096, NULL, "/.*", NULL},
    {"DataRepositoryPath", SHAPE_TEXT, true, 3, 4357, NULL, "s3://.+", NULL},
    {"BatchImportMetaDataOnCreate", SHAPE_BOOL, false, 0, 0, NULL, NULL, NULL},
    {"ImportedFileChunkSize", SHAPE_INT, false, 1, 512000, NULL, NULL, NULL},
    {"S3", SHAPE_PART, false, 0, 0, NULL, NULL, &s3},
    {"ClientRequestToken", SHAPE_TEXT, false, 1, 63, NULL, "[A-Za-z0-9_.-]{0,63}", NULL},
    SHAPE_TAGS,
};
static const struct request_shape association_shape = SHAPE(association_fields);
static const struct shape_field report_fields[] = {
    {"Enabled", SHAPE_BOOL, true, 0, 0, NULL, NULL, NULL},
    {"Path", SHAPE_TEXT, false, 3, 4357, NULL, "s3://.+", NULL},
};
static const struct request_shape report = SHAPE(report_fields);
static const struct shape_field task_fields[] = {
    {"Type", SHAPE_TEXT, true, 0, 64,
     "EXPORT_TO_REPOSITORY IMPORT_METADATA_FROM_REPOSITORY RELEASE_DATA_FROM_FILESYSTEM "
     "AUTO_RELEASE_DATA",
     NULL, NULL},
    {"FileSystemId", SHAPE_TEXT, true, 11, 21, NULL, "fs-[0-9a-f]{8,}", NULL},
    {"Paths", SHAPE_TEXTS, false, 0, 100, NULL, NULL, NULL},
    {"Report", SHAPE_PART, true, 0, 0, NULL, NULL, &report},
    {"ClientRequestToken", SHAPE_TEXT, false, 1, 63, NULL, "[A-Za-z0-9_.-]{0,63}", NULL},
    SHAPE_TAGS,
};
static const struct request_shape task_shape = SHAPE(task_fields);

static bool refuse(struct request *r, const char *code, const char *text)
{
    reply_error(r, 400, code, "%s", text);
    return false;
}

/* The file system of a request, AVAILABLE; NULL: answered. */
static const json_t *filesystem_ready(struct request *r)
{
    const json_t *fs = fsx_named(r, &fsx_filesystems, "FileSystemId");
    if (fs != NULL && strcmp(record_text(fs, "lifecycle"), "AVAILABLE") != 0) {
        (void)refuse(r, "BadRequest", "The file system is not in the AVAILABLE state");
        return NULL;
    }
    return fs;
}

static const char *path_of(const json_t *asked)
{
    const char *path = record_text(asked, "FileSystemPath");
    return path[0] == '\0' ? "/" : path;
}

static bool overlaps(const char *a, const char *b)
{
    size_t n = MIN(strlen(a), strlen(b));
    return strncmp(a, b, n) == 0 &&
           (a[n - 1] == '/' || a[n] == '/' || b[n] == '/' || strlen(a) == strlen(b));
}

/* Rules of a new association, given the ones there are. False: answered. */
static bool association_ok(struct request *r, const json_t *fs)
{
    const char *fs_id = record_text(r->input, "FileSystemId");
    const char *deployment = record_text(
        json_object_get(json_object_get(fs, "asked"), "LustreConfiguration"), "DeploymentType");
    const char *id;
    const json_t *o;
    size_t n = 0;
    if (deployment[0] == '\0' || strcmp(deployment, "SCRATCH_1") == 0) {
        return refuse(r, "UnsupportedOperation",
                      "Data repository associations are not supported on SCRATCH_1");
    }
    if (json_object_get(json_object_get(r->input, "S3"), "AutoExportPolicy") != NULL) {
        return refuse(r, "BadRequest",
                      "AutoExportPolicy is not available on one machine; use a "
                      "task of type EXPORT_TO_REPOSITORY");
    }
    if (strstr(path_of(r->input), "..") != NULL) {
        return refuse(r, "BadRequest", "FileSystemPath is not valid");
    }
    json_object_foreach(r->app->records.all[RECORD_ASSOCIATION], id, o)
    {
        const json_t *asked = json_object_get(o, "asked");
        if (strcmp(record_text(asked, "FileSystemId"), fs_id) == 0) {
            n++;
            if (overlaps(path_of(asked), path_of(r->input))) {
                return refuse(r, "BadRequest",
                              "The file system path overlaps that of another data repository "
                              "association");
            }
        }
    }
    return n < ASSOCIATIONS_MAX ||
           refuse(r, "ServiceLimitExceeded", "A file system has at most 8 associations");
}

static json_t *association_show(const struct app *app, const char *id, const json_t *o)
{
    static const char *const echoed[] = {"FileSystemId", "DataRepositoryPath", "S3"};
    const json_t *asked = json_object_get(o, "asked");
    int64_t chunk = record_i64(asked, "ImportedFileChunkSize");
    json_t *out = json_pack(
        "{s:s, s:b, s:I}", "FileSystemPath", path_of(asked), "BatchImportMetaDataOnCreate",
        json_is_true(json_object_get(asked, "BatchImportMetaDataOnCreate")) ? 1 : 0,
        "ImportedFileChunkSize", (json_int_t)(chunk == 0 ? 1024 : chunk));
    for (size_t i = 0; i < ARRAY_LEN(echoed); i++) {
        json_t *v = json_object_get(asked, echoed[i]);
        if (v != NULL) {
            (void)json_object_set(out, echoed[i], v);
        }
    }
    fsx_show_common(app, &fsx_associations, id, o, out);
    return out;
}

static void association_reply(struct request *r, const char *id)
{
    const json_t *o = record_find(r->app, RECORD_ASSOCIATION, id);
    reply_json(r, json_pack("{s:o}", "Association", association_show(r->app, id, o)));
}

void fsx_association_create(struct request *r)
{
    const char *have;
    if (!shape_check(r, &association_shape) || !fsx_repeated(r, &fsx_associations, &have)) {
        return;
    }
    if (have != NULL) {
        association_reply(r, have);
        return;
    }
    const json_t *fs = filesystem_ready(r);
    if (fs == NULL || !association_ok(r, fs)) {
        return;
    }
    AUTO_FREE char *id = fsx_id_new(&fsx_associations);
    json_t *o = fsx_record(r, "CREATING", clock_wall_us() + r->app->set.fsx_task_us);
    const struct injected_fault *f = faults_take(r, STAGE_JOB);
    if (f != NULL) { /* of the task that imports */
        record_set_text(o, "inject", f->reason[0] != '\0' ? f->reason : "The task failed.");
    }
    if (record_add(r->app, RECORD_ASSOCIATION, id, o, r)) {
        association_reply(r, id);
        job_clock_wake(r->app);
    }
}

void fsx_association_describe(struct request *r)
{
    fsx_describe_all(r, &fsx_associations, association_show);
}

void fsx_association_delete(struct request *r)
{
    json_t *o = fsx_named(r, &fsx_associations, "AssociationId");
    const char *id = record_text(r->input, "AssociationId");
    bool data = json_is_true(json_object_get(r->input, "DeleteDataInFileSystem"));
    if (o == NULL) {
        return;
    }
    (void)json_object_set_new(o, "drop_data", json_boolean(data));
    fsx_enter(r->app, &fsx_associations, id, "DELETING", clock_wall_us() + r->app->set.fsx_task_us);
    job_clock_wake(r->app);
    r->reply.sync = true;
    reply_json(r, json_pack("{s:s, s:s, s:b}", "AssociationId", id, "Lifecycle", "DELETING",
                            "DeleteDataInFileSystem", data ? 1 : 0));
}

static json_t *task_show(const struct app *app, const char *id, const json_t *o)
{
    static const char *const echoed[] = {"FileSystemId", "Type", "Paths", "Report"};
    static const char *const times[][2] = {{"StartTime", "started"}, {"EndTime", "ended"}};
    const json_t *asked = json_object_get(o, "asked");
    json_t *out = json_object();
    for (size_t i = 0; i < ARRAY_LEN(echoed); i++) {
        json_t *v = json_object_get(asked, echoed[i]);
        if (v != NULL) {
            (void)json_object_set(out, echoed[i], v);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        if (record_i64(o, times[i][1]) != 0) {
            (void)json_object_set_new(out, times[i][0], record_epoch(record_i64(o, times[i][1])));
        }
    }
    if (json_object_get(o, "total") != NULL) {
        int64_t total = record_i64(o, "total");
        int64_t failed = record_i64(o, "failed");
        json_t *status =
            json_pack("{s:I, s:I, s:I, s:o}", "TotalCount", (json_int_t)total, "SucceededCount",
                      (json_int_t)(total - failed), "FailedCount", (json_int_t)failed,
                      "LastUpdatedTime", record_epoch(record_i64(o, "ended")));
        (void)json_object_set_new(out, "Status", status);
    }
    fsx_show_common(app, &fsx_tasks, id, o, out);
    return out;
}

static void task_reply(struct request *r, const char *id)
{
    const json_t *o = record_find(r->app, RECORD_FSX_TASK, id);
    reply_json(r, json_pack("{s:o}", "DataRepositoryTask", task_show(r->app, id, o)));
}

void fsx_task_create(struct request *r)
{
    const char *have;
    if (!shape_check(r, &task_shape) || !fsx_repeated(r, &fsx_tasks, &have)) {
        return;
    }
    if (have != NULL) {
        task_reply(r, have);
        return;
    }
    if (filesystem_ready(r) == NULL) {
        return;
    }
    const char *type = record_text(r->input, "Type");
    if (strcmp(type, "EXPORT_TO_REPOSITORY") != 0 &&
        strcmp(type, "IMPORT_METADATA_FROM_REPOSITORY") != 0) {
        (void)refuse(r, "UnsupportedOperation",
                     "This type of task is not available on one machine");
        return;
    }
    if (fsx_task_runs(r->app, record_text(r->input, "FileSystemId"))) {
        (void)refuse(r, "DataRepositoryTaskExecuting",
                     "An existing data repository task is currently executing on the file system. "
                     "Wait until the existing task has completed, then create the new task.");
        return;
    }
    AUTO_FREE char *id = fsx_id_new(&fsx_tasks);
    json_t *o = fsx_record(r, "PENDING", clock_wall_us() + r->app->set.fsx_task_us / 2);
    const struct injected_fault *f = faults_take(r, STAGE_JOB);
    if (f != NULL) {
        record_set_text(o, "inject", f->reason[0] != '\0' ? f->reason : "The task failed.");
    }
    if (record_add(r->app, RECORD_FSX_TASK, id, o, r)) {
        task_reply(r, id);
        job_clock_wake(r->app);
    }
}

void fsx_task_describe(struct request *r)
{
    fsx_describe_all(r, &fsx_tasks, task_show);
}

void fsx_task_cancel(struct request *r)
{
    const json_t *o = fsx_named(r, &fsx_tasks, "TaskId");
    const char *id = record_text(r->input, "TaskId");
    if (o == NULL) {
        return;
    }
    const char *state = record_text(o, "lifecycle");
    if (strcmp(state, "PENDING") != 0 && strcmp(state, "EXECUTING") != 0) {
        (void)refuse(r, "DataRepositoryTaskEnded", "The data repository task has already ended");
        return;
    }
    fsx_enter(r->app, &fsx_tasks, id, "CANCELING", clock_wall_us() + r->app->set.fsx_task_us / 2);
    job_clock_wake(r->app);
    r->reply.sync = true;
    reply_json(r, json_pack("{s:s, s:s}", "TaskId", id, "Lifecycle", "CANCELING"));
}
