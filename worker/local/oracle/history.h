/* Jobs of the past: POST /_local/history with
 *
 * {"name":"t-9-old-{}-a1-0a1b2c3d","count":5000,"from":1700000000,"until":1700003600}
 *
 * adds `count` jobs that have ended, named by their number from 0 on, created evenly between two
 * instants (seconds; now when not given). They have no process, no slot and no cost, and are
 * forgotten at a restart. */
#pragma once
#include "local/http/request.h"

/* With the mutex held. */
void history_post(struct request *r);
