/* The queue that EventBridge fills with events of SageMaker: messages are received, read and
 * deleted. Anybody who may write to the queue can put anything there, and an event may be old: it
 * says only which job to look at. Source: Amazon SQS API reference, ReceiveMessage,
 * DeleteMessageBatch, GetQueueAttributes; Amazon SageMaker developer guide, "SageMaker Training Job
 * State Change". */
#pragma once
#include "json_call.h"

#define EVENT_QUEUE_BATCH       10   /* SQS gives and takes no more at once */
#define EVENT_QUEUE_RECEIPT_MAX 4096 /* one that is longer is left to expire */

struct training_event { /* a value */
    char name[64];      /* of the training job */
    char status[24], secondary[32];
    usec_t modified; /* LastModifiedTime by AWS' clock; 0: not told */
};
/* The event in the body of a message; false: it is something else, or broken. Pure. */
bool training_event_read(struct str body, struct training_event *ret);

struct queue_message {
    const char *receipt; /* for event_queue_delete; borrowed for the callback */
    bool is_event;
    struct training_event event;
};
/* On success failure is NULL; messages[n], n <= EVENT_QUEUE_BATCH. */
typedef void (*event_queue_receive_cb)(void *ctx, const struct queue_message *messages, size_t n,
                                       const struct aws_failure *failure);
typedef void (*event_queue_delete_cb)(void *ctx, const struct aws_failure *failure);
/* waiting: messages in the queue, about. */
typedef void (*event_queue_look_cb)(void *ctx, int64_t waiting, const struct aws_failure *failure);

struct event_queue_call;
/* Waits up to 20 s for at least one message; gives at most `most` <= EVENT_QUEUE_BATCH. What is not
 * deleted within a minute comes again. */
struct event_queue_call *event_queue_receive(struct aws_client *c, struct aws_gate gate,
                                             const char *url, int most, event_queue_receive_cb cb,
                                             void *ctx);
/* receipts[n], 0 < n <= EVENT_QUEUE_BATCH; copied. One that has expired is no failure. */
struct event_queue_call *event_queue_delete(struct aws_client *c, struct aws_gate gate,
                                            const char *url, char *const *receipts, size_t n,
                                            event_queue_delete_cb cb, void *ctx);
struct event_queue_call *event_queue_look(struct aws_client *c, struct aws_gate gate,
                                          const char *url, event_queue_look_cb cb, void *ctx);
void event_queue_cancel(struct event_queue_call *call);
