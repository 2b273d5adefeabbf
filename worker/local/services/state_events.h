/* EventBridge's "SageMaker Training Job State Change": each step of a job goes as an event into the
 * queues that take them. The faults event_lost, event_twice, event_late and event_reordered spoil
 * them. Requires app->mu. */
#pragma once

struct app;
struct local_job;

/* What has happened to the job since it was last told. */
void state_events_tell(struct app *app, struct local_job *job);
