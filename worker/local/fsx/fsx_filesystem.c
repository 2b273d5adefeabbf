/* CreateFileSystem, DescribeFileSystems, UpdateFileSystem, DeleteFileSystem: see fsx.h. */
#include "common/clock.h"
#include "common/hash.h"
#include "fsx.h"
#include "fsx_life.h"
#include "local/app.h"
#include "local/sagemaker/job_clock.h"
#include "local/sagemaker/shape.h"
#include <stdio.h>

static const struct shape_field lustre_fields[] = {
    {"DeploymentType", SHAPE_TEXT, false, 0, 32, "SCRATCH_1 SCRATCH_2 PERSISTENT_1 PERSISTENT_2",
     NULL, NULL},
    {"PerUnitStorageThroughput", SHAPE_INT, false, 12, 1000, NULL, NULL, NULL},
    {"DataCompressionType", SHAPE_TEXT, false, 0, 8, "NONE LZ4", NULL, NULL},
    {"DriveCacheType", SHAPE_TEXT, false, 0, 8, "NONE READ", NULL, NULL},
    {"AutomaticBackupRetentionDays", SHAPE_INT, false, 0, 90, NULL, NULL, NULL},
};
static const struct request_shape lustre = SHAPE(lustre_fields);
static const struct shape_field create_fields[] = {
    {"ClientRequestToken", SHAPE_TEXT, false, 1, 63, NULL, "[A-Za-z0-9_.-]{0,63}", NULL},
    {"FileSystemType", SHAPE_TEXT, true, 0, 16, "WINDOWS LUSTRE ONTAP OPENZFS", NULL, NULL},
    {"StorageCapacity", SHAPE_INT, false, 0, 2147483647, NULL, NULL, NULL},
    {"StorageType", SHAPE_TEXT, false, 0, 24, "SSD HDD INTELLIGENT_TIERING", NULL, NULL},
    {"SubnetIds", SHAPE_TEXTS, true, 0, 50, NULL, "subnet-[0-9a-f]{8,}", NULL},
    {"SecurityGroupIds", SHAPE_TEXTS, false, 0, 50, NULL, "sg-[0-9a-f]{8,}", NULL},
    {"FileSystemTypeVersion", SHAPE_TEXT, false, 1, 20, NULL, "[0-9](\\.[0-9]*)*", NULL},
    {"KmsKeyId", SHAPE_TEXT, false, 1, 2048, NULL, NULL, NULL},
    {"LustreConfiguration", SHAPE_PART, false, 0, 0, NULL, NULL, &lustre},
    SHAPE_TAGS,
};
static const struct request_shape create_shape = SHAPE(create_fields);

static bool refuse(struct request *r, const char *code, const char *text)
{
    reply_error(r, 400, code, "%s", text);
    return false;
}

static bool throughput_ok(const char *deployment, bool hdd, int64_t given)
{
    static const struct {
        const char *deployment;
        bool hdd;
        int64_t allowed[5];
    } rows[] = {{"PERSISTENT_1", false, {50, 100, 200}},
                {"PERSISTENT_1", true, {12, 40}},
                {"PERSISTENT_2", false, {125, 250, 500, 1000}}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (size_t k = 0; k < ARRAY_LEN(rows[i].allowed); k++) {
            if (strcmp(rows[i].deployment, deployment) == 0 && rows[i].hdd == hdd &&
                rows[i].allowed[k] == given && given != 0) {
                return true;
            }
        }
    }
    return false;
}

static bool capacity_ok(const char *deployment, bool hdd, int64_t throughput, int64_t gib)
{
    int64_t step = strcmp(deployment, "SCRATCH_1") == 0 ? 3600 : 2400;
    if (hdd) {
        step = throughput == 12 ? 6000 : 1800;
        return gib > 0 && gib % step == 0;
    }
    return gib == 1200 || gib == 2400 || (gib > 0 && gib % step == 0);
}

static const char *deployment_of(const json_t *asked)
{
    const char *d = record_text(json_object_get(asked, "LustreConfiguration"), "DeploymentType");
    return d[0] == '\0' ? "SCRATCH_1" : d;
}

