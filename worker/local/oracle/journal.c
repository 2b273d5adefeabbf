/* The journal: see journal.h. */
#include "journal.h"
#include "common/clock.h"
#include "local/app.h"
#include "local/http/dispatch.h"
#include "local/jobs/files.h"
#include "local/sagemaker/job_clock.h"
#include "local/sagemaker/warm.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define JOURNAL_LINE_MAX (8u << 20)

static bool journal_append(const struct journal *s, json_t *take, struct err *err)
{
    AUTO_FREE char *text = json_dumps(take, JSON_COMPACT);
    json_decref(take);
    ASSERT(text != NULL);
    size_t n = strlen(text);
    text[n] = '\n'; /* one write, so that a kill cannot leave half a line between others */
    ssize_t done = write(s->fd, text, n + 1);
    if (done != (ssize_t)n + 1) {
        if (done > 0) {
            (void)!ftruncate(s->fd, lseek(s->fd, 0, SEEK_END) - done);
        }
        return err_set_os(err, ERR_IO, done < 0 ? errno : ENOSPC, "cannot write the journal");
    }
    return true;
}

bool journal_write_create(struct journal *s, const struct local_job *job, uint64_t id,
                          struct err *err)
{
    return journal_append(s,
                          json_pack("{s:s, s:I, s:I, s:O, s:o}", "t", "create", "id",
                                    (json_int_t)id, "created", (json_int_t)job->created, "request",
                                    job->request, "job", job_to_json(job)),
                          err);
}

bool journal_write_job(struct journal *s, const struct local_job *job, struct err *err)
{
    return journal_append(s, json_pack("{s:s, s:o}", "t", "job", "job", job_to_json(job)), err);
}

bool journal_write_record(struct journal *s, const char *kind, const char *name, json_t *value,
                          const struct request *r, struct err *err)
{
    json_t *line = json_pack("{s:s, s:s, s:s, s:o}", "t", "record", "kind", kind, "name", name,
                             "value", value == NULL ? json_null() : json_incref(value));
    if (r != NULL) {
        json_t *by = json_pack("{s:I, s:I, s:s, s:s, s:s}", "id", (json_int_t)r->id, "arrival",
                               (json_int_t)r->arrival, "service", r->service, "operation",
                               r->operation, "name", r->name);
        (void)json_object_set_new(line, "by", by);
    }
    return journal_append(s, line, err);
}

bool journal_write_delayed(struct journal *s, const struct request *r, int64_t due_us,
                           struct err *err)
{
    return journal_append(s,
                          json_pack("{s:s, s:I, s:I, s:I, s:s, s:s, s:s#}", "t", "delayed", "id",
                                    (json_int_t)r->id, "due", (json_int_t)due_us, "arrival",
                                    (json_int_t)r->arrival, "service", r->service, "operation",
                                    r->operation, "body", buf_cstr(&r->body), r->body.n),
                          err);
}

bool journal_write_delayed_done(struct journal *s, uint64_t id, struct err *err)
{
    return journal_append(s, json_pack("{s:s, s:I}", "t", "delayed_done", "id", (json_int_t)id),
                          err);
}

bool journal_sync(const struct journal *s, struct err *err)
{
    if (fdatasync(s->fd) != 0) {
        return err_set_os(err, ERR_IO, errno, "cannot flush the journal");
    }
    return true;
}

/* Remember a creating request that was read back; takes it. */
static void create_note(struct journal *s, json_t *take)
{
    json_t **slot = &s->creates[s->creates_n++ % JOURNAL_CREATES];
    json_decref(*slot);
    *slot = take;
}

/* Requests of the last creations may have no line in the wire log: several threads write both, and
 * drover-local may be killed between the two writes. */
static void wire_repair(struct app *app)
{
    for (size_t i = 0; i < JOURNAL_CREATES; i++) {
        size_t oldest = app->state.creates_n + i; /* in order of creation */
        json_t **slot = &app->state.creates[oldest % JOURNAL_CREATES];
        const json_t *by = *slot;
        uint64_t id = (uint64_t)record_i64(by, "id");
        if (id != 0 && !wire_has(&app->wire, id)) {
            struct request *r = request_new(app, "/");
            r->id = id;
            r->arrival = record_i64(by, "arrival");
            dispatch_restore(r, record_text(by, "operation"));
            r->signed_ok = true;
            r->accepted = true;
            (void)snprintf(r->name, sizeof r->name, "%s", record_text(by, "name"));
            wire_write(&app->wire, r, false);
            request_free(r);
        }
        json_decref(*slot);
        *slot = NULL;
    }
}

static bool create_replay(struct app *app, const json_t *o, struct err *err)
{
    json_t *request = json_object_get(o, "request");
    const json_t *dynamic = json_object_get(o, "job");
    const char *name = json_string_value(json_object_get(dynamic, "name"));
    if (name == NULL || !json_is_object(request)) {
        return err_set(err, ERR_MALFORMED, "journal: a create entry without name or request");
    }
    struct local_job *job =
        job_new(name, request, json_integer_value(json_object_get(o, "created")));
    if (jobs_find(&app->jobs, name) != NULL || !job_from_json(job, dynamic, err)) {
        job_free(job);
        return err_set(err, ERR_MALFORMED, "journal: bad create entry of '%s'", name);
    }
    struct local_job *left = jobs_find(&app->jobs, job->pool.taken_from);
    if (left != NULL && left->pool.status == POOL_AVAILABLE) {
        warm_hand_over(app, left, job);
    }
    jobs_add(&app->jobs, job);
    create_note(&app->state,
                json_pack("{s:I, s:I, s:s, s:s}", "id", (json_int_t)record_i64(o, "id"), "arrival",
                          (json_int_t)job->created, "operation", "CreateTrainingJob", "name",
                          job->name));
    return true;
}

