/* SQS: standard queues in memory, with visibility and long polls. They are empty after a restart:
 * what was in them is lost, as EventBridge's events may be. Functions require app->mu. */
#pragma once
#include "local/http/request.h"

#define SQS_MESSAGES_MAX 120000 /* of one queue; the oldest are dropped */

struct app;
struct local_settings;
struct queues;

/* The queues of the configuration. */
struct queues *queues_new(const struct local_settings *set);
void queues_free(struct queues *q);
/* Drop all messages. */
void queues_reset(struct queues *q);
/* Put a message into each queue that takes events of `source`: it can be received from `visible`
 * on. held: not before another message has been put behind it, or `visible`. */
void queues_put_event(struct app *app, const char *source, const char *body, usec_t visible,
                      bool held);

/* One operation each. A ReceiveMessage that finds nothing leaves the request unanswered until
 * r->wait_until at the latest; it is called again then, and when a message has come. */
void sqs_receive(struct request *r);
void sqs_delete(struct request *r);
void sqs_delete_batch(struct request *r);
void sqs_send(struct request *r);
void sqs_get_url(struct request *r);
void sqs_get_attributes(struct request *r);
