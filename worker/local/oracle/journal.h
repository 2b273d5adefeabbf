/* The state that survives a restart: ROOT/state/journal.jsonl, one line of JSON per change,
 * appended before the change is answered and flushed to disk before a created job is acknowledged.
 * Read completely at start. */
#pragma once
#include "common/json.h"

struct app;
struct request;
struct local_job;

/* More than the requests that can be between their two writes: one per server thread and a delayed
 * one. */
#define JOURNAL_CREATES 16

struct journal {
    int fd;
    json_t *creates[JOURNAL_CREATES]; /* the last creating requests read back, for the wire log */
    size_t creates_n;                 /* number read back */
};

/* Create the folders, read the journal into app->jobs, open it for appending. */
bool journal_open(struct app *app, struct err *err) MUST_CHECK;
void journal_close(struct journal *s);
/* A job was created by request `id` (0: by a fault). */
bool journal_write_create(struct journal *s, const struct local_job *job, uint64_t id,
                          struct err *err) MUST_CHECK;
/* Write everything of a job that can change. */
bool journal_write_job(struct journal *s, const struct local_job *job, struct err *err) MUST_CHECK;
/* An object of records.h, NULL: removed. r: the request that created it, NULL: none did. */
bool journal_write_record(struct journal *s, const char *kind, const char *name, json_t *value,
                          const struct request *r, struct err *err) MUST_CHECK;
/* A request whose effect is due later (body kept), and that it has been carried out. */
bool journal_write_delayed(struct journal *s, const struct request *r, int64_t due_us,
                           struct err *err) MUST_CHECK;
bool journal_write_delayed_done(struct journal *s, uint64_t id, struct err *err) MUST_CHECK;
/* Flush the journal to disk. Safe without the app's mutex. */
bool journal_sync(const struct journal *s, struct err *err) MUST_CHECK;
/* Delete all state. */
bool journal_reset(struct journal *s, struct err *err) MUST_CHECK;
