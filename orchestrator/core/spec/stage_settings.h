/* The settings of a stored stage by name, and in which ones two stages differ: what a comparison of
 * training runs has to know. Left out is what changes no result: names, places of results, money,
 * retries, limits, tags, metrics. Pure. */
#pragma once
#include "common/arena.h"
#include "common/json.h"

#define STAGE_SETTINGS_MAX 1024 /* more than a stage has */

struct stage_setting {
    const char *key;   /* as in the file: hyperparameters.lr, input.data.mode */
    const char *value; /* as text; of an environment, too, to be compared and not shown */
};
struct stage_settings {
    struct stage_setting at[STAGE_SETTINGS_MAX]; /* by key */
    int n;
};
/* Of `stages` of spec_to_json. Texts are in the arena or of `stage`. */
void stage_settings_read(const json_t *stage, struct arena *a, struct stage_settings *ret);

struct stage_difference {
    const char *key;
    const char *a, *b; /* NULL: not set. A hidden value that differs is "(hidden)" in both */
};
/* Writes the differences by key; returns how many. *ret_equal: keys with equal values. */
int stage_settings_differ(const struct stage_settings *a, const struct stage_settings *b,
                          struct stage_difference ret[static 2 * STAGE_SETTINGS_MAX],
                          int *ret_equal);
