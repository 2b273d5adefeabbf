/* Trains a linear model on the lines of an index: caption in, size of the picture out. It prints
 * "step=N loss=X images_per_second=Y", keeps a checkpoint in /opt/ml/checkpoints, and leaves
 * model.json in /opt/ml/model. What was stopped or killed continues from the checkpoint and ends
 * with the same bits. */
#include "train.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/json.h"
#include "common/log.h"
#include "common/rng.h"
#include "group.h"
#include "job/job_main.h"
#include "job/sagemaker_container.h"
#include "job/settings.h"
#include "worker_protocol.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>

#define ROWS_MAX        1000000
#define LINE_BYTES_MAX  ((size_t)1 << 20)
#define CHECKPOINT_NAME "/opt/ml/checkpoints/model.json"
#define MODEL_NAME      "/opt/ml/model/model.json"

struct train_options {
    char *input; /* file, folder or channel:NAME */
    char *learning_rate;
    int64_t steps, batch, rows, seed, log_steps, checkpoint_steps, step_ms, port, wait_s, stop_s;
    double rate;
};

#define AT(field) offsetof(struct train_options, field)
static const struct setting settings[] = {
    {"input", NULL, SETTING_TEXT, "", 0, 0, AT(input), NULL,
     "index.jsonl, its folder, or channel:NAME; default: the only channel"},
    {"steps", NULL, SETTING_INT, "1000", 1, INT64_C(1000000000), AT(steps), NULL,
     "steps to train for"},
    {"batch", NULL, SETTING_INT, "64", GROUP_CHUNKS, 65536, AT(batch), NULL,
     "rows of one step, over all hosts"},
    {"learning_rate", NULL, SETTING_TEXT, "0.1", 0, 0, AT(learning_rate), NULL,
     "of gradient descent"},
    {"rows", NULL, SETTING_INT, "100000", 1, ROWS_MAX, AT(rows), NULL,
     "lines of the index to use at most"},
    {"seed", NULL, SETTING_INT, "1", 0, INT32_MAX, AT(seed), NULL, "of the order of the rows"},
    {"log_steps", NULL, SETTING_INT, "100", 1, INT64_C(1000000000), AT(log_steps), NULL,
     "steps between two lines"},
    {"checkpoint_steps", NULL, SETTING_INT, "100", 1, INT64_C(1000000000), AT(checkpoint_steps),
     NULL, "steps between two checkpoints"},
    {"step_ms", NULL, SETTING_INT, "0", 0, 60000, AT(step_ms), NULL,
     "pause after each step, so that a small run lasts"},
    {"port", NULL, SETTING_INT, "7777", 1, 65535, AT(port), NULL, "where the first host listens"},
    {"wait_seconds", NULL, SETTING_INT, "120", 1, 3600, AT(wait_s), NULL,
     "for another host, before the job has failed"},
    {"stop_seconds", NULL, SETTING_INT, "90", 2, 115, AT(stop_s), NULL,
     "from SIGTERM to the end, at most"},
};

struct train {
    struct train_options o;
    struct job_main life;
    struct hosts_group *group;
    struct model_row *rows; /* rows[rows_n], shuffled */
    size_t rows_n, rows_cap;
    char run[65]; /* digest of rows and settings */
    struct linear_model model;
    _Atomic int stop;
};

/* "path" for a caption without one: an index can be made without captions. */
static bool add_line(struct train *t, struct str line, struct sha256 *sum, struct err *err)
{
    AUTO_JSON json_t *o = NULL;
    const char *caption;
    int64_t size;
    if (!json_parse(line, LINE_BYTES_MAX, &o, err) ||
        !json_get_i64(o, "size", 0, INT64_MAX / 2, JSON_ABSENT, &size, err) ||
        !json_get_str(o, "caption", "", &caption, err)) {
        return err_wrap(err, "line %zu of the index", t->rows_n + 1);
    }
    ARRAY_ROOM(t->rows, t->rows_n, t->rows_cap);
    model_row_make(str_of(caption), size, &t->rows[t->rows_n++]);
    sha256_add(sum, line.p, line.n);
    return true;
}

static void shuffle(struct train *t)
{
    struct rng rng;
    rng_seed(&rng, (uint64_t)t->o.seed);
    for (size_t i = t->rows_n; i > 1; i--) {
        size_t k = (size_t)rng_below(&rng, i);
        struct model_row row = t->rows[i - 1];
        t->rows[i - 1] = t->rows[k];
        t->rows[k] = row;
    }
}

