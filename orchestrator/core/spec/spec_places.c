/* Checks of places in S3 between stages. */
#include "spec_read.h"

static bool same_place(const char *a, const char *b)
{
    size_t n = a != NULL ? strlen(a) : 0;
    n -= n > 0 && a[n - 1] == '/'; /* a folder with and without it is one */
    return a != NULL && b != NULL && strncmp(a, b, n) == 0 &&
           (b[n] == '\0' || strcmp(b + n, "/") == 0) && strstr(a, "{stage}") == NULL;
}

static const char *checkpoint_of(const struct spec_stage *s)
{
    return s->training != NULL ? s->training->checkpoint : NULL;
}

void spec_rows_places(struct spec_reader *r, const struct spec_node *p, const struct spec_stage *s,
                      const struct spec_stage *const *before, int n)
{
    struct spec_node at = *p;
    bool looked_at = s->verify == VERIFY_MANIFEST || s->verify == VERIFY_IMG2DATASET;
    bool output = false, checkpoint = false;
    for (int i = 0; i < n; i++) {
        output |= looked_at && same_place(s->output, before[i]->output);
        checkpoint |= same_place(checkpoint_of(s), checkpoint_of(before[i]));
    }
    if (output) {
        (void)(spec_child(r, p, "output", false, &at) ||
               spec_child(r, p, "hyperparameters", false, &at));
        spec_fault(r, &at, "conflict", "add {stage} or a {matrix.X}",
                   "more than one row would write to the same place");
    }
    if (checkpoint && spec_child(r, p, "checkpoint", false, &at)) {
        spec_fault(r, &at, "conflict", "add {stage} or a {matrix.X}",
                   "more than one row would use the same checkpoints");
    }
}
