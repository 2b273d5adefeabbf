/* drover-local's side of a running job: the job's folder, the specification its supervisor reads,
 * starting the supervisor, asking it to stop. ROOT/jobs/<name>/ holds spec.json, lock, begun, stop,
 * kill and algo-<k>/. */
#pragma once
#include "common/err.h"

struct app;
struct local_job;

/* True when the configuration has a program for the job's image; else ret_reason is the
 * FailureReason (1,025 bytes). */
bool process_image_known(const struct app *app, const struct local_job *job, char *ret_reason);
/* Write the specification and start a supervisor. Idempotent: the supervisor that gets the lock
 * runs the job; one that finds a dead predecessor reports the job as lost. */
bool process_start(struct app *app, const struct local_job *job, struct err *err) MUST_CHECK;
/* Ask for the end: SIGTERM now, SIGKILL after the grace. */
bool process_stop(const struct app *app, const struct local_job *job, struct err *err) MUST_CHECK;
/* Prepare the folder for another run: remove everything of the last one except the logs. False
 * while its supervisor is still running. Idempotent. */
bool process_renew(const struct app *app, const struct local_job *job, struct err *err) MUST_CHECK;
/* Remove what the supervisor reported. */
void process_marks_remove(const struct app *app, const struct local_job *job);
/* SIGKILL now, without an exit record. */
void process_kill(const struct app *app, const struct local_job *job);
/* Run this program as `drover-local WORD FOLDER`, in a session of its own. */
bool process_spawn(const struct app *app, const char *word, const char *folder,
                   struct err *err) MUST_CHECK;
/* True while a process holds the lock of that file. */
bool process_is_locked(const char *path);
/* True while a supervisor holds the job's lock. */
bool process_alive(const struct app *app, const struct local_job *job);
