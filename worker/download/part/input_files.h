/* The list of an input's files, and what is never one of them. */
#pragma once
#include "options.h"

#define INPUT_FILES_MAX 10000
#define INPUT_WILDCARDS "*?["

struct input_file {
    char *path; /* path to open; with retry_failed a pattern */
    char *name; /* name for messages */
};
struct input {
    char *name;               /* name of the whole for messages */
    struct input_file *files; /* files[files_n], in the order of their rows */
    size_t files_n;
    int fd;    /* of the temporary file of one object, or -1 */
    char *dir; /* temporary folder of several fetched objects, or NULL */
};
/* Free it, and remove what was fetched. */
void input_done(struct input *in);
/* Append a file; takes ownership of both texts. */
void input_add(struct input *in, char *path, char *name);
/* True when both name the same folder or S3 prefix. */
bool input_same_folder(const char *a, const char *b);
/* True for the .parquet of a shard when `folder` is the output itself: never read as input. */
bool input_is_own_shard(const char *output, const char *folder, const char *name);
/* The same of a path or an S3 URI of one. */
bool input_is_own_path(const char *output, const char *path);
/* Refuse such a path that was asked for by its name: the run would remove it. */
bool input_refuse_own(const char *output, const char *path, struct err *err) MUST_CHECK;
