/* The journal: see journal.h. */
#include "journal.h"
#include "common/clock.h"
#include "local/app.h"
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

/* Requests of the last jobs may have no line in the wire log: several threads write both, and
 * drover-local may be killed between the two writes. */
static void wire_repair(struct app *app)
{
    const struct journal *s = &app->state;
    size_t first = s->creates_n > JOURNAL_CREATES ? s->creates_n - JOURNAL_CREATES : 0;
    for (size_t i = first; i < s->creates_n; i++) {
        uint64_t id = s->creates[i % JOURNAL_CREATES].id;
        if (id == 0 || wire_has(&app->wire, id)) {
            continue;
        }
        const struct local_job *job = app->jobs.items[s->creates[i % JOURNAL_CREATES].seq];
        struct request *r = request_new(app, "/");
        r->id = id;
        r->arrival = job->created;
        r->service = "sagemaker";
        r->operation = "CreateTrainingJob";
        r->signed_ok = true;
        r->accepted = true;
        (void)snprintf(r->name, sizeof r->name, "%s", job->name);
        wire_write(&app->wire, r, false);
        request_free(r);
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
    struct journal *st = &app->state;
    st->creates[st->creates_n % JOURNAL_CREATES].id =
        (uint64_t)json_integer_value(json_object_get(o, "id"));
    st->creates[st->creates_n++ % JOURNAL_CREATES].seq = job->seq;
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
        "", "/s3", "/s3/.tmp", "/jobs", "/state", "/state/meta", "/state/marks", "/state/uploads"};
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