/* Rules between fields. False: answered. */
static bool create_ok(struct request *r)
{
    const json_t *in = r->input;
    const json_t *config = json_object_get(in, "LustreConfiguration");
    const char *deployment = deployment_of(in);
    bool persistent = strncmp(deployment, "PERSISTENT", 10) == 0;
    bool hdd = strcmp(record_text(in, "StorageType"), "HDD") == 0;
    int64_t throughput = record_i64(config, "PerUnitStorageThroughput");
    if (strcmp(record_text(in, "FileSystemType"), "LUSTRE") != 0) {
        return refuse(r, "BadRequest", "Only FileSystemType LUSTRE is available on one machine");
    }
    if (json_object_get(config, "ImportPath") != NULL ||
        strcmp(record_text(in, "StorageType"), "INTELLIGENT_TIERING") == 0) {
        return refuse(r, "BadRequest",
                      "ImportPath and INTELLIGENT_TIERING are not available on one machine");
    }
    if (json_array_size(json_object_get(in, "SubnetIds")) != 1) {
        return refuse(r, "InvalidNetworkSettings",
                      "Exactly one subnet ID is required for a Lustre file system");
    }
    if (hdd && strcmp(deployment, "PERSISTENT_1") != 0) {
        return refuse(r, "BadRequest", "StorageType HDD is supported for PERSISTENT_1 only");
    }
    if (persistent ? !throughput_ok(deployment, hdd, throughput) : throughput != 0) {
        return refuse(r, "InvalidPerUnitStorageThroughput",
                      "PerUnitStorageThroughput is not valid for the deployment type");
    }
    if (!capacity_ok(deployment, hdd, throughput, record_i64(in, "StorageCapacity"))) {
        return refuse(
            r, "BadRequest",
            "The file system cannot be created because the storage capacity is not valid: "
            "1200, 2400 and increments of 2400 GiB (3600 of SCRATCH_1)");
    }
    return true;
}

static json_t *show(const struct app *app, const char *id, const json_t *o)
{
    const json_t *asked = json_object_get(o, "asked");
    static const char *const echoed[] = {"FileSystemType", "SubnetIds", "KmsKeyId"};
    json_t *config = json_copy(json_object_get(asked, "LustreConfiguration"));
    AUTO_FREE char *dns = xasprintf("%s.fsx.%s.amazonaws.com", id, app->set.region);
    json_t *out = json_pack(
        "{s:s, s:I, s:s, s:s, s:[s], s:s}", "OwnerId", app->set.account, "StorageCapacity",
        (json_int_t)record_i64(o, "capacity"), "VpcId", "vpc-0123456789abcdef0", "DNSName", dns,
        "NetworkInterfaceIds", "eni-0123456789abcdef0", "StorageType",
        json_object_get(asked, "StorageType") != NULL ? record_text(asked, "StorageType") : "SSD");
    config = config != NULL ? config : json_object();
    for (size_t i = 0; i < ARRAY_LEN(echoed); i++) {
        json_t *v = json_object_get(asked, echoed[i]);
        if (v != NULL) {
            (void)json_object_set(out, echoed[i], v);
        }
    }
    record_set_text(out, "FileSystemTypeVersion",
                    json_object_get(asked, "FileSystemTypeVersion") != NULL
                        ? record_text(asked, "FileSystemTypeVersion")
                        : "2.10");
    record_set_text(config, "DeploymentType", deployment_of(asked));
    record_set_text(config, "MountName", record_text(o, "mount"));
    (void)json_object_set_new(out, "LustreConfiguration", config);
    fsx_show_common(app, &fsx_filesystems, id, o, out);
    return out;
}

static void reply_one(struct request *r, const char *id)
{
    const json_t *o = record_find(r->app, RECORD_FILE_SYSTEM, id);
    reply_json(r, json_pack("{s:o}", "FileSystem", show(r->app, id, o)));
}

