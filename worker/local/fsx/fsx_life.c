/* See fsx_life.h. */
#include "fsx_life.h"
#include "common/clock.h"
#include "fsx.h"
#include "fsx_files.h"
#include "local/app.h"
#include "local/jobs/files.h"
#include <stdio.h>

static bool is(const json_t *o, const char *lifecycle)
{
    return strcmp(record_text(o, "lifecycle"), lifecycle) == 0;
}

/* The folder of a path in a file system. */
static bool folder_of(const struct app *app, const char *fs, const char *path,
                      char out[static PATH_MAX], struct err *err)
{
    return files_path(out, PATH_MAX, err, "%s/fsx/%s/%s", app->root, fs, path);
}

void fsx_charge(struct app *app, const char *id, usec_t at)
{
    json_t *fs = record_find(app, RECORD_FILE_SYSTEM, id);
    const json_t *config = json_object_get(json_object_get(fs, "asked"), "LustreConfiguration");
    const char *type = record_text(config, "DeploymentType");
    int64_t throughput = record_i64(config, "PerUnitStorageThroughput");
    AUTO_FREE char *tier = throughput > 0 ? xasprintf("%s/%lld", type, (long long)throughput)
                                          : xstrdup(type[0] == '\0' ? "SCRATCH_1" : type);
    int64_t from = record_i64(fs, "billed_from");
    json_t *line =
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "name", id, "kind", "storage", "instance_type",
                  tier, "instances", (json_int_t)record_i64(fs, "capacity"), "from",
                  (json_int_t)from, "to", (json_int_t)MAX(at, from));
    AUTO_FREE char *key = xasprintf("%s/%lld", id, (long long)from);
    (void)!record_add(app, RECORD_CHARGE, key, line, NULL);
    record_set_i64(fs, "billed_from", at);
}

bool fsx_task_runs(const struct app *app, const char *id)
{
    const char *key;
    const json_t *o;
    json_object_foreach(app->records.all[RECORD_FSX_TASK], key, o)
    {
        if (strcmp(record_text(json_object_get(o, "asked"), "FileSystemId"), id) == 0 &&
            (is(o, "PENDING") || is(o, "EXECUTING") || is(o, "CANCELING"))) {
            return true;
        }
    }
    return false;
}

/* Associations and tasks go with their file system. */
static void filesystem_drop(struct app *app, const char *id)
{
    static const enum record_kind kinds[] = {RECORD_ASSOCIATION, RECORD_FSX_TASK};
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        const char *key;
        const json_t *o;
        void *tmp;
        json_object_foreach_safe(app->records.all[kinds[k]], tmp, key, o)
        {
            if (strcmp(record_text(json_object_get(o, "asked"), "FileSystemId"), id) == 0) {
                record_remove(app, kinds[k], key);
            }
        }
    }
    if (folder_of(app, id, "", path, &err)) {
        files_remove_tree(path);
    }
    record_remove(app, RECORD_FILE_SYSTEM, id);
}

static void filesystem_due(struct app *app, const char *id, json_t *o)
{
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    if (is(o, "DELETING")) {
        filesystem_drop(app, id);
    } else if (record_text(o, "inject")[0] != '\0') {
        AUTO_FREE char *reason = xstrdup(record_text(o, "inject"));
        record_set_text(o, "reason", reason);
        fsx_enter(app, &fsx_filesystems, id, "FAILED", 0);
    } else if (folder_of(app, id, "", path, &err) && files_mkdirs(path, &err)) {
        fsx_enter(app, &fsx_filesystems, id, "AVAILABLE", 0);
    }
}

/* The link of an association; folder has room for its path. */
static bool link_of(const struct app *app, const json_t *o, char folder[static PATH_MAX],
                    struct fsx_link *ret, struct err *err)
{
    const json_t *asked = json_object_get(o, "asked");
    const char *path = record_text(asked, "FileSystemPath");
    *ret = (struct fsx_link){app->root, folder, record_text(asked, "DataRepositoryPath")};
    return folder_of(app, record_text(asked, "FileSystemId"), path + strspn(path, "/"), folder,
                     err);
}

