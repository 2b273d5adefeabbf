/* What PutObject and the multipart uploads share: checks of a body, metadata, conditions; and the
 * errors of the store, which all operations answer alike. Calls no operation. */
#pragma once
#include "local/http/request.h"
#include "s3_store.h"

/* Check the body against the client's length, MD5 and checksum, which goes into *ret; false:
 * answered. */
bool s3_body_ok(struct request *r, struct s3_checksum *ret);
/* True when a setting that lists buckets (NULL: none) has this one. */
bool s3_is_named(const json_t *buckets, const char *bucket);
/* The ETag of a body that is put into the bucket: its MD5, or something else in kms_buckets. */
void s3_etag_of_body(const struct request *r, const char *bucket, const char *md5_hex,
                     char out[static 33]);
/* Not of kms_only_buckets, or the request asks for a key of KMS. False: answered. */
bool s3_encryption_ok(struct request *r, const char *bucket);
/* Headers about the encryption that the request asks for, or the bucket's. */
void s3_encryption_headers(struct request *r, const char *bucket);
/* Content type and user metadata of the request into m. */
void s3_meta_of_request(const struct request *r, struct s3_meta *m);
/* True when an If-Match or If-None-Match header names this ETag or is "*". */
bool s3_etag_matches(struct str said, const char *etag);
/* Publish a finished file under the request's conditions (If-None-Match, If-Match); answers on
 * failure. */
bool s3_publish(struct request *r, const char *bucket, const char *key, const char *tmp,
                const struct s3_meta *m);
/* Answer an error of a store function. */
void s3_reply_err(struct request *r, const struct err *err);
