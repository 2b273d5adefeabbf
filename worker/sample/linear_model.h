/* The model of the sample trainer: a linear regression of a picture's size on the words of its
 * caption. Small, but trained by real gradients: the same rows give the same bits. */
#pragma once
#include "common/buf.h"

#define MODEL_FEATURES  257 /* the first is the bias, the others are hashed words */
#define MODEL_WORDS_MAX 32  /* of a caption; more are left out */

struct model_row { /* a value */
    uint16_t words[MODEL_WORDS_MAX];
    int words_n;
    double target;
};
struct linear_model { /* a value */
    double weights[MODEL_FEATURES];
    int64_t step; /* steps it was trained for */
};
struct model_gradient { /* a value: sums over rows */
    double sum[MODEL_FEATURES];
    double loss;
};
/* The words of a caption; the target of a picture of its bytes. Pure. */
void model_row_make(struct str caption, int64_t bytes, struct model_row *ret);
double model_predict(const struct linear_model *m, const struct model_row *row);
/* Add the row's gradient of half the squared error. */
void model_gradient_add(const struct linear_model *m, const struct model_row *row,
                        struct model_gradient *g);
/* One step of gradient descent with the mean of n rows. */
void model_step(struct linear_model *m, const struct model_gradient *g, int64_t n, double rate);

/* JSON with exact weights. `run` names the settings and rows it belongs to. */
void model_json(const struct linear_model *m, const char *run, struct buf *out);
/* *ret_run (at most 64 characters) is what model_json was given. ERR_MALFORMED. */
bool model_parse(struct str text, struct linear_model *ret, char ret_run[static 65],
                 struct err *err) MUST_CHECK;
/* Read or replace a file as a whole. ERR_NOT_FOUND, ERR_IO. */
bool model_load(const char *path, struct linear_model *ret, char ret_run[static 65],
                struct err *err) MUST_CHECK;
bool model_save(const char *path, const struct linear_model *m, const char *run,
                struct err *err) MUST_CHECK;
