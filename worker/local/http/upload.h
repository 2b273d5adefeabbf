/* The body of an S3 upload on its way to a temporary file: hashed on arrival (SHA-256, MD5,
 * CRC-32), with aws-chunked framing removed and its chunk signatures checked. The body is not kept
 * in memory. */
#pragma once
#include "common/hash.h"
#include "common/units.h"
#include <limits.h>

#define UPLOAD_LINE_MAX 2048

enum chunk_state { CHUNK_HEAD, CHUNK_DATA, CHUNK_END, CHUNK_TRAILER, CHUNK_DONE };

struct upload {
    int fd;
    char tmp[PATH_MAX]; /* removed by upload_free unless it has been published */
    int64_t bytes;      /* of the object, framing not counted */
    struct sha256 sha;
    void *md5; /* EVP_MD_CTX */
    uint32_t crc32;
    bool io_failed;
    bool frame_failed; /* bad framing or a bad chunk signature */
    bool signature_failed;
    char sha256_hex[65]; /* after upload_end */
    char md5_hex[33];
    bool chunked;
    bool chunks_signed;
    enum chunk_state state;
    int64_t left; /* of the chunk's data */
    char line[UPLOAD_LINE_MAX];
    size_t line_n;
    struct sha256 chunk_sha;
    uint8_t key[32]; /* signing key */
    char scope[160];
    char date[20];
    char previous[65]; /* signature of the part before */
    char claimed[65];
    char trailer_name[64];
    char trailer_value[128];
};

/* Prepare for a body that arrives at `arrival` and is sent in the way that its x-amz-content-sha256
 * header (absent: an empty view) names; its file is below root. Signed chunks also need
 * auth_prepare_chunks. NULL when the temporary file cannot be created. */
struct upload *upload_new(const char *root, usec_t arrival, struct str kind);
void upload_free(struct upload *u);
void upload_add(struct upload *u, const char *p, size_t n);
/* The body is complete: compute the hashes. */
void upload_end(struct upload *u);
