/* A linear model: see linear_model.h. */
#include "linear_model.h"
#include "common/cleanup.h"
#include "common/hash.h"
#include "common/json.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define MODEL_BYTES_MAX ((size_t)256 << 10)
#define MODEL_VERSION   1
#define WORD_BYTES_MAX  64
#define TARGET_SCALE    20.0 /* bits of a size: targets lie around 1 */

void model_row_make(struct str caption, int64_t bytes, struct model_row *ret)
{
    *ret = (struct model_row){.target = log2((double)MAX(bytes, 1)) / TARGET_SCALE};
    size_t i = 0;
    while (i < caption.n && ret->words_n < MODEL_WORDS_MAX) {
        char word[WORD_BYTES_MAX];
        size_t n = 0;
        for (; i < caption.n && !isspace((unsigned char)caption.p[i]); i++) {
            if (n < sizeof word) {
                word[n++] = (char)tolower((unsigned char)caption.p[i]);
            }
        }
        if (n > 0) {
            ret->words[ret->words_n++] = (uint16_t)(1 + hash_crc32(word, n) % (MODEL_FEATURES - 1));
        }
        for (; i < caption.n && isspace((unsigned char)caption.p[i]); i++) {
        }
    }
}

/* Weight of one word: the features of a row have length 1, however long its caption. */
static double value_of(const struct model_row *row)
{
    return row->words_n > 0 ? 1.0 / sqrt((double)row->words_n) : 0.0;
}

double model_predict(const struct linear_model *m, const struct model_row *row)
{
    double value = value_of(row);
    double y = m->weights[0];
    for (int i = 0; i < row->words_n; i++) {
        y += value * m->weights[row->words[i]];
    }
    return y;
}

void model_gradient_add(const struct linear_model *m, const struct model_row *row,
                        struct model_gradient *g)
{
    double value = value_of(row);
    double error = model_predict(m, row) - row->target;
    g->loss += 0.5 * error * error;
    g->sum[0] += error;
    for (int i = 0; i < row->words_n; i++) {
        g->sum[row->words[i]] += error * value;
    }
}

void model_step(struct linear_model *m, const struct model_gradient *g, int64_t n, double rate)
{
    ASSERT(n > 0);
    for (int i = 0; i < MODEL_FEATURES; i++) {
        m->weights[i] -= rate * g->sum[i] / (double)n;
    }
    m->step++;
}

void model_json(const struct linear_model *m, const char *run, struct buf *out)
{
    struct json_out w;
    json_out_init(&w, out);
    json_out_object(&w, NULL);
    json_out_i64(&w, "version", MODEL_VERSION);
    json_out_str(&w, "run", run);
    json_out_i64(&w, "step", m->step);
    json_out_array(&w, "weights"); /* hexadecimal: exact */
    for (int i = 0; i < MODEL_FEATURES; i++) {
        char text[40];
        (void)snprintf(text, sizeof text, "%a", m->weights[i]);
        json_out_str(&w, NULL, text);
    }
    json_out_end_array(&w);
    json_out_end_object(&w);
    buf_add_char(out, '\n');
}

bool model_parse(struct str text, struct linear_model *ret, char ret_run[static 65],
                 struct err *err)
{
    AUTO_JSON json_t *o = NULL;
    json_t *weights;
    const char *run;
    int64_t version;
    struct linear_model m = {.step = 0};
    if (!json_parse(text, MODEL_BYTES_MAX, &o, err) ||
        !json_get_i64(o, "version", MODEL_VERSION, MODEL_VERSION, JSON_ABSENT, &version, err) ||
        !json_get_i64(o, "step", 0, INT64_MAX / 2, JSON_ABSENT, &m.step, err) ||
        !json_get_required_str(o, "run", &run, err) ||
        !json_get_array(o, "weights", &weights, err)) {
        return false;
    }
    if (json_array_size(weights) != MODEL_FEATURES || strlen(run) > 64) {
        return err_set(err, ERR_MALFORMED, "not a model of %d weights", MODEL_FEATURES);
    }
    for (int i = 0; i < MODEL_FEATURES; i++) {
        const char *s = json_string_value(json_array_get(weights, (size_t)i));
        char *end = NULL;
        m.weights[i] = s != NULL ? strtod(s, &end) : 0;
        if (s == NULL || end == s || *end != '\0' || !isfinite(m.weights[i])) {
            return err_set(err, ERR_MALFORMED, "weight %d is no number", i);
        }
    }
    *ret = m;
    (void)snprintf(ret_run, 65, "%s", run);
    return true;
}

bool model_load(const char *path, struct linear_model *ret, char ret_run[static 65],
                struct err *err)
{
    AUTO_BUF struct buf b = BUF_INIT(MODEL_BYTES_MAX);
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? err_set(err, ERR_NOT_FOUND, "there is no '%s'", path)
                               : err_set_os(err, ERR_IO, errno, "cannot open '%s'", path);
    }
    for (;;) {
        char piece[8192];
        ssize_t n = read(fd, piece, sizeof piece);
        if (n < 0) {
            return err_set_os(err, ERR_IO, errno, "cannot read '%s'", path);
        }
        if (n == 0) {
            break;
        }
        buf_add(&b, piece, (size_t)n);
    }
    return model_parse(buf_str(&b), ret, ret_run, err) || err_wrap(err, "'%s'", path);
}

bool model_save(const char *path, const struct linear_model *m, const char *run, struct err *err)
{
    AUTO_BUF struct buf b = BUF_INIT(MODEL_BYTES_MAX);
    AUTO_FREE char *tmp = xasprintf("%s.tmp", path);
    model_json(m, run, &b);
    AUTO_FD int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
        return err_set_os(err, ERR_IO, errno, "cannot make '%s'", tmp);
    }
    ssize_t n = write(fd, buf_cstr(&b), b.n);
    if (n != (ssize_t)b.n || fsync(fd) != 0 || rename(tmp, path) != 0) {
        return err_set_os(err, ERR_IO, errno, "cannot write '%s'", path);
    }
    return true;
}