/* FSx makes the task that imports once the association is there, and it runs on after that. */
static void import_begin(struct app *app, const json_t *association)
{
    const json_t *of = json_object_get(association, "asked");
    const char *path = record_text(of, "FileSystemPath");
    const char *inject = record_text(association, "inject");
    json_t *asked =
        json_pack("{s:s, s:s, s:{s:b}}", "FileSystemId", record_text(of, "FileSystemId"), "Type",
                  "IMPORT_METADATA_FROM_REPOSITORY", "Report", "Enabled", 0);
    path += strspn(path, "/");
    if (path[0] != '\0') {
        (void)json_object_set_new(asked, "Paths", json_pack("[s]", path));
    }
    usec_t now = clock_wall_us();
    json_t *o =
        json_pack("{s:o, s:[], s:s, s:I, s:I, s:s, s:s}", "asked", asked, "tags", "lifecycle",
                  "PENDING", "created", (json_int_t)now, "due",
                  (json_int_t)(now + app->set.fsx_task_us / 2), "reason", "", "inject", inject);
    AUTO_FREE char *id = fsx_id_new(&fsx_tasks);
    (void)!record_add(app, RECORD_FSX_TASK, id, o, NULL);
}

static void association_due(struct app *app, const char *id, json_t *o)
{
    char folder[PATH_MAX];
    struct fsx_link l;
    struct err err = ERR_INIT;
    const json_t *asked = json_object_get(o, "asked");
    bool imports = json_is_true(json_object_get(asked, "BatchImportMetaDataOnCreate"));
    bool ok = link_of(app, o, folder, &l, &err);
    if (is(o, "DELETING")) {
        if (ok && json_is_true(json_object_get(o, "drop_data"))) {
            files_remove_tree(folder);
        }
        record_remove(app, RECORD_ASSOCIATION, id);
        return;
    }
    ok = ok && files_mkdirs(folder, &err) && (!imports || fsx_reachable(&l, &err));
    record_set_text(o, "reason", ok ? "" : err.message);
    if (ok && imports) {
        import_begin(app, o);
    }
    fsx_enter(app, &fsx_associations, id, ok ? "AVAILABLE" : "MISCONFIGURED", 0);
}

/* Import or export what one association has of the task's paths. */
static bool task_part(const struct app *app, const json_t *task, const json_t *association,
                      struct fsx_counts *sum, struct err *err)
{
    const json_t *asked = json_object_get(task, "asked");
    const json_t *paths = json_object_get(asked, "Paths");
    const char *base = record_text(json_object_get(association, "asked"), "FileSystemPath");
    bool export = strcmp(record_text(asked, "Type"), "EXPORT_TO_REPOSITORY") == 0;
    char folder[PATH_MAX];
    struct fsx_link l;
    size_t i = 0;
    base += strspn(base, "/");
    if (!link_of(app, association, folder, &l, err)) {
        return false;
    }
    do { /* no path at all: everything */
        struct fsx_counts n = {0};
        const char *path = json_string_value(json_array_get(paths, i));
        path = path == NULL ? "" : path + strspn(path, "/");
        size_t base_n = strlen(base);
        bool inside = strncmp(path, base, base_n) == 0;
        path = inside ? path + base_n + (path[base_n] == '/' ? 1 : 0) : "";
        if ((inside || json_array_size(paths) == 0) &&
            !(export ? fsx_export(&l, path, &n, err) : fsx_import(&l, &n, err))) {
            return false;
        }
        sum->total += n.total;
        sum->failed += n.failed;
    } while (++i < json_array_size(paths));
    return true;
}

static void task_run(struct app *app, json_t *o, struct fsx_counts *sum, struct err *err)
{
    const char *fs = record_text(json_object_get(o, "asked"), "FileSystemId");
    const char *id;
    const json_t *a;
    json_object_foreach(app->records.all[RECORD_ASSOCIATION], id, a)
    {
        if (is(a, "AVAILABLE") &&
            strcmp(record_text(json_object_get(a, "asked"), "FileSystemId"), fs) == 0 &&
            !task_part(app, o, a, sum, err)) {
            return;
        }
    }
}

