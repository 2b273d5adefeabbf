/* Objects as files: ROOT/s3/<bucket>/<key>. A bucket exists when its folder does. What a file
 * cannot hold (ETag, content type, user metadata, checksum) is in ROOT/state/meta under the file's
 * identity (inode, modification time, size), so that files put there by hand are objects too: their
 * ETag is computed on first use. Keys that cannot be paths of files are kept elsewhere
 * (s3_awkward.h); those with a segment "." or ".." are rejected. */
#pragma once
#include "s3_checksum_local.h"
#include <limits.h>
#include <sys/stat.h>

#define S3_CHUNK_BYTES ((size_t)1 << 20) /* read of an object at once */
#define S3_BUCKET_MAX  64
#define S3_KEY_MAX     1024
#define S3_META_MAX    8192

struct s3_meta {   /* a value */
    char etag[48]; /* without quotes */
    struct s3_checksum checksum;
    char content_type[256];
    char user[4096]; /* "name: value\n" lines of x-amz-meta-* */
};
/* Path of an object, wherever it is; where one would be that is not there. ERR_INVALID for an
 * impossible bucket or key. */
bool s3_store_path(const char *root, const char *bucket, const char *key, char out[static PATH_MAX],
                   struct err *err) MUST_CHECK;
/* Split s3://bucket/key; the key may be empty. */
bool s3_store_uri(const char *uri, char bucket[static S3_BUCKET_MAX],
                  char key[static S3_KEY_MAX + 1], struct err *err) MUST_CHECK;
bool s3_store_has_bucket(const char *root, const char *bucket);
/* Keys that begin with prefix, in key order, each ended by a NUL, into out. */
bool s3_store_keys(const char *root, const char *bucket, const char *prefix, size_t max,
                   struct buf *out, struct err *err) MUST_CHECK;
/* Move a finished file to an object's path in one step (replacing it). */
bool s3_store_publish(const char *root, const char *bucket, const char *key, const char *tmp,
                      struct err *err) MUST_CHECK;
/* The same, but ERR_PRECONDITION when the object exists. */
bool s3_store_publish_new(const char *root, const char *bucket, const char *key, const char *tmp,
                          struct err *err) MUST_CHECK;
/* Remove an object and the folders that become empty. A missing object is not an error. */
void s3_store_remove(const char *root, const char *bucket, const char *key);
/* Keep metadata of a file about to be published; st is of the file as written. */
bool s3_store_meta_put(const char *root, const struct stat *st, const struct s3_meta *m,
                       struct err *err) MUST_CHECK;
/* Metadata of an open object, computed and stored when missing. */
bool s3_store_meta_get(const char *root, int fd, const struct stat *st, struct s3_meta *ret,
                       struct err *err) MUST_CHECK;
/* MD5 of a whole file as hex. */
bool s3_store_md5(int fd, char out[static 33], struct err *err) MUST_CHECK;
