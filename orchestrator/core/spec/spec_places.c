/* Checks of places in S3: what two parts of a stage write, or are proved by, must not be the same,
 * nor what two stages do, which is looked at when all of them and their needs were read. */
#include "spec_read.h"

const struct read_stage *spec_stage_called(const struct read_stage *all, int n, const char *name)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(all[i].stage->name, name) == 0) {
            return &all[i];
        }
    }
    return NULL;
}

bool spec_stage_is_after(const struct read_stage *all, int n, const struct spec_stage *stage,
                         const char *from)
{
    const struct spec_stage *open[SPEC_STAGES_MAX] = {stage};
    int open_n = 1;
    for (int i = 0; i < open_n; i++) {
        for (int k = 0; k < open[i]->needs_n; k++) {
            const struct read_stage *next = spec_stage_called(all, n, open[i]->needs[k]);
            bool seen = next == NULL;
            if (strcmp(open[i]->needs[k], from) == 0) {
                return true;
            }
            for (int j = 0; j < open_n && !seen; j++) {
                seen = open[j] == next->stage;
            }
            if (!seen && open_n < SPEC_STAGES_MAX) {
                open[open_n++] = next->stage;
            }
        }
    }
    return false;
}

bool spec_part_place(struct spec_reader *r, const struct spec_node *p, const struct spec_stage *s,
                     const char *place, const char *what)
{
    const struct spec_stage any = {.fan_out = FAN_OUT_API};
    if (s->fan_out == FAN_OUT_NONE || spec_names_the_task(s, place)) {
        return true;
    }
    if (spec_names_the_task(&any, place)) {
        spec_fault(r, p, "conflict",
                   "add {part:05d}, or find files of one folder and ending: "
                   "s3://bucket/meta/*.parquet",
                   "parts whose files are called alike would %s", what);
    } else {
        spec_fault(r, p, "conflict", "add {part:05d}", "every part would %s", what);
    }
    return false;
}

struct two_stages {
    struct spec_reader *r;
    const struct read_stage *all;
    int n;
    const struct read_stage *first, *second; /* in the order of the file */
};

static bool same_place(const char *a, const char *b)
{
    size_t n = a != NULL ? strlen(a) : 0;
    n -= n > 0 && a[n - 1] == '/'; /* a folder with and without it is one */
    return a != NULL && b != NULL && strncmp(a, b, n) == 0 &&
           (b[n] == '\0' || strcmp(b + n, "/") == 0) && strstr(a, "{stage}") == NULL;
}

static bool are_rows(const struct two_stages *p)
{
    return p->first->matrix != NULL && p->second->matrix != NULL &&
           strcmp(p->first->matrix, p->second->matrix) == 0;
}

/* True when one of the two starts after the other has ended. */
static bool in_turn(const struct two_stages *p)
{
    const struct spec_stage *a = p->first->stage, *b = p->second->stage;
    return spec_stage_is_after(p->all, p->n, a, b->name) ||
           spec_stage_is_after(p->all, p->n, b, a->name);
}

/* `extends` and `matrix` give many stages one line of the file: that is one mistake. */
static void fault_pair(const struct two_stages *p, const struct spec_node *at, const char *hint,
                       const char *what)
{
    for (int i = 0; i < p->r->faults->n; i++) {
        const struct fault *f = &p->r->faults->at[i];
        if (f->pos.line == at->pos.line && f->pos.column == at->pos.column &&
            strcmp(f->code, "conflict") == 0) {
            return;
        }
    }
    if (are_rows(p)) {
        spec_fault(p->r, at, "conflict", hint, "more than one row would %s", what);
    } else {
        spec_fault(p->r, at, "conflict", hint, "stages '%.64s' and '%.64s' would %s",
                   p->first->stage->name, p->second->stage->name, what);
    }
}

static const char *checkpoint_of(const struct read_stage *s)
{
    return s->stage->training != NULL ? s->stage->training->checkpoint : NULL;
}

/* A stage may go on from the checkpoints of one that has ended. */
static void check_checkpoints(const struct two_stages *p)
{
    struct spec_node at;
    if (same_place(checkpoint_of(p->first), checkpoint_of(p->second)) && !in_turn(p) &&
        spec_child(p->r, &p->second->at, "checkpoint", false, &at)) {
        fault_pair(p, &at, are_rows(p) ? "add {stage} or a {matrix.X}" : "add {stage}",
                   "use the same checkpoints");
    }
}

static bool is_looked_at(const struct spec_stage *s)
{
    return s->verify == VERIFY_MANIFEST || s->verify == VERIFY_IMG2DATASET;
}

/* True when the stage adds shards to what an earlier one has downloaded. */
static bool adds(const struct spec_stage *s)
{
    for (int i = 0; i < s->hyperparameters_n && s->worker == WORKER_DOWNLOAD; i++) {
        if (strcmp(s->hyperparameters[i].key, "incremental_mode") == 0) {
            return strcmp(s->hyperparameters[i].value, "extend") == 0;
        }
    }
    return false;
}

static void check_outputs(const struct two_stages *p)
{
    const struct spec_stage *a = p->first->stage, *b = p->second->stage;
    struct spec_node at = p->second->at;
    struct spec_node map;
    if (!is_looked_at(a) || !is_looked_at(b) || !same_place(a->output, b->output) ||
        ((adds(a) || adds(b)) && in_turn(p))) {
        return;
    }
    if (!spec_child(p->r, &p->second->at, "output", false, &at) &&
        spec_child(p->r, &p->second->at, "hyperparameters", false, &map)) {
        at = map;
        (void)spec_child(p->r, &map, "output_folder", false, &at);
    }
    fault_pair(p, &at, are_rows(p) ? "add {stage} or a {matrix.X}" : "add {stage}",
               "write to the same place");
}

/* Of one object that exists a person may make the mark of several stages: only parts that have it
 * from one line of the file do not mean it. */
static void check_done_if(const struct two_stages *p)
{
    const struct spec_stage *a = p->first->stage, *b = p->second->stage;
    struct spec_node first, second;
    if (!same_place(a->done_if, b->done_if) ||
        !spec_child(p->r, &p->first->at, "done_if", false, &first) ||
        !spec_child(p->r, &p->second->at, "done_if", false, &second)) {
        return;
    }
    bool one_line = first.pos.line == second.pos.line && first.pos.column == second.pos.column;
    bool exists = a->done_if_kind == VERIFY_EXISTS || b->done_if_kind == VERIFY_EXISTS;
    if (!exists || (one_line && b->fan_out != FAN_OUT_NONE)) {
        fault_pair(p, &second,
                   are_rows(p) ? "add {stage} or a {matrix.X}"
                               : "the stage's own output, or done_if: {exists: KEY}",
                   "be skipped for the same output");
    }
}

void spec_places(struct spec_reader *r, const struct read_stage *all, int n, bool ordered)
{
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++) {
            const struct two_stages p = {r, all, n, &all[k], &all[i]};
            if (ordered || are_rows(&p)) {
                check_checkpoints(&p);
                check_outputs(&p);
                check_done_if(&p);
            }
        }
    }
}
