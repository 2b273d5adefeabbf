/* One JSON line per pair, written directly into the output buffer: space for the longest possible
 * line is reserved once, then bytes are stored without checks. Strings are scanned sixteen bytes at
 * a time; malformed UTF-8 becomes U+FFFD. */
#pragma once
#include "common/buf.h"

enum line_field {
    LINE_PATH = 1,
    LINE_KEY = 2,
    LINE_IMAGE = 4,
    LINE_OFFSET = 8,
    LINE_SIZE = 16,
    LINE_CAPTION = 32,
    LINE_WIDTH = 64,
    LINE_HEIGHT = 128,
};

struct line_pair { /* value; strings borrowed */
    struct str key;
    struct str suffix;  /* of the image, "jpg" */
    struct str caption; /* escaped already, with its quotes */
    int64_t offset, size, width, height;
};

/* Append the text as a JSON string, quotes included. */
void line_escape(struct buf *out, struct str s);
/* Append the line, newline included. path: escaped, with its quotes. fields: enum line_field. */
void line_add(struct buf *out, unsigned fields, struct str path, const struct line_pair *p);
/* 64 well-mixed bits of a key, the same on every machine: FNV-1a, then the finaliser of
 * MurmurHash3. A sample of 1 % takes the keys below 2^64 / 100, so it lies within every larger
 * one. Source: Fowler, Noll, Vo, "FNV-1a"; Appleby, MurmurHash3, fmix64. */
uint64_t line_key_hash(struct str key);
