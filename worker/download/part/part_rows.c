/* Every file is opened twice, first to be checked and counted. The only file of a part stays open,
 * since a parquet file's schema is read from its end. */
#include "part_rows.h"
#include "column_choice.h"
#include "parquet.h"
#include "text_rows.h"

struct file_rows { /* one of them is not NULL */
    struct parquet *parquet;
    struct text_rows *text;
};
struct part_rows {
    struct duck *duck;
    const struct input *in;
    const struct download_options *o;
    struct columns columns;
    int64_t *of_files;    /* of_files[in->files_n] */
    struct file_rows now; /* the open file */
    size_t file_i;
    int64_t left; /* rows of it */
    bool started;
};

static void file_close(struct file_rows *f)
{
    parquet_free(f->parquet);
    text_rows_free(f->text);
    *f = (struct file_rows){0};
}

static enum records_format records_format_of(enum input_format f)
{
    switch (f) {
    case INPUT_TSV:
        return RECORDS_TSV;
    case INPUT_TXT:
        return RECORDS_TXT;
    case INPUT_JSON:
        return RECORDS_JSON;
    case INPUT_JSONL:
        return RECORDS_JSONL;
    case INPUT_CSV:
    case INPUT_PARQUET:
        break;
    }
    return RECORDS_CSV;
}

static bool file_open(struct part_rows *p, size_t i, struct err *err)
{
    const struct input_file *f = &p->in->files[i];
    p->file_i = i;
    p->started = false;
    if (p->o->format == INPUT_PARQUET) {
        return parquet_open(p->duck, f->path, f->name, p->o, &p->now.parquet, err);
    }
    return text_rows_open(f->path, f->name, records_format_of(p->o->format), p->o->gzip, p->o,
                          &p->now.text, err);
}

static const struct columns *file_columns(const struct file_rows *f)
{
    return f->parquet != NULL ? parquet_columns(f->parquet) : text_rows_columns(f->text);
}

static int64_t file_count(const struct file_rows *f)
{
    return f->parquet != NULL ? parquet_rows(f->parquet) : text_rows_count(f->text);
}

static bool file_next(struct part_rows *p, struct sample **ret, struct err *err)
{
    return p->now.parquet != NULL ? parquet_next(p->now.parquet, ret, err)
                                  : text_rows_next(p->now.text, ret, err);
}

/* Take the columns of the open file, or widen those of the files before it. */
static bool take_columns(struct part_rows *p, size_t i, struct err *err)
{
    const struct columns *of = file_columns(&p->now);
    if (i == 0) {
        columns_copy(&p->columns, of);
        return true;
    }
    bool texts = p->o->format == INPUT_CSV || p->o->format == INPUT_TSV;
    return columns_widen(&p->columns, of, texts, err) ||
           err_wrap(err, "'%s'", p->in->files[i].name);
}

bool part_rows_open(struct duck *duck, const struct input *in, const struct download_options *o,
                    struct part_rows **ret, struct err *err)
{
    struct part_rows *p = xcalloc(1, sizeof *p);
    p->duck = duck;
    p->in = in;
    p->o = o;
    p->of_files = xcalloc(in->files_n, sizeof *p->of_files);
    bool ok = true;
    for (size_t i = 0; ok && i < in->files_n; i++) {
        file_close(&p->now);
        ok = file_open(p, i, err) && take_columns(p, i, err) &&
             (p->now.parquet == NULL || parquet_check(p->now.parquet, err));
        p->of_files[i] = ok ? file_count(&p->now) : 0;
    }
    if (!ok) {
        part_rows_free(p);
        return false;
    }
    if (in->files_n > 1) {
        file_close(&p->now);
    }
    *ret = p;
    return true;
}

void part_rows_free(struct part_rows *p)
{
    if (p == NULL) {
        return;
    }
    file_close(&p->now);
    columns_done(&p->columns);
    free(p->of_files);
    free(p);
}

const int64_t *part_rows_of_files(const struct part_rows *p)
{
    return p->of_files;
}

const struct columns *part_rows_columns(const struct part_rows *p)
{
    return &p->columns;
}

/* Open and begin a file. */
static bool begin(struct part_rows *p, size_t i, struct err *err)
{
    bool is_open = p->now.parquet != NULL || p->now.text != NULL;
    if (!is_open && !file_open(p, i, err)) {
        return false;
    }
    if (file_count(&p->now) != p->of_files[i]) {
        return err_set(err, ERR_INVALID, "'%s' has changed: %lld rows, %lld before",
                       p->in->files[i].name, (long long)file_count(&p->now),
                       (long long)p->of_files[i]);
    }
    p->left = p->of_files[i];
    p->started = true;
    return p->now.parquet != NULL ? parquet_start(p->now.parquet, &p->columns, err)
                                  : text_rows_start(p->now.text, &p->columns, err);
}

/* Fail when the file has more rows than its count: they would be lost silently. */
static bool check_end(struct part_rows *p, struct err *err)
{
    struct sample *s;
    if (!file_next(p, &s, err)) {
        return false;
    }
    if (s != NULL) {
        sample_free(s);
        return err_set(err, ERR_INVALID, "'%s' has more rows than the %lld it says",
                       p->in->files[p->file_i].name, (long long)p->of_files[p->file_i]);
    }
    return true;
}

/* Make left > 0, or set *ret_end after the last row of the last file. */
static bool ready(struct part_rows *p, bool *ret_end, struct err *err)
{
    *ret_end = false;
    if (!p->started && !begin(p, 0, err)) {
        return false;
    }
    while (p->left == 0) {
        if (!check_end(p, err)) {
            return false;
        }
        if (p->file_i + 1 == p->in->files_n) {
            *ret_end = true;
            return true;
        }
        file_close(&p->now);
        if (!begin(p, p->file_i + 1, err)) {
            return false;
        }
    }
    return true;
}

bool part_rows_next(struct part_rows *p, struct sample **ret, struct err *err)
{
    bool end;
    *ret = NULL;
    if (!ready(p, &end, err)) {
        return false;
    }
    if (end) {
        return true;
    }
    if (!file_next(p, ret, err)) {
        return false;
    }
    if (*ret == NULL) {
        return err_set(err, ERR_INVALID, "'%s' ends before its %lld rows",
                       p->in->files[p->file_i].name, (long long)p->of_files[p->file_i]);
    }
    p->left--;
    return true;
}

bool part_rows_skip(struct part_rows *p, int64_t n, struct err *err)
{
    bool end;
    if (!ready(p, &end, err)) {
        return false;
    }
    if (end) {
        return true;
    }
    ASSERT(n <= p->left);
    p->left -= n;
    return p->now.parquet != NULL ? parquet_skip(p->now.parquet, n, err)
                                  : text_rows_skip(p->now.text, n, err);
}
