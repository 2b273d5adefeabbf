/* Where the parquet part is: a file, a folder with one, a channel, or an S3 object fetched into an
 * unnamed temporary file. */
#pragma once
#include "options.h"

struct input {
    char *path; /* to open */
    char *name; /* to tell people */
    int fd;     /* of the temporary file, or -1 */
    char *dir;  /* temporary folder of fetched sidecars, or NULL */
};
/* With retry_failed: the folder or S3 prefix of an earlier output, all of its sidecars at once;
 * from S3 they are fetched into a temporary folder that input_done removes. */
bool input_open(const struct download_options *o, struct input *ret, struct err *err) MUST_CHECK;
void input_done(struct input *in);
