/* Holds a stage's hyperparameters against the settings of the drover-worker command that gets them:
 * a job that cannot begin is refused before it is paid. */
#include "common/cleanup.h"
#include "common/secret_shape.h"
#include "common/setting_value.h"
#include "spec_read.h"
#include "spec_worker.h"
#include "worker_protocol.h"

/* Rows without a place for the value: only the worker stores it. */
#define SETTING(name, flag, kind, dflt, min, max, field, words, help)                              \
    {#name, flag, SETTING_##kind, dflt, min, max, 0, words, NULL},
#define SETTING_FIXED(name, value, why) {#name, NULL, SETTING_TEXT, value, 0, 0, 0, value, NULL},
static const struct setting download[] = {
#include "worker_download.def"
};
static const struct setting index_[] = {
#include "worker_index.def"
};
static const struct setting copy[] = {
#include "worker_copy.def"
};

static const struct {
    const struct setting *rows;
    size_t rows_n;
} commands[] = {[WORKER_DOWNLOAD] = {download, ARRAY_LEN(download)},
                [WORKER_INDEX] = {index_, ARRAY_LEN(index_)},
                [WORKER_COPY] = {copy, ARRAY_LEN(copy)}};

static void unknown(struct spec_reader *r, const struct spec_node *at, const char *name,
                    const struct spec_stage *s)
{
    const struct setting *near =
        setting_nearest(commands[s->worker].rows, commands[s->worker].rows_n, name);
    const char *verb = spec_worker_verb(s->worker);
    spec_fault(r, at, "unknown_key",
               near != NULL ? arena_printf(r->a, "did you mean '%s'?", near->name)
                            : arena_printf(r->a, "drover-worker %s --help lists them", verb),
               "drover-worker %s has no setting '%.64s'", verb, name);
}

static void wrong(struct spec_reader *r, const struct spec_node *at, const struct setting *row,
                  const char *value)
{
    AUTO_BUF struct buf fault = BUF_INIT(1024);
    if (strchr(value, '{') != NULL || setting_check(row, value, &fault)) {
        return; /* what braces stand for is known with the part */
    }
    if (secret_shape(str_of(value)) != NULL) {
        return; /* a fault already, and never repeated */
    }
    const char *said = strstr(buf_cstr(&fault), "expected ");
    struct str hint = str_trim(str_of(said != NULL ? said + strlen("expected ") : ""));
    spec_fault(r, at, "value", arena_strndup(r->a, hint.p, hint.n),
               "drover-worker does not take '%.60s' as its %s", value, row->name);
}

void spec_check_settings(struct spec_reader *r, const struct spec_node *p,
                         const struct spec_stage *s)
{
    struct spec_node map;
    if (s->worker == WORKER_NONE || !spec_child(r, p, "hyperparameters", false, &map) ||
        map.node->kind != YAML_MAP) {
        return;
    }
    for (int i = 0; i < s->hyperparameters_n; i++) {
        const char *name = s->hyperparameters[i].key;
        const struct setting *row =
            setting_find(commands[s->worker].rows, commands[s->worker].rows_n, name);
        struct spec_node at;
        if (!spec_child(r, &map, name, false, &at) || strncmp(name, "sagemaker_", 10) == 0) {
            continue; /* one that a key of the stage is passed by, or SageMaker's own */
        }
        if (row == NULL) {
            unknown(r, &at, name, s);
        } else {
            wrong(r, &at, row, s->hyperparameters[i].value);
        }
    }
}