static bool line_replay(struct app *app, const json_t *o, struct err *err)
{
    const char *t = json_string_value(json_object_get(o, "t"));
    if (t == NULL) {
        return err_set(err, ERR_MALFORMED, "journal: an entry without a type");
    }
    if (strcmp(t, "create") == 0) {
        return create_replay(app, o, err);
    }
    if (strcmp(t, "job") == 0) {
        const json_t *dynamic = json_object_get(o, "job");
        const char *name = json_string_value(json_object_get(dynamic, "name"));
        struct local_job *job = name == NULL ? NULL : jobs_find(&app->jobs, name);
        if (job == NULL || !job_from_json(job, dynamic, err)) {
            return err_set(err, ERR_MALFORMED, "journal: bad entry of job '%s'",
                           name == NULL ? "" : name);
        }
        if (job_is_over(job)) {
            jobs_retire(&app->jobs, job);
        }
        return true;
    }
    if (strcmp(t, "record") == 0) {
        json_t *by = json_object_get(o, "by");
        if (by != NULL) {
            create_note(&app->state, json_incref(by));
        }
        return record_replay(&app->records, o, err);
    }
    if (strcmp(t, "delayed") == 0) {
        return job_clock_replay_delayed(app, o, err);
    }
    if (strcmp(t, "delayed_done") == 0) {
        job_clock_forget_delayed(app, (uint64_t)json_integer_value(json_object_get(o, "id")));
        return true;
    }
    return err_set(err, ERR_MALFORMED, "journal: unknown entry '%s'", t);
}

/* Read the journal; *ret_good is where the last whole line ends. */
static bool journal_read(struct app *app, const char *path, int64_t *ret_good, struct err *err)
{
    AUTO_FILE FILE *f = fopen(path, "re");
    AUTO_FREE char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    *ret_good = 0;
    if (f == NULL) {
        return errno == ENOENT || err_set_os(err, ERR_IO, errno, "cannot open '%s'", path);
    }
    while ((n = getline(&line, &cap, f)) > 0) {
        if (line[n - 1] != '\n') {
            break; /* torn by a kill: never answered, so it had no effect */
        }
        json_t *o = NULL;
        bool ok = json_parse((struct str){line, (size_t)n}, JOURNAL_LINE_MAX, &o, err) &&
                  line_replay(app, o, err);
        json_decref(o);
        if (!ok) {
            return err_wrap(err, "%s", path);
        }
        *ret_good += n;
    }
    return true;
}

/* Remove bodies that were being received when an earlier drover-local was killed. */
static void leftovers_remove(const struct app *app)
{
    char path[PATH_MAX];
    struct dirent **list = NULL;
    (void)snprintf(path, sizeof path, "%s/s3/.tmp", app->root);
    int n = scandir(path, &list, NULL, NULL);
    for (int i = 0; i < n; i++) {
        struct err err = ERR_INIT;
        bool ours =
            strncmp(list[i]->d_name, "put-", 4) == 0 || strncmp(list[i]->d_name, "join-", 5) == 0;
        if (ours &&
            files_path(path, sizeof path, &err, "%s/s3/.tmp/%s", app->root, list[i]->d_name)) {
            (void)unlink(path);
        }
        free(list[i]);
    }
    free(list);
}

bool journal_open(struct app *app, struct err *err)
{
    static const char *const folders[] = {
        "",     "/s3",    "/s3/.tmp",    "/jobs",        "/fleets",
        "/fsx", "/state", "/state/meta", "/state/marks", "/state/uploads"};
    char path[PATH_MAX];
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        (void)snprintf(path, sizeof path, "%s%s", app->root, folders[i]);
        if (!files_mkdirs(path, err)) {
            return false;
        }
    }
    leftovers_remove(app);
    if (!wire_open(&app->wire, app->root, err)) {
        return false;
    }
    int64_t good;
    (void)snprintf(path, sizeof path, "%s/state/journal.jsonl", app->root);
    if (!journal_read(app, path, &good, err)) {
        return false;
    }
    for (size_t i = 0; i < app->jobs.n; i++) { /* events tell what happens from now on */
        app->jobs.items[i]->told_n = app->jobs.items[i]->transitions_n;
    }
    wire_repair(app);
    app->state.fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (app->state.fd < 0 || ftruncate(app->state.fd, good) != 0) {
        return err_set_os(err, ERR_IO, errno, "cannot open '%s'", path);
    }
    return true;
}

void journal_close(struct journal *s)
{
    fd_closep(&s->fd);
    s->fd = -1;
}

bool journal_reset(struct journal *s, struct err *err)
{
    if (ftruncate(s->fd, 0) != 0 || fsync(s->fd) != 0) {
        return err_set_os(err, ERR_IO, errno, "cannot empty the journal");
    }
    return true;
}
