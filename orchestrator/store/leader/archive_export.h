/* What is written to S3 before an archived campaign's rows are deleted: objects of JSON lines, the
 * summary last. Between leader_begin and leader_commit. Errors: those of query.h. */
#pragma once
#include "core/rows.h"
#include "store/pg/connection.h"

struct archive_object {
    bool due;            /* false: nothing is to be exported, or all is; the rest is not set */
    bool last;           /* the summary */
    char folder[1100];   /* as it was asked for */
    char uri[1200];      /* s3://bucket/.../attempts-000001.jsonl */
    int64_t after, rows; /* its last row and how many; for store_archive_exported */
    struct buf text;     /* the caller calls buf_done */
};
/* The next object. It has n_max rows, or ends with the row that makes it larger than 1 MiB or than
 * a quarter of the bound of ret->text, which begins empty. ERR_TOO_LARGE: that row does not fit
 * into what is left of it. */
bool store_archive_object(struct store *s, int64_t campaign_id, int64_t n_max,
                          struct archive_object *ret, struct err *err) MUST_CHECK;
/* It is in S3; nothing when another folder was asked for since. */
bool store_archive_exported(struct store *s, int64_t campaign_id, const struct archive_object *o,
                            struct err *err) MUST_CHECK;
/* For people: why it could not be written. */
bool store_archive_export_failed(struct store *s, int64_t campaign_id, const char *why,
                                 struct err *err) MUST_CHECK;
