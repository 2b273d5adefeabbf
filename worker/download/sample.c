/* Life and death of a sample. */
#include "sample.h"
#include <stdarg.h>
#include <stdio.h>

struct sample *sample_new(int columns_n)
{
    ASSERT(columns_n > 0 && columns_n <= COLUMNS_MAX + 1);
    struct sample *s = xcalloc(1, sizeof *s);
    s->cells = xcalloc((size_t)columns_n, sizeof *s->cells);
    return s;
}

void sample_drop_body(struct sample *s)
{
    free(s->body);
    s->body = NULL;
    s->body_n = 0;
}

void sample_drop_image(struct sample *s)
{
    free(s->image);
    s->image = NULL;
    s->image_n = 0;
}

void sample_free(struct sample *s)
{
    if (s == NULL) {
        return;
    }
    sample_drop_body(s);
    sample_drop_image(s);
    free(s->exif);
    free(s->cells);
    free(s->text);
    free(s);
}

void sample_fail(struct sample *s, enum sample_status status, const char *fmt, ...)
{
    ASSERT(status != STATUS_SUCCESS);
    s->status = status;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(s->error, sizeof s->error, fmt, ap);
    va_end(ap);
    for (char *p = s->error; *p != '\0'; p++) {
        if (*p < 0x20 || *p > 0x7e) {
            *p = '?';
        }
    }
}

struct sample *sample_of(struct queue_item *item)
{
    _Static_assert(offsetof(struct sample, item) == 0, "an item is its sample");
    void *p = item;
    return p;
}
