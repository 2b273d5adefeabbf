/* The thread for everything timed: phase changes of jobs, marks left by supervisors, delayed
 * answers, and effects after their connection was closed. All functions except start and stop
 * require app->mu. */
#pragma once
#include "local/http/request.h"

struct app;
struct local_job;
struct MHD_Connection;

/* The thread that makes timed changes when they are due. */
struct job_clock *job_clock_new(void);
void job_clock_free(struct job_clock *t);
bool job_clock_start(struct app *app, struct err *err) MUST_CHECK;
void job_clock_stop(struct app *app);
/* A new timed change was added: compute the next wake-up again. */
void job_clock_wake(struct app *app);
/* Resume a suspended connection at `due`. */
void job_clock_resume_at(struct app *app, struct MHD_Connection *conn, usec_t due);
/* The same for one that waits for a message, of which `seen` had been put when it found none: also
 * as soon as one more is put. */
void job_clock_wait(struct app *app, struct MHD_Connection *conn, usec_t due, uint64_t seen);
void job_clock_message_put(struct app *app);
uint64_t job_clock_messages(const struct app *app);
/* True once the thread is to end: nothing may wait any more. */
bool job_clock_stops(const struct app *app);
/* Carry the request out at `due`; takes it. It already has a line in the wire log and an entry in
 * the journal. */
void job_clock_effect_at(struct app *app, struct request *take, usec_t due);
/* Restore a delayed request from the journal. */
bool job_clock_replay_delayed(struct app *app, const json_t *entry, struct err *err) MUST_CHECK;
void job_clock_forget_delayed(struct app *app, uint64_t id);
/* Drop all delayed effects. */
void job_clock_reset(struct app *app);
