/* S3 in path style over s3_store.h: objects, copies, listings, multipart uploads, conditional
 * writes. */
#pragma once
#include "local/http/request.h"
#include "s3_store.h"

#define S3_PART_BYTES_MIN (INT64_C(5) << 20)
#define S3_PARTS_MAX      10000
#define S3_XML_HEAD       "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
#define S3_XMLNS          "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""

/* Bucket and key of a path-style request, decoded; the key may be "". False on bad escapes or
 * lengths. */
bool s3_target(const struct request *r, char bucket[static S3_BUCKET_MAX],
               char key[static S3_KEY_MAX + 1]);
/* Name of the requested operation, static; "" when it is not supported. */
const char *s3_operation(const struct request *r);
/* True for an unsigned read of a bucket in the setting public_buckets. */
bool s3_is_public(const struct request *r);
/* True when the request's body goes to a file. */
bool s3_wants_upload(const char *method);
/* Answer the request. Needs no lock. */
void s3_handle(struct request *r);

/* s3_multipart_local.c: the operations on multipart uploads. */
void s3_multipart_create(struct request *r, const char *bucket, const char *key);
/* True: stored, with this ETag. The answer's headers name it, too, but of a copy. */
bool s3_multipart_part(struct request *r, const char *bucket, const char *key, bool copy,
                       char ret_etag[static 33]);
void s3_multipart_complete(struct request *r, const char *bucket, const char *key);
void s3_multipart_abort_upload(struct request *r, const char *bucket, const char *key);
void s3_multipart_list(struct request *r, const char *bucket, const char *key);
void s3_multipart_list_uploads(struct request *r, const char *bucket);

/* s3_copy_local.c: CopyObject, UploadPartCopy. */
void s3_copy_object(struct request *r, const char *bucket, const char *key);
void s3_copy_part(struct request *r, const char *bucket, const char *key);
/* s3_delete_local.c */
void s3_delete_objects(struct request *r, const char *bucket);

/* s3_list_local.c: both versions of the listing. */
void s3_list_objects(struct request *r, const char *bucket);
void s3_list_buckets(struct request *r);
