/* Resources other than training jobs: models, endpoint configs, endpoints, file systems, their
 * associations and tasks, and closed lines of the invoice. Each is one JSON object under a name,
 * written to the journal whole whenever it changes. Needs app->mu. */
#pragma once
#include "record_value.h"

struct app;
struct request;

/* The object of that name, borrowed until it is removed; NULL when there is none. */
json_t *record_find(const struct app *app, enum record_kind kind, const char *name);
/* Add an object that request r made (r NULL: none did); takes it. False: nothing was added, and r
 * is answered. */
bool record_add(struct app *app, enum record_kind kind, const char *name, json_t *take,
                struct request *r) MUST_CHECK;
/* Keep a changed object. A failure is logged: memory is ahead of the journal then. */
void record_save(struct app *app, enum record_kind kind, const char *name);
void record_remove(struct app *app, enum record_kind kind, const char *name);
