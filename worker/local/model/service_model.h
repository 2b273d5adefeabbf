/* Requests held against the service models: what is required, types, lengths, ranges, words and
 * patterns of every member, out of tables that tests/tools/service_table.py writes. What holds
 * between members, and what the models do not say, is in the folders of the services. */
#pragma once
#include "local/sagemaker/sagemaker_rules.h"

/* The faults of an input, in the services' words. Members that the model does not have are faults,
 * too: the services ignore them in silence, and a test had better hear of them. */
void service_model_check(struct request_check *c, const char *service, const char *operation,
                         const json_t *input);
