/* Records of a text file, one by one, with their lines.
 *
 * csv and tsv: a header, then records of as many fields; RFC 4180 quotes, line ends \n, \r\n or \r,
 * also within quotes. txt: a line is one field as it stands. Empty lines are no records. jsonl: an
 * object per line. json: one list of objects. A byte order mark is skipped. */
#pragma once
#include "common/str.h"
#include <jansson.h>

#define RECORDS_BYTES_MAX  ((size_t)16 << 20) /* of a record */
#define RECORDS_FIELDS_MAX 2000

enum records_format { RECORDS_CSV, RECORDS_TSV, RECORDS_TXT, RECORDS_JSON, RECORDS_JSONL };

struct record_reader;
/* Open path and read the header; name: the file's name in messages. ERR_INVALID with a text for the
 * user, ERR_NOT_FOUND or ERR_IO. The caller frees *ret. */
bool records_open(const char *path, const char *name, enum records_format format, bool gzip,
                  struct record_reader **ret, struct err *err) MUST_CHECK;
void records_free(struct record_reader *r);
/* Read the next record; *ret_end: there is none. ERR_INVALID names the line. */
bool records_next(struct record_reader *r, bool *ret_end, struct err *err) MUST_CHECK;
/* Line on which the current record begins, from 1. */
int64_t records_line(const struct record_reader *r);
/* csv, tsv and txt: the names of the header, borrowed until records_free. */
size_t records_names(const struct record_reader *r, char *const **ret);
/* csv, tsv and txt: a field of the current record, borrowed until the next. */
struct str records_field(const struct record_reader *r, size_t i);
/* json and jsonl: the current record, borrowed until the next. */
const json_t *records_object(const struct record_reader *r);
/* ERR_INVALID about the current record: 'NAME', line N: ... Returns false. */
bool records_fault(const struct record_reader *r, struct err *err, const char *fmt, ...)
    PRINTF(3, 4);
