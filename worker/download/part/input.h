/* Finds the parquet part: a file, a folder with one, a channel, or an S3 object fetched into an
 * unnamed temporary file. */
#pragma once
#include "options.h"

struct input {
    char *path; /* path to open */
    char *name; /* name for messages */
    int fd;     /* of the temporary file, or -1 */
    char *dir;  /* temporary folder of fetched sidecars, or NULL */
};
/* Open the part of the options. With retry_failed it is the folder or S3 prefix of an earlier
 * output: all its sidecars at once; from S3 they are fetched into a temporary folder that
 * input_done removes. ERR_INVALID, ERR_IO, or the error of S3. */
bool input_open(const struct download_options *o, struct input *ret, struct err *err) MUST_CHECK;
void input_done(struct input *in);