static void task_due(struct app *app, const char *id, json_t *o, usec_t now)
{
    struct fsx_counts sum = {0};
    struct err err = ERR_INIT;
    if (is(o, "PENDING")) {
        record_set_i64(o, "started", now);
        fsx_enter(app, &fsx_tasks, id, "EXECUTING", now + app->set.fsx_task_us / 2);
        return;
    }
    record_set_i64(o, "ended", now);
    if (is(o, "CANCELING")) {
        fsx_enter(app, &fsx_tasks, id, "CANCELED", 0);
        return;
    }
    if (record_text(o, "inject")[0] != '\0') {
        (void)err_set(&err, ERR_IO, "%s", record_text(o, "inject"));
    } else {
        task_run(app, o, &sum, &err);
    }
    record_set_i64(o, "total", sum.total);
    record_set_i64(o, "failed", sum.failed);
    record_set_text(o, "reason", err.code != ERR_NONE ? err.message : "");
    fsx_enter(app, &fsx_tasks, id, err.code != ERR_NONE || sum.failed > 0 ? "FAILED" : "SUCCEEDED",
              0);
}

usec_t fsx_tick(struct app *app, usec_t now)
{
    static const enum record_kind kinds[] = {RECORD_FILE_SYSTEM, RECORD_ASSOCIATION,
                                             RECORD_FSX_TASK};
    usec_t next = USEC_NEVER;
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        size_t n = json_object_size(app->records.all[kinds[k]]);
        AUTO_FREE char **due = xcalloc(n + 1, sizeof *due); /* a step may remove others */
        size_t due_n = 0;
        const char *id;
        json_t *o;
        json_object_foreach(app->records.all[kinds[k]], id, o)
        {
            int64_t at = record_i64(o, "due");
            if (at != 0 && at <= now) {
                due[due_n++] = xstrdup(id);
            } else if (at != 0) {
                next = MIN(next, at);
            }
        }
        for (size_t i = 0; i < due_n; i++) {
            o = record_find(app, kinds[k], due[i]);
            if (kinds[k] == RECORD_FILE_SYSTEM) {
                filesystem_due(app, due[i], o);
            } else if (kinds[k] == RECORD_ASSOCIATION) {
                association_due(app, due[i], o);
            } else {
                task_due(app, due[i], o, now);
                next = MIN(next, now);
            }
            free(due[i]);
        }
    }
    return next;
}

static void import_changed(const struct app *app, const char *fs)
{
    const char *id;
    const json_t *a;
    json_object_foreach(app->records.all[RECORD_ASSOCIATION], id, a)
    {
        const json_t *asked = json_object_get(a, "asked");
        const json_t *policy = json_object_get(json_object_get(asked, "S3"), "AutoImportPolicy");
        char folder[PATH_MAX];
        struct fsx_link l;
        struct fsx_counts n;
        struct err err = ERR_INIT;
        if (is(a, "AVAILABLE") && strcmp(record_text(asked, "FileSystemId"), fs) == 0 &&
            json_array_size(json_object_get(policy, "Events")) > 0 &&
            link_of(app, a, folder, &l, &err)) {
            (void)!fsx_import(&l, &n, &err);
        }
    }
}

bool fsx_mount(struct app *app, const json_t *source, char out[static PATH_MAX], struct err *err)
{
    const char *id = record_text(source, "FileSystemId");
    const char *path = record_text(source, "DirectoryPath");
    const json_t *fs = record_find(app, RECORD_FILE_SYSTEM, id);
    const char *mount = record_text(fs, "mount");
    size_t n = strlen(mount);
    if (fs == NULL || !is(fs, "AVAILABLE")) {
        return err_set(err, ERR_NOT_FOUND,
                       "ClientError: Unable to mount file system: %s. The file system does not "
                       "exist or is not available.",
                       id);
    }
    bool below = path[0] == '/' && strncmp(path + 1, mount, n) == 0 &&
                 (path[n + 1] == '/' || path[n + 1] == '\0') && strstr(path, "..") == NULL;
    import_changed(app, id);
    if (!below || !folder_of(app, id, path + n + 1 + (path[n + 1] == '/'), out, err) ||
        access(out, F_OK) != 0) {
        return err_set(err, ERR_NOT_FOUND,
                       "ClientError: Unable to mount file system: %s directory path: %s. No such "
                       "file or directory: %s. Please ensure directory path is correct.",
                       id, path, path);
    }
    return true;
}
