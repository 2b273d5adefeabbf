/* A folder of many small files in an output: NAME/FILE, one level deep.
 *
 * In a folder it is built under a temporary name and appears whole, by one rename. In S3 each file
 * is a PUT of its own, 32 at a time, and is visible at once: what marks the whole as finished must
 * be written after it. Files that an earlier, killed writer left under the name are overwritten
 * or, at the end, removed. Two living writers of one name in S3 are found out, not kept apart.
 *
 * The names of its files begin with a digit. A folder with any other name in it is something else,
 * such as the output of another part, and nothing of it is removed: ERR_INVALID. */
#pragma once
#include "sink.h"

struct sink_tree;
struct sink_tree_size {
    int64_t files;
    int64_t bytes;
};

bool sink_tree_begin(struct sink *s, const char *name, struct sink_tree **ret,
                     struct err *err) MUST_CHECK;
/* The data is copied or written. content_type: a literal. */
bool sink_tree_put(struct sink_tree *t, const char *file, struct str data, const char *content_type,
                   struct err *err) MUST_CHECK;
/* Make it durable; frees it. ERR_PRECONDITION: the folder exists, another writer was first. In S3
 * ERR_CONFLICT when an object NAME.x or NAME_x exists, or a file has not the size it was written
 * with. */
bool sink_tree_finish(struct sink_tree *t, struct sink_tree_size *ret, struct err *err) MUST_CHECK;
void sink_tree_abort(struct sink_tree *t); /* NULL ignored; in S3 its files stay */
/* What lies under the name now; zero when nothing does. */
bool sink_tree_size(struct sink *s, const char *name, struct sink_tree_size *ret,
                    struct err *err) MUST_CHECK;
/* An absent one is a success. */
bool sink_tree_delete(struct sink *s, const char *name, struct err *err) MUST_CHECK;
/* Remove folders, names[n] with '/' at the end as sink_list tells them. In S3 the next is listed
 * while the objects of those before are removed, and *all, where each folder counts as one, is
 * corrected to its objects. Counts in *done. The first failure ends it. */
bool sink_tree_delete_many(struct sink *s, const char *const *names, size_t n, _Atomic int64_t *all,
                           _Atomic int64_t *done, struct err *err) MUST_CHECK;
