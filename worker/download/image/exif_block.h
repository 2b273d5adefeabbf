/* The folders (IFDs) of an EXIF block, and the values of their entries. Every read is checked and
 * every count bounded. */
#pragma once
#include "common/buf.h"

#define EXIF_TAGS_MAX        512
#define EXIF_NAME_BYTES      48
#define EXIF_VALUE_BYTES_MAX (16u << 10)

enum exif_names { EXIF_MAIN, EXIF_GPS, EXIF_INTEROP };
enum exif_type {
    EXIF_BYTE = 1,
    EXIF_ASCII,
    EXIF_SHORT,
    EXIF_LONG,
    EXIF_RATIO,
    EXIF_SIGNED_BYTE,
    EXIF_UNDEFINED,
    EXIF_SIGNED_SHORT,
    EXIF_SIGNED_LONG,
    EXIF_SIGNED_RATIO,
    EXIF_FLOAT,
    EXIF_DOUBLE,
    EXIF_IFD,
    EXIF_TYPE_COUNT
};

struct exif_entry {
    char name[EXIF_NAME_BYTES]; /* "Image Make" */
    bool is_image;              /* of the first folder */
    enum exif_names names;
    uint16_t tag;
    enum exif_type type;
    uint32_t count;
    size_t at; /* of the value in the block */
};

struct exif_block {
    struct str data; /* from the byte order mark on; may reach beyond the block */
    bool little;
    int n;
    struct exif_entry tags[EXIF_TAGS_MAX]; /* one for each name, the last of equal ones */
};

/* Read all folders of data, which b->data borrows. No tags when it is no EXIF block. */
void exif_block_read(struct str data, struct exif_block *ret);
/* Append the value of e as text: UTF-8 without NUL, at most EXIF_VALUE_BYTES_MAX. */
void exif_block_value(const struct exif_block *b, const struct exif_entry *e, struct buf *out);
/* An entry's i-th whole number; false when it has none. */
bool exif_block_number(const struct exif_block *b, const struct exif_entry *e, uint32_t i,
                       int64_t *ret) MUST_CHECK;