static bool find_index(const struct train *t, char **ret, struct err *err)
{
    const char *in = t->o.input;
    struct stat st;
    if (in[0] == '\0' || strncmp(in, "channel:", 8) == 0) {
        if (!sagemaker_container_channel(in[0] == '\0' ? NULL : in + 8, ret, err)) {
            return false;
        }
    } else {
        *ret = sagemaker_container_path(in);
    }
    if (stat(*ret, &st) == 0 && S_ISDIR(st.st_mode)) {
        char *file = xasprintf("%s/index.jsonl", *ret);
        free(*ret);
        *ret = file;
    }
    return true;
}

static bool read_rows(struct train *t, struct err *err)
{
    AUTO_FREE char *path = NULL;
    AUTO_FREE char *line = NULL;
    struct sha256 sum;
    uint8_t digest[32];
    size_t cap = 0;
    ssize_t n;
    bool ok = true;
    if (!find_index(t, &path, err)) {
        return false;
    }
    AUTO_FILE FILE *f = fopen(path, "re");
    if (f == NULL) {
        return err_set_os(err, ERR_INVALID, errno, "cannot open '%s'", path);
    }
    sha256_init(&sum);
    while (ok && (int64_t)t->rows_n < t->o.rows && (n = getline(&line, &cap, f)) > 0) {
        ok = add_line(t, (struct str){line, (size_t)n}, &sum, err);
    }
    AUTO_FREE char *how = xasprintf("%" PRId64 " %a %" PRId64, t->o.batch, t->o.rate, t->o.seed);
    sha256_add(&sum, how, strlen(how));
    sha256_end(&sum, digest);
    str_hex(digest, sizeof digest, t->run);
    shuffle(t);
    return ok && (t->rows_n > 0 || err_set(err, ERR_INVALID, "'%s' has no line", path));
}

/* The first host's checkpoint, when it is of this run. */
static bool load_checkpoint(struct train *t, struct err *err)
{
    AUTO_FREE char *path = sagemaker_container_path(CHECKPOINT_NAME);
    struct linear_model m;
    struct err why = ERR_INIT;
    char run[65];
    if (!model_load(path, &m, run, &why)) {
        if (why.code == ERR_IO) {
            *err = why;
            return false;
        }
        if (why.code != ERR_NOT_FOUND) {
            log_event(LOG_WARN, "checkpoint_unusable", LF_ERR(&why));
        }
        return true;
    }
    if (strcmp(run, t->run) != 0) {
        log_event(LOG_WARN, "checkpoint_of_another_run", LF_S("file", path));
        return true;
    }
    t->model = m;
    log_event(LOG_INFO, "resumed", LF_I("step", m.step));
    return true;
}

/* Only where SageMaker mounts the folder: a job without checkpoints has none. */
static bool save_checkpoint(const struct train *t, struct err *err)
{
    AUTO_FREE char *folder = sagemaker_container_path("/opt/ml/checkpoints");
    AUTO_FREE char *path = sagemaker_container_path(CHECKPOINT_NAME);
    return group_rank(t->group) != 0 || access(folder, W_OK) != 0 ||
           model_save(path, &t->model, t->run, err);
}

static bool save_model(const struct train *t, struct err *err)
{
    AUTO_FREE char *folder = sagemaker_container_path("/opt/ml/model");
    AUTO_FREE char *path = sagemaker_container_path(MODEL_NAME);
    if (group_rank(t->group) != 0) {
        return true;
    }
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        return err_set_os(err, ERR_IO, errno, "cannot make '%s'", folder);
    }
    return model_save(path, &t->model, t->run, err);
}

/* The pieces of the batch that this host computes. Rows are taken in order, around and around. */
static void compute(const struct train *t, struct model_gradient chunks[static GROUP_CHUNKS])
{
    for (int c = 0; c < GROUP_CHUNKS; c++) {
        chunks[c] = (struct model_gradient){.loss = 0};
        if (!group_computes(t->group, c)) {
            continue;
        }
        int64_t to = t->o.batch * (c + 1) / GROUP_CHUNKS;
        for (int64_t i = t->o.batch * c / GROUP_CHUNKS; i < to; i++) {
            size_t k = (size_t)(t->model.step % (int64_t)t->rows_n * t->o.batch + i) % t->rows_n;
            model_gradient_add(&t->model, &t->rows[k], &chunks[c]);
        }
    }
}

