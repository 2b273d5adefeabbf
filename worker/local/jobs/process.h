/* drover-local's side of a running job: the job's folder, the specification its supervisor reads,
 * starting the supervisor, asking it to stop. ROOT/jobs/<name>/ holds spec.json, lock, begun, stop,
 * kill and algo-<k>/. */
#pragma once
#include "common/err.h"

struct app;
struct job;

/* Whether the configuration has a program for the job's image; else the FailureReason (1,025
 * bytes). */
bool process_image_known(const struct app *app, const struct job *job, char *ret_reason);
/* Write the specification and start a supervisor. Doing it again is harmless: the one that gets the
 * lock works, and one that finds a dead predecessor reports the job lost. */
bool process_start(const struct app *app, const struct job *job, struct err *err) MUST_CHECK;
/* Ask for the end: SIGTERM now, SIGKILL after the grace. */
bool process_stop(const struct app *app, const struct job *job, struct err *err) MUST_CHECK;
/* Make the folder ready for another run: what the last one left goes, but for the logs.
 * False while its supervisor is still at work. Doing it again is harmless. */
bool process_renew(const struct app *app, const struct job *job, struct err *err) MUST_CHECK;
/* Forget what the supervisor told. */
void process_marks_remove(const struct app *app, const struct job *job);
/* SIGKILL now, and no exit record. */
void process_kill(const struct app *app, const struct job *job);
/* A supervisor holds the job's lock. */
bool process_alive(const struct app *app, const struct job *job);
