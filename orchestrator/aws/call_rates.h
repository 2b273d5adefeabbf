/* The rates of all operations of operation.def, adapted to what AWS answers: what it throttles is
 * sent more rarely until it is answered well again (core/capacity/call_rate.h). One for all clients
 * of an account. Each operation has its own rate, so that Stops and Describes never wait for Lists.
 * CreateTrainingJob is not held here: core/leader/call_pace.h does, before it is signed. */
#pragma once
#include "common/aws.h"

struct call_rates;
struct call_rates *call_rates_new(void);
/* After its clients. NULL is ignored. */
void call_rates_free(struct call_rates *r);
/* The client's calls keep these rates from now on. */
void call_rates_attach(struct call_rates *r, struct aws_client *c);
/* Calls that had to wait or were not sent for a rate's sake, since the beginning. */
int64_t call_rates_held_n(const struct call_rates *r);
