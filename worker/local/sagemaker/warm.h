/* Warm pools: the instances an ended job leaves behind for the next one that matches.
 *
 *   job ends --kept?--> Available --taken--> Reused      (the taker shows InUse while it runs)
 *      |                    |
 *      +--> Terminated <----+-- expired, UpdateTrainingJob 0, life of the cluster over
 *
 * Instances of an Available pool still count against the type's quota, so the job stays on the live
 * list until its pool ends. All functions require app->mu. Source: Amazon SageMaker developer
 * guide, "SageMaker AI Managed Warm Pools". */
#pragma once
#include "common/json.h"
#include "common/units.h"

struct app;
struct local_job;

/* The longest keep-alive a request may ask for, seconds. */
int64_t warm_keep_max_s(const struct app *app);
/* Instances of a type in Available pools. */
int64_t warm_held(const struct app *app, const char *type);
/* The pool that a create request takes: the job that left it; NULL when none matches. */
struct local_job *warm_match(const struct app *app, const json_t *request);
/* `job`, about to be journalled, runs on the pool of `left`. That journal line alone records the
 * hand-over; a restart reads it. */
void warm_join(struct local_job *job, const struct local_job *left);
/* `left` has no pool any more, from the creation of `job` on. */
void warm_hand_over(struct app *app, struct local_job *left, const struct local_job *job);
/* The job has just ended with job_end: decide whether its instances are kept. */
void warm_keep(const struct app *app, struct local_job *job, usec_t now);
/* End the pools whose time is over, each at the instant it was due. */
void warm_expire(struct app *app, usec_t now);
/* WarmPoolStatus as seen at an instant; NULL when there is nothing to show. */
json_t *warm_status(const struct local_job *job, usec_t at);
/* Set the keep-alive of `job`'s pool, which is Available, counted from the end of the job. The pool
 * ends now when that is over. The caller wakes the job clock. Errors: the journal's. */
bool warm_keep_for(struct app *app, struct local_job *job, int64_t keep_s,
                   struct err *err) MUST_CHECK;
