/* One look into each folder, for the names of the list. */
#include "copy_sweep.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "file_copy.h"

struct sweep_target {
    const struct copy_file *f;
    bool begun; /* it has a state */
};
struct folder { /* targets of one folder, by name */
    const struct sweep_target *at;
    size_t n;
};

static int by_place(const void *a, const void *b)
{
    const struct sweep_target *x = a;
    const struct sweep_target *y = b;
    int c = strcmp(x->f->folder, y->f->folder);
    return c != 0 ? c : strcmp(x->f->name, y->f->name);
}

static int by_name(const void *key, const void *of)
{
    return strcmp(key, ((const struct sweep_target *)of)->f->name);
}

static bool is_left(void *ctx, const char *name)
{
    const struct folder *in = ctx;
    const struct sweep_target *t = bsearch(name, in->at, in->n, sizeof *in->at, by_name);
    return t != NULL && !t->begun;
}

static bool is_for_us(void *ctx UNUSED, const char *name)
{
    return name[0] == '_'; /* receipt, states, progress, manifest */
}

static bool note_begun(struct sweep_target *targets, size_t n, struct sink *state, struct err *err)
{
    static const char prefix[] = FILE_COPY_STATE;
    struct sink_listing l = {0};
    if (!sink_list(state, &l, err)) {
        return false;
    }
    for (size_t i = 0; i < l.n; i++) {
        if (strncmp(l.objects[i].name, prefix, sizeof prefix - 1) == 0) {
            size_t number = strtoull(l.objects[i].name + sizeof prefix - 1, NULL, 10);
            if (number < n) {
                targets[number].begun = true;
            }
        }
    }
    sink_listing_done(&l);
    return true;
}

static bool sweep(const struct sweep_target *targets, size_t n, struct err *err)
{
    size_t to;
    bool ok = true;
    for (size_t from = 0; ok && from < n; from = to) {
        const char *name = targets[from].f->folder;
        struct sink *s = NULL;
        for (to = from + 1; to < n && strcmp(targets[to].f->folder, name) == 0; to++) {
        }
        struct folder in = {targets + from, to - from};
        ok =
            sink_is_s3(name) || (sink_open(name, &s, err) && sink_sweep_ours(s, is_left, &in, err));
        sink_free(s);
    }
    return ok;
}

void copy_sweep(const struct file_list *l, struct sink *state)
{
    struct err err = ERR_INIT;
    AUTO_FREE struct sweep_target *targets = xcalloc(l->n + 1, sizeof *targets);
    for (size_t i = 0; i < l->n; i++) {
        targets[i].f = &l->files[i];
    }
    bool ok = note_begun(targets, l->n, state, &err);
    if (ok && l->n > 0) {
        qsort(targets, l->n, sizeof *targets, by_place);
    }
    if (!ok || !sweep(targets, l->n, &err) || !sink_sweep_ours(state, is_for_us, NULL, &err)) {
        log_event(LOG_WARN, "temporary_files_not_removed", LF_ERR(&err));
    }
}
