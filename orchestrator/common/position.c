/* Collecting the faults of an input. */
#include "common/position.h"
#include <stdarg.h>

void faults_add(struct faults *f, struct position pos, const char *pointer, const char *code,
                const char *hint, const char *fmt, ...)
{
    if (f->n >= FAULTS_MAX) {
        f->dropped++;
        return;
    }
    struct fault *at = &f->at[f->n++];
    memset(at, 0, sizeof *at);
    at->pos = pos;
    (void)snprintf(at->pointer, sizeof at->pointer, "%s", pointer == NULL ? "" : pointer);
    (void)snprintf(at->code, sizeof at->code, "%s", code == NULL ? "" : code);
    (void)snprintf(at->hint, sizeof at->hint, "%s", hint == NULL ? "" : hint);
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(at->message, sizeof at->message, fmt, ap);
    va_end(ap);
}
