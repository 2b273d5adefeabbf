/* SageMaker's state changes, from the queue that EventBridge fills: each says which job to describe
 * now. With no queue set nothing here does anything. */
#pragma once
#include "shell.h"

struct event_intake *event_intake_new(struct controller *c);
void event_intake_free(struct event_intake *e);
/* We lead: the queue is asked, again and again. */
void event_intake_start(struct controller *c);
/* Events are relied on no longer, or again: the Lists follow. Counts what observing costs. */
void event_intake_tick(struct controller *c);
/* We lead no longer. Messages that were received and not deleted come again. */
void event_intake_cancel(struct controller *c);