static void print_step(const struct train *t, double loss, int64_t since_us, int64_t steps)
{
    double seconds = (double)(clock_mono_us() - since_us) / (double)USEC_PER_SEC;
    if (group_rank(t->group) == 0) {
        (void)printf("step=%" PRId64 " loss=%.17g images_per_second=%.1f hosts=%d\n", t->model.step,
                     loss, (double)(steps * t->o.batch) / (seconds > 0 ? seconds : 1e-6),
                     group_hosts(t->group));
        (void)fflush(stdout);
    }
}

static enum job_main_end loop(struct train *t, struct err *err)
{
    AUTO_FREE struct model_gradient *chunks = xcalloc(GROUP_CHUNKS, sizeof *chunks);
    struct model_gradient sum;
    int64_t since_us = clock_mono_us();
    int64_t since = t->model.step;
    while (t->model.step < t->o.steps) {
        bool stop = t->stop != 0;
        compute(t, chunks);
        if (!group_sum(t->group, chunks, &stop, &sum, err)) {
            return JOB_MAIN_FAILED;
        }
        model_step(&t->model, &sum, t->o.batch, t->o.rate);
        int64_t step = t->model.step;
        if (step % t->o.log_steps == 0 || step == t->o.steps) {
            print_step(t, sum.loss / (double)t->o.batch, since_us, step - since);
        }
        if ((stop || step % t->o.checkpoint_steps == 0) && !save_checkpoint(t, err)) {
            return JOB_MAIN_FAILED;
        }
        if (stop && step < t->o.steps) {
            return JOB_MAIN_STOPPED;
        }
        if (t->o.step_ms > 0) {
            (void)poll(NULL, 0, (int)t->o.step_ms);
        }
    }
    return save_checkpoint(t, err) && save_model(t, err) ? JOB_MAIN_DONE : JOB_MAIN_FAILED;
}

static enum job_main_end run(void *ctx, struct err *err)
{
    struct train *t = ctx;
    if (!read_rows(t, err) ||
        !group_open((int)t->o.port, t->o.wait_s * USEC_PER_SEC, &t->stop, &t->group, err) ||
        (group_rank(t->group) == 0 && !load_checkpoint(t, err))) {
        return JOB_MAIN_FAILED;
    }
    job_main_drains(&t->life);
    if (!group_begin(t->group, t->run, &t->model, err)) {
        return t->stop != 0 ? JOB_MAIN_STOPPED : JOB_MAIN_FAILED;
    }
    return loop(t, err);
}

static void on_tick(void *ctx, int64_t asked_us)
{
    struct train *t = ctx;
    t->stop = asked_us >= 0 ? 1 : t->stop;
}

static bool load_options(const json_t *hyperparameters, int argc, char *const *argv, void *options,
                         struct buf *faults)
{
    struct train_options o = {0};
    int64_t millionth = 0;
    bool ok =
        settings_load(settings, ARRAY_LEN(settings), &o, hyperparameters, argc, argv, NULL, faults);
    if (ok && !parse_decimal(str_of(o.learning_rate), 6, 1, INT64_C(100000000), &millionth, NULL)) {
        buf_addf(faults, "learning_rate '%.60s': expected a number above 0\n", o.learning_rate);
    }
    o.rate = (double)millionth / 1e6;
    if (!ok || faults->n > 0) {
        settings_done(settings, ARRAY_LEN(settings), &o);
        return false;
    }
    memcpy(options, &o, sizeof o);
    return true;
}

void train_help(struct buf *out)
{
    settings_help(settings, ARRAY_LEN(settings), out);
}

int train_main(int argc, char *const *argv)
{
    struct train *t = xcalloc(1, sizeof *t);
    job_main_begin();
    if (!job_main_settings(load_options, argc, argv, &t->o)) {
        free(t);
        return WP_EXIT_USAGE;
    }
    t->life = (struct job_main){.failed_event = "training_failed",
                                .stopped = "SIGTERM: the next run goes on from the checkpoint",
                                .stop_us = t->o.stop_s * USEC_PER_SEC,
                                .work = run,
                                .tick = on_tick,
                                .ctx = t};
    int rc = job_main_run(&t->life);
    group_free(t->group);
    free(t->rows);
    settings_done(settings, ARRAY_LEN(settings), &t->o);
    free(t);
    return rc;
}
