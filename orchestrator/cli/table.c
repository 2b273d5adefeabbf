/* Tables of text, measured in terminal columns. */
#include "table.h"
#include "cli.h"
#include "print.h"
#include <stdio.h>
#include <wchar.h>

#define CELL_MAX 400

char *text_clean(const char *s)
{
    char *out = xstrdup(s);
    for (char *p = out; *p != '\0'; p++) {
        bool c1 = (uint8_t)p[0] == 0xc2 && (uint8_t)p[1] >= 0x80 && (uint8_t)p[1] < 0xa0;
        if ((uint8_t)*p < 0x20 || *p == 0x7f) {
            *p = *p == '\n' || *p == '\t' ? ' ' : '?';
        } else if (c1) { /* an 8-bit control character may begin an escape sequence */
            p[0] = p[1] = '?';
        }
    }
    return out;
}

char *text_short(const struct cli *cli, const char *s)
{
    AUTO_BUF struct buf out = BUF_INIT(65536);
    const char *at;
    while (cli->out_tty && (at = strstr(s, "s3://")) != NULL) {
        size_t n = strcspn(at, "' ");
        size_t last = n;
        while (last > 5 && (last == n || at[last - 1] != '/')) {
            last--;
        }
        buf_add(&out, s, (size_t)(at - s));
        buf_add(&out, at + (last > 5 ? last : 0), last > 5 ? n - last : n);
        s = at + n;
    }
    buf_add_cstr(&out, s);
    return xstrdup(buf_cstr(&out));
}

size_t text_width(const char *s)
{
    size_t width = 0;
    mbstate_t state = {0};
    while (*s != '\0') {
        wchar_t c;
        size_t n = mbrtowc(&c, s, 8, &state);
        if (n == (size_t)-1 || n == (size_t)-2 || n == 0) {
            memset(&state, 0, sizeof state);
            width++;
            s++;
            continue;
        }
        int w = wcwidth(c);
        width += w > 0 ? (size_t)w : 0;
        s += n;
    }
    return width;
}

void text_print(const struct cli *cli, const char *head, const char *text)
{
    AUTO_FREE char *clean = text_clean(text), *clean_head = text_clean(head);
    size_t at = text_width(clean_head);
    bool first = true; /* of its line: no blank before it */
    (void)fputs(clean_head, stdout);
    for (char *rest = clean, *word; (word = strsep(&rest, " ")) != NULL;) {
        size_t w = text_width(word);
        if (word[0] == '\0') {
            continue;
        }
        if (!first && cli->out_tty && at + 1 + w > (size_t)cli->width) {
            (void)fputs("\n  ", stdout);
            at = 2;
        } else if (!first) {
            (void)putchar(' ');
            at++;
        }
        first = false;
        (void)fputs(word, stdout);
        at += w;
    }
    (void)putchar('\n');
}

void table_column(struct text_table *t, const char *head, bool right)
{
    ASSERT(t->columns < TABLE_COLUMNS_MAX);
    t->head[t->columns] = head;
    t->right[t->columns++] = right;
}

void table_row(struct text_table *t, const char *const *cells)
{
    ARRAY_ROOM(t->rows, t->n, t->cap);
    char **row = xcalloc((size_t)t->columns, sizeof *row);
    for (int i = 0; i < t->columns; i++) {
        AUTO_FREE char *clean = text_clean(cells[i] != NULL ? cells[i] : "");
        size_t n = MIN(strlen(clean), CELL_MAX);
        while (n > 0 && ((uint8_t)clean[n] & 0xc0) == 0x80) {
            n--; /* not within a character */
        }
        row[i] = xstrndup(clean, n);
    }
    t->rows[t->n++] = row;
}

/* Print at most `max` columns of s. Returns the width printed. */
static size_t cell_print(const char *s, size_t max)
{
    size_t width = 0;
    mbstate_t state = {0};
    while (*s != '\0') {
        wchar_t c;
        size_t n = mbrtowc(&c, s, 8, &state);
        int w = 1;
        if (n == (size_t)-1 || n == (size_t)-2 || n == 0) {
            memset(&state, 0, sizeof state);
            n = 1;
        } else {
            w = MAX(wcwidth(c), 0);
        }
        if (width + (size_t)w > max) {
            break;
        }
        (void)fwrite(s, 1, n, stdout);
        width += (size_t)w;
        s += n;
    }
    return width;
}

static void spaces(size_t n)
{
    (void)printf("%*s", (int)n, "");
}

static void row_print(const struct cli *cli, const struct text_table *t, const char *const *cells,
                      const size_t *widths)
{
    size_t at = 0;
    for (int i = 0; i < t->columns; i++) {
        bool last = i == t->columns - 1;
        size_t left = (size_t)cli->width > at ? (size_t)cli->width - at : 1;
        size_t max = last && cli->out_tty && !cli->wide ? left : CELL_MAX;
        size_t w = MIN(text_width(cells[i]), max);
        if (t->right[i]) {
            spaces(widths[i] > w ? widths[i] - w : 0);
        }
        (void)cell_print(cells[i], max);
        if (!last) {
            spaces((t->right[i] ? 0 : widths[i] - w) + 2);
        }
        at += widths[i] + 2;
    }
    (void)putchar('\n');
}

static void rows_free(struct text_table *t)
{
    for (size_t r = 0; r < t->n; r++) {
        for (int i = 0; i < t->columns; i++) {
            free(t->rows[r][i]);
        }
        free(t->rows[r]);
    }
    free(t->rows);
    *t = (struct text_table){0};
}

void table_print(const struct cli *cli, struct text_table *t)
{
    size_t widths[TABLE_COLUMNS_MAX];
    for (int i = 0; i < t->columns; i++) {
        widths[i] = text_width(t->head[i]);
        for (size_t r = 0; r < t->n; r++) {
            widths[i] = MAX(widths[i], text_width(t->rows[r][i]));
        }
    }
    row_print(cli, t, t->head, widths);
    for (size_t r = 0; r < t->n; r++) {
        const char *cells[TABLE_COLUMNS_MAX];
        for (int i = 0; i < t->columns; i++) {
            cells[i] = t->rows[r][i];
        }
        row_print(cli, t, cells, widths);
    }
    rows_free(t);
}
