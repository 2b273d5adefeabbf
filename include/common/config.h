/* Settings as one table a program: name, kind, default, bounds, help. Reads a JSON file and the
 * environment, rejects unknown keys with a guess, collects every fault, prints itself and an
 * example file. */
#pragma once
#include "position.h"
#include "str.h"

enum config_kind { CONFIG_STR, CONFIG_I64, CONFIG_BOOL, CONFIG_SECRET_FILE };
struct config_row {
    const char *name; /* JSON key, unit last: tick_interval_us */
    const char *env;  /* environment variable, NULL when none */
    enum config_kind kind;
    const char *dflt; /* as text, NULL = required */
    int64_t min, max; /* CONFIG_I64 */
    size_t offset;    /* of a char * (STR, SECRET_FILE), int64_t or bool in the target struct */
    const char *help;
};
/* Defaults, then the file (NULL = none), then the environment. Strings in target are malloc'd. All
 * faults at once. */
bool config_load(const struct config_row *rows, size_t n, const char *file, void *target,
                 struct faults *faults) MUST_CHECK;
void config_free(const struct config_row *rows, size_t n, void *target);
struct buf;
void config_print(const struct config_row *rows, size_t n, const void *target,
                  struct buf *out); /* --print-config, secrets as paths */
void config_example(const struct config_row *rows, size_t n, struct buf *out);
