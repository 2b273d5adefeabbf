/* TFRecord files of tf.train.Example messages, as img2dataset's TFRecordSampleWriter makes them. A
 * file is its records one after the other. Pure.
 *
 * A value becomes: whole numbers and booleans an int64_list, fractions a float_list, texts and
 * null (empty) a bytes_list, a list of one of these a list of several. What img2dataset drops the
 * row for (structs, lists of lists or with nulls, dates) is written as its text, an empty list as
 * a feature without a value. */
#pragma once
#include "shard.h"

#define TFRECORD_CRC_SLICES 8

struct tfrecord_crc { /* tables, by tfrecord_crc_init */
    uint32_t tables[TFRECORD_CRC_SLICES][256];
};
void tfrecord_crc_init(struct tfrecord_crc *ret);
/* CRC-32C (Castagnoli), as in iSCSI. */
uint32_t tfrecord_crc32c(const struct tfrecord_crc *t, const void *p, size_t n);
/* Append one record: length, its masked checksum, data, its masked checksum. */
void tfrecord_add(const struct tfrecord_crc *t, struct buf *out, struct str data);
/* Append the record of one success. */
void tfrecord_add_sample(const struct tfrecord_crc *t, const struct shard_format *f,
                         const struct columns *columns, const struct sample *s, struct buf *out);
