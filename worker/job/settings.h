/* Settings of a command in one table: read from hyperparameters (by name) and flags (--name, dashes
 * or underscores), checked, explained by --help. All faults are reported at once. */
#pragma once
#include "common/buf.h"
#include <jansson.h>

enum setting_kind { SETTING_TEXT, SETTING_INT, SETTING_FLAG };
struct setting {
    const char *name;
    const char *flag; /* a second name of the flag; NULL: no second name */
    enum setting_kind kind;
    const char *dflt; /* NULL: required, not empty */
    int64_t min, max; /* of INT */
    size_t offset;    /* in the command's struct: char *, int64_t or bool */
    const char *help;
};

/* Load defaults, then hyperparameters (NULL: none; SageMaker's own are ignored), then flags
 * argv[argc], into *base; a FLAG may omit its value. False with the faults, one per line. The
 * caller releases the texts with settings_done, also after faults. */
bool settings_load(const struct setting *rows, size_t rows_n, void *base,
                   const json_t *hyperparameters, int argc, char *const *argv,
                   struct buf *faults) MUST_CHECK;
void settings_done(const struct setting *rows, size_t rows_n, void *base);
void settings_help(const struct setting *rows, size_t rows_n, struct buf *out);
/* Append "--NAME" and its text, wrapped at 80 columns where words allow. */
void settings_help_line(struct buf *out, const char *name, const char *fmt, ...) PRINTF(3, 4);
