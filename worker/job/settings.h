/* Settings of a command in one table: read from hyperparameters (by name) and flags (--name, dashes
 * or underscores), checked, explained by --help. All faults are reported at once. */
#pragma once
#include "common/setting_value.h"
#include <jansson.h>

/* Takes a name that no row has, and its value (NULL: none). True: it is known; a fault of it is
 * appended. */
typedef bool setting_other_fn(const char *name, const char *value, struct buf *faults);
/* Load defaults, then hyperparameters (NULL: none; SageMaker's own are ignored), then flags
 * argv[argc], into *base. Texts may stand in quotes. other: for names without a row; NULL: each of
 * them is a fault with a suggestion. False with the faults, one per line. The caller releases the
 * texts with settings_done, also after faults. */
bool settings_load(const struct setting *rows, size_t rows_n, void *base,
                   const json_t *hyperparameters, int argc, char *const *argv,
                   setting_other_fn *other, struct buf *faults) MUST_CHECK;
void settings_done(const struct setting *rows, size_t rows_n, void *base);
/* A setting's value as text: borrowed, or written into number. */
const char *settings_text(const struct setting *row, const void *base, char number[static 64]);
bool settings_is_default(const struct setting *row, const void *base);
void settings_help(const struct setting *rows, size_t rows_n, struct buf *out);
/* Append "--NAME" and its text, wrapped at 80 columns where words allow. */
void settings_help_line(struct buf *out, const char *name, const char *fmt, ...) PRINTF(3, 4);