void fsx_create(struct request *r)
{
    const char *have;
    if (!shape_check(r, &create_shape) || !create_ok(r) ||
        !fsx_repeated(r, &fsx_filesystems, &have)) {
        return;
    }
    if (have != NULL) {
        reply_one(r, have);
        return;
    }
    const struct injected_fault *check = faults_take(r, STAGE_CHECK);
    if (check != NULL && check->kind == FAULT_QUOTA_REFUSE) {
        reply_error(r, 400, "ServiceLimitExceeded",
                    "The account-level limit for Amazon FSx file systems was exceeded");
        return;
    }
    AUTO_FREE char *id = fsx_id_new(&fsx_filesystems);
    char mount[12];
    usec_t due = clock_wall_us() + r->app->set.fsx_create_us;
    (void)snprintf(mount, sizeof mount, "%08x", hash_crc32(id, strlen(id)));
    if (strcmp(deployment_of(r->input), "SCRATCH_1") == 0) {
        (void)snprintf(mount, sizeof mount, "fsx");
    }
    json_t *o = fsx_record(r, "CREATING", due);
    const struct injected_fault *f = faults_take(r, STAGE_JOB);
    if (f != NULL) {
        record_set_text(o, "inject",
                        f->reason[0] != '\0' ? f->reason : "The file system cannot be created.");
    }
    record_set_text(o, "mount", mount);
    record_set_i64(o, "capacity", record_i64(r->input, "StorageCapacity"));
    record_set_i64(o, "billed_from", record_i64(o, "created"));
    if (record_add(r->app, RECORD_FILE_SYSTEM, id, o, r)) {
        reply_one(r, id);
        job_clock_wake(r->app);
    }
}

void fsx_describe(struct request *r)
{
    fsx_describe_all(r, &fsx_filesystems, show);
}

/* Only the capacity can change here, and it only grows. */
void fsx_update(struct request *r)
{
    json_t *o = fsx_named(r, &fsx_filesystems, "FileSystemId");
    int64_t wanted = record_i64(r->input, "StorageCapacity");
    if (o == NULL) {
        return;
    }
    const char *id = record_text(r->input, "FileSystemId");
    const json_t *asked = json_object_get(o, "asked");
    int64_t throughput =
        record_i64(json_object_get(asked, "LustreConfiguration"), "PerUnitStorageThroughput");
    bool hdd = strcmp(record_text(asked, "StorageType"), "HDD") == 0;
    if (strcmp(record_text(o, "lifecycle"), "AVAILABLE") != 0) {
        (void)refuse(r, "BadRequest", "The file system is not in the AVAILABLE state");
        return;
    }
    if (json_object_get(r->input, "StorageCapacity") != NULL) {
        if (strncmp(deployment_of(asked), "SCRATCH_1", 9) == 0 ||
            wanted <= record_i64(o, "capacity") ||
            !capacity_ok(deployment_of(asked), hdd, throughput, wanted)) {
            (void)refuse(r, "BadRequest",
                         "The storage capacity must grow by a legal step of the deployment type");
            return;
        }
        fsx_charge(r->app, id, clock_wall_us());
        record_set_i64(o, "capacity", wanted);
        record_save(r->app, RECORD_FILE_SYSTEM, id);
    }
    r->reply.sync = true;
    reply_one(r, id);
}

void fsx_delete(struct request *r)
{
    const json_t *o = fsx_named(r, &fsx_filesystems, "FileSystemId");
    const char *id = record_text(r->input, "FileSystemId");
    usec_t now = clock_wall_us();
    if (o == NULL) {
        return;
    }
    if (strcmp(record_text(o, "lifecycle"), "CREATING") == 0 || fsx_task_runs(r->app, id)) {
        (void)refuse(r, "BadRequest",
                     "The file system cannot be deleted while it is being created or a data "
                     "repository task runs");
        return;
    }
    if (strcmp(record_text(o, "lifecycle"), "AVAILABLE") == 0) {
        fsx_charge(r->app, id, now);
    }
    if (strcmp(record_text(o, "lifecycle"), "DELETING") != 0) {
        fsx_enter(r->app, &fsx_filesystems, id, "DELETING", now + r->app->set.fsx_delete_us);
        job_clock_wake(r->app);
    }
    r->reply.sync = true;
    reply_json(r, json_pack("{s:s, s:s}", "FileSystemId", id, "Lifecycle", "DELETING"));
}
