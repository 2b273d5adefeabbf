/* Which model the training stage has made that an endpoint is to serve: AWS is asked about its
 * job. */
#pragma once
#include "shell.h"

/* The place of the model, until the next pass, or NULL when the file says it. False: AWS has not
 * said it yet, or nobody knows it (leader_endpoint_no_model). */
bool endpoint_model_known(struct controller *c, struct live_campaign *lc, struct live_stage *ls,
                          const char **ret);
/* Forgets what stages asked for that do not wait any more. */
void endpoint_models_forget(struct controller *c);
/* No answer comes any more. */
void endpoint_models_cancel(struct controller *c);
