/* Fetches input objects from S3 into temporary files. */
#pragma once
#include "input_files.h"

/* The object of url_list, or the objects of its prefix ("/" at the end, or no such object) or
 * pattern (in the last part of the key). Several are counted in p as they come, as below. */
bool input_s3_fetch(const struct download_options *o, struct progress *p, struct input *in,
                    struct err *err) MUST_CHECK;
/* All sidecars of an earlier output. */
bool input_s3_earlier(const struct download_options *o, struct progress *p, struct input *in,
                      struct err *err) MUST_CHECK;
