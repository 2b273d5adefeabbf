/* Creating and freeing a sample. */
#include "sample.h"
#include <stdarg.h>
#include <stdio.h>

bool column_is_nested(const struct column *c)
{
    struct str type = str_of(c->sql_type);
    return str_starts(type, "STRUCT(") || str_starts(type, "MAP(") ||
           (type.n > 0 && type.p[type.n - 1] == ']');
}

struct sample *sample_new(int columns_n)
{
    ASSERT(columns_n > 0 && columns_n <= COLUMNS_MAX + 1);
    struct sample *s = xcalloc(1, sizeof *s);
    s->cells = xcalloc((size_t)columns_n, sizeof *s->cells);
    return s;
}

static bool has_text(const struct cell *c)
{
    return c->kind == CELL_TEXT || c->kind == CELL_JSON;
}

bool sample_keep_text(struct sample *s, int cells_n, struct err *err)
{
    size_t text_n = 0;
    for (int i = 0; i < cells_n; i++) {
        text_n += has_text(&s->cells[i]) ? s->cells[i].s.n + 1 : 0;
    }
    if (text_n > ROW_TEXT_BYTES_MAX) {
        return err_set(err, ERR_LIMIT, "a row has %zu bytes of text", text_n);
    }
    s->text_n = text_n;
    s->text = xmalloc(text_n + 1);
    char *at = s->text;
    for (int i = 0; i < cells_n; i++) {
        if (has_text(&s->cells[i])) {
            size_t n = s->cells[i].s.n;
            if (n > 0) {
                memcpy(at, s->cells[i].s.p, n);
            }
            at[n] = '\0';
            s->cells[i].s.p = at;
            at += n + 1;
        }
    }
    return true;
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
    free(s->place.hop);
    free(s->exif);
    free(s->cells);
    free(s->text);
    free(s);
}

/* Length of the character at p; 0: not printable. */
static size_t character_n(const char *p)
{
    unsigned char c = (unsigned char)*p;
    size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    bool shown = c >= 0x20 && c != 0x7f && strnlen(p, n) == n && str_is_utf8((struct str){p, n});
    return shown ? n : 0;
}

void sample_fail(struct sample *s, enum sample_status status, const char *fmt, ...)
{
    ASSERT(status != STATUS_SUCCESS);
    s->status = status;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(s->error, sizeof s->error, fmt, ap);
    va_end(ap);
    for (char *p = s->error; *p != '\0';) {
        size_t n = character_n(p);
        if (n == 0) {
            *p = '?';
        }
        p += MAX(n, (size_t)1);
    }
}

bool sample_boxes(const struct sample *s, int cell_i, struct bboxes *ret, struct err *err)
{
    const struct cell *c = &s->cells[cell_i];
    if (c->kind == CELL_NULL) {
        ret->n = 0;
        return true;
    }
    bool is_text = c->kind == CELL_TEXT || c->kind == CELL_JSON;
    return bbox_parse(is_text ? c->s : STR(""), ret, err);
}

struct sample *sample_of(struct queue_item *item)
{
    _Static_assert(offsetof(struct sample, item) == 0, "an item is its sample");
    void *p = item;
    return p;
}
