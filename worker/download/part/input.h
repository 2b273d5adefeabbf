/* Finds the files of the input: a file, a folder or glob of them, a channel, or objects of S3,
 * which are fetched first. */
#pragma once
#include "input_files.h"

/* Find the files of url_list: of a folder or S3 prefix those that end with input_format, sorted;
 * never a shard's .parquet in the output folder. With retry_failed it is the folder or S3 prefix of
 * an earlier output: all its sidecars at once. Several objects from S3 are fetched into a temporary
 * folder that input_done removes; p tells how far that is. ERR_INVALID, ERR_IO, or the error of
 * S3. */
bool input_open(const struct download_options *o, struct progress *p, struct input *ret,
                struct err *err) MUST_CHECK;
