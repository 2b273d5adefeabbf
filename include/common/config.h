/* Settings as one table per program: name, kind, default, bounds, help. Reads a JSON file and the
 * environment, rejects unknown keys with a suggestion, collects every fault, prints the settings
 * and an example file. */
#pragma once
#include "position.h"
#include "str.h"

enum config_kind { CONFIG_STR, CONFIG_I64, CONFIG_BOOL, CONFIG_SECRET_FILE };
struct config_row {
    /* JSON key, unit last: tick_interval_us takes 10000000; without the unit it takes "10s" */
    const char *name;
    const char *env; /* environment variable; NULL: none; X_US takes a number, X a time, too */
    enum config_kind kind;
    const char *dflt; /* default as text; NULL: required */
    int64_t min, max; /* CONFIG_I64 */
    size_t offset;    /* of a char * (STR, SECRET_FILE), int64_t or bool in the target struct */
    const char *help;
};
/* Load defaults, then the file (NULL: none), then the environment into target. Reports all faults
 * at once. Strings in target are freed by config_free. */
bool config_load(const struct config_row *rows, size_t n, const char *file, void *target,
                 struct faults *faults) MUST_CHECK;
void config_free(const struct config_row *rows, size_t n, void *target);
struct buf;
void config_print(const struct config_row *rows, size_t n, const void *target,
                  struct buf *out); /* --print-config; a secret is shown as the path of its file */
void config_example(const struct config_row *rows, size_t n, struct buf *out);
