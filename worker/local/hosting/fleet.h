/* The instances of one production variant: a supervisor process above its model servers, started,
 * watched and stopped here, and the life of endpoints, which follows from it. ROOT/fleets/<id>/
 * holds spec.json, lock, stop, kill and algo-<k>/. Requires app->mu.
 *
 *   Creating --ready--> InService --UpdateEndpoint--> Updating --ready--> InService (new fleet)
 *      |                                                 +--fails--> InService (old fleet, reason)
 *      +--fails--> Failed;   InService, Failed --DeleteEndpoint--> Deleting --> gone
 *
 * An instance is billed from the instant its endpoint is InService with it until DeleteEndpoint or
 * the fleet that replaces it. AWS does not document the instant; Describe shows both here. */
#pragma once
#include "common/json.h"
#include "common/units.h"

#define FLEET_ID_MAX 96

struct app;

/* One timed step of every endpoint; returns when the next is due. */
usec_t hosting_tick(struct app *app, usec_t now);
/* The fleets of an endpoint config under their ids, not started; NULL with the model that is gone
 * in *ret_missing. n: which deployment of the endpoint it is. */
json_t *fleets_new(const struct app *app, const char *endpoint, const json_t *config, int64_t n,
                   const char **ret_missing);
/* Instances of a type (NULL: of all) that endpoints hold. */
int64_t fleets_instances(const struct app *app, const char *type);
/* An endpoint leaves the fleets of `list` at an instant: they are asked to end, and what they cost
 * is put on the invoice. */
void fleets_leave(struct app *app, const char *endpoint, json_t *list, usec_t at);
/* SIGKILL to all servers: drover-local is reset. */
void fleets_kill(const struct app *app);
/* The role of a fleet's containers; NULL: there is no such fleet. */
const char *fleet_role(const struct app *app, const char *id);
/* How many of their supervisors run. */
size_t fleets_alive(const struct app *app);
