/* Objects as files: ROOT/s3/<bucket>/<key>. A bucket is there when its folder is. What a file
 * cannot hold (ETag, content type, user metadata, SHA-256) lies in ROOT/state/meta under the file's
 * identity (inode, modification time, size), so that files put there by hand are objects too: their
 * ETag is computed when first asked for. Keys that are no file names (empty, "." or ".." segments,
 * a trailing "/") are refused. */
#pragma once
#include "common/buf.h"
#include "common/units.h"
#include <limits.h>
#include <sys/stat.h>

#define S3_BUCKET_MAX 64
#define S3_KEY_MAX    1024
#define S3_META_MAX   8192

struct s3_meta {     /* a value */
    char etag[48];   /* without quotes */
    char sha256[65]; /* "" when not known */
    char content_type[256];
    char user[4096]; /* "name: value\n" lines of x-amz-meta-* */
};
/* Where an object lies. ERR_INVALID for a bucket or key that cannot be. */
bool s3_store_path(const char *root, const char *bucket, const char *key, char out[static PATH_MAX],
                   struct err *err) MUST_CHECK;
/* Split s3://bucket/key; the key may be empty. */
bool s3_store_uri(const char *uri, char bucket[static S3_BUCKET_MAX],
                  char key[static S3_KEY_MAX + 1], struct err *err) MUST_CHECK;
bool s3_store_has_bucket(const char *root, const char *bucket);
/* Keys that begin with prefix, in key order, each ended by a NUL, into out. */
bool s3_store_keys(const char *root, const char *bucket, const char *prefix, size_t max,
                   struct buf *out, struct err *err) MUST_CHECK;
/* Put a finished file in an object's place in one step (replacing it). */
bool s3_store_publish(const char *root, const char *bucket, const char *key, const char *tmp,
                      struct err *err) MUST_CHECK;
/* The same, but only when there is no such object: ERR_PRECONDITION else. */
bool s3_store_publish_new(const char *root, const char *bucket, const char *key, const char *tmp,
                          struct err *err) MUST_CHECK;
/* Remove an object and the folders that are empty then. Not being there is no error. */
void s3_store_remove(const char *root, const char *bucket, const char *key);
/* Keep metadata of a file about to be published; st is of the file as written. */
bool s3_store_meta_put(const char *root, const struct stat *st, const struct s3_meta *m,
                       struct err *err) MUST_CHECK;
/* Metadata of an open object, computed and kept when there is none. */
bool s3_store_meta_get(const char *root, int fd, const struct stat *st, struct s3_meta *ret,
                       struct err *err) MUST_CHECK;
/* MD5 of a whole file as hex. */
bool s3_store_md5(int fd, char out[static 33], struct err *err) MUST_CHECK;
