/* Resources other than training jobs, in memory: one JSON object each, under its kind and name. See
 * records.h for changing them. */
#pragma once
#include "common/json.h"

#define RECORDS_MAX 20000 /* of one kind */

enum record_kind {
    RECORD_MODEL,
    RECORD_ENDPOINT_CONFIG,
    RECORD_ENDPOINT,
    RECORD_FILE_SYSTEM,
    RECORD_ASSOCIATION,
    RECORD_FSX_TASK,
    RECORD_INVOCATIONS, /* of a variant in a minute */
    RECORD_CHARGE,      /* a closed line of the invoice; its name is only a key */
    RECORD_KIND_COUNT
};

struct records {
    json_t *all[RECORD_KIND_COUNT]; /* name -> object, in order of creation */
};

void records_init(struct records *s);
void records_done(struct records *s);
/* As the journal names it. */
const char *record_kind_name(enum record_kind kind);
/* One line of the journal read back. */
bool record_replay(struct records *s, const json_t *line, struct err *err) MUST_CHECK;

/* Members of an object; "" and 0 when absent. */
const char *record_text(const json_t *o, const char *key);
int64_t record_i64(const json_t *o, const char *key);
void record_set_text(json_t *o, const char *key, const char *value);
void record_set_i64(json_t *o, const char *key, int64_t value);
/* Seconds since the epoch, as answers show an instant. */
json_t *record_epoch(int64_t at_us);
