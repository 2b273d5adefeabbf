/* Checksums of objects and parts (x-amz-checksum-*): computed, compared with what a client sends,
 * kept, and answered as S3 does. See
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity.html */
#pragma once
#include "common/str.h"

struct request;

enum s3_algorithm {
    S3_NO_ALGORITHM,
    S3_CRC32,
    S3_CRC32C,
    S3_CRC64NVME,
    S3_SHA1,
    S3_SHA256,
    S3_ALGORITHM_COUNT
};

struct s3_checksum { /* a value */
    enum s3_algorithm algorithm;
    unsigned parts_n; /* > 0: composite, over the checksums of this many parts */
    char hex[65];
};

/* "SHA256" and the like, case ignored; S3_NO_ALGORITHM for other text. */
enum s3_algorithm s3_algorithm_of(struct str name);
const char *s3_algorithm_name(enum s3_algorithm a);
/* True when multipart uploads have only a checksum of the whole object by this algorithm. */
bool s3_algorithm_is_whole(enum s3_algorithm a);

/* Compare the body of an upload with the checksum that its headers or trailer state. *ret: that
 * checksum, or S3_NO_ALGORITHM. False: answered (InvalidRequest, BadDigest). */
bool s3_checksum_of_request(struct request *r, struct s3_checksum *ret);
/* The one that S3 gives an object that was uploaded without: CRC-64/NVME of the whole. False:
 * answered. */
bool s3_checksum_by_default(struct request *r, struct s3_checksum *ret);
bool s3_checksum_of_file(enum s3_algorithm a, int fd, struct s3_checksum *ret);
/* The composite checksum of parts[n]. */
struct s3_checksum s3_checksum_of_parts(enum s3_algorithm a, const struct s3_checksum *parts,
                                        size_t n);

/* "SHA256 <hex> <parts>", as it is kept in a file. s3_checksum_read leaves S3_NO_ALGORITHM for any
 * other text. */
void s3_checksum_write(const struct s3_checksum *c, struct buf *out);
void s3_checksum_read(struct str text, struct s3_checksum *ret);
/* The base64 text of a checksum, with "-<parts>" when composite. */
void s3_checksum_text(const struct s3_checksum *c, struct buf *out);
/* Add the header that states it, as the answer about a part has it; nothing for S3_NO_ALGORITHM. */
void s3_checksum_header(struct request *r, const struct s3_checksum *c);
/* The same and the header of its type, of objects. */
void s3_checksum_headers(struct request *r, const struct s3_checksum *c);
/* The same as an XML element, "<ChecksumSHA256>...". */
void s3_checksum_xml(struct buf *out, const struct s3_checksum *c);
