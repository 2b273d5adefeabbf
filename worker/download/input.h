/* Where the parquet part is: a file, a folder with one, a channel, or an S3 object fetched into an
 * unnamed temporary file. */
#pragma once
#include "common/err.h"

struct input {
    char *path; /* to open */
    char *name; /* to tell people */
    int fd;     /* of the temporary file, or -1 */
};
bool input_open(const char *url_list, struct input *ret, struct err *err) MUST_CHECK;
void input_done(struct input *in);
