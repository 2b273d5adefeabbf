/* What survives a restart: ROOT/state/journal.jsonl, one line of JSON a change, appended before the
 * change is answered and flushed to disk before a created job is acknowledged. Read back whole on
 * start. */
#pragma once
#include "common/json.h"

struct app;
struct request;
struct job;

/* More than the requests that can be between their two writes: the server's threads, and a delayed
 * one. */
#define STATE_CREATES 16

struct state {
    int fd;
    struct {
        uint64_t id;          /* of the request; 0 none */
        int64_t seq;          /* of the job */
    } creates[STATE_CREATES]; /* the last ones read back */
    size_t creates_n;         /* how many there were */
};

/* Make the folders, read the journal into app->jobs, open it for appending. */
bool state_open(struct app *app, struct err *err) MUST_CHECK;
void state_close(struct state *s);
/* A job was created by request `id` (0: by a fault). */
bool state_write_create(struct state *s, const struct job *job, uint64_t id,
                        struct err *err) MUST_CHECK;
/* Everything of a job that can change. */
bool state_write_job(struct state *s, const struct job *job, struct err *err) MUST_CHECK;
/* A request whose effect is due later (body kept), and that it has been carried out. */
bool state_write_delayed(struct state *s, const struct request *r, int64_t due_us,
                         struct err *err) MUST_CHECK;
bool state_write_delayed_done(struct state *s, uint64_t id, struct err *err) MUST_CHECK;
/* Put the journal on disk. Safe without the app's mutex. */
bool state_sync(const struct state *s, struct err *err) MUST_CHECK;
/* Forget everything. */
bool state_reset(struct state *s, struct err *err) MUST_CHECK;
