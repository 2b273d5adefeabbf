/* Every option of img2dataset 1.47.0 with its default and what becomes of it here: it is a setting
 * of the same name, or it is refused with a reason. settings_load asks this table about names that
 * no setting has, and --help prints it, so that the two say the same. */
#pragma once
#include "job/settings.h"

struct img2dataset_option { /* value */
    const char *name;
    const char *dflt; /* img2dataset's; of a refused option the only value taken */
    bool refused;     /* false: settings have a row of this name */
    const char *why;  /* why it is refused, or what differs; NULL: nothing but a default */
};
const struct img2dataset_option *img2dataset_options(size_t *ret_n);
/* True for an option that is refused here; a fault with the reason is appended unless the value
 * (NULL: none) is the one that matches our behaviour. */
bool img2dataset_refuses(const char *name, const char *value, struct buf *faults);
/* Append the same work as img2dataset and as drover-worker are called for it, and the table; rows
 * are the settings of download. */
void img2dataset_help(const struct setting *rows, size_t rows_n, struct buf *out);
