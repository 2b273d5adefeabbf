/* What changed in PostgreSQL since the leader's state was read. */
#pragma once
#include "shell.h"

/* Campaigns whose version moved, new ones, limits, projects. False: leadership lost. */
bool view_refresh(struct controller *c) MUST_CHECK;
/* Earlier endpoints and file systems of what came (back) into view since they were read, before the
 * next ones are intended. One campaign that comes at every look keeps no other waiting. False:
 * leadership lost. */
bool view_tries(struct controller *c) MUST_CHECK;
/* Cancels what is under way and frees the state. */
void view_free(struct controller *c);
/* The campaign, read into the state when it is not there. NULL: it cannot be read now. */
struct live_campaign *view_find_campaign(struct controller *c, int64_t campaign_id);
/* Its row once more, if it has ended: nobody looks at it then, though a person may have edited it.
 * False: it could not be read, which is done again. */
bool view_refresh_ended(struct controller *c, struct live_campaign *lc) MUST_CHECK;
/* A campaign that is not in memory, of which memory has seen this number of tasks. NULL: its rows
 * are locked or refused; it is tried again. */
struct live_campaign *view_take(struct controller *c, int64_t campaign_id, int64_t seen_tasks);
/* Reads the rows of the projects, within a transaction. */
bool view_refresh_projects(struct controller *c, struct err *err) MUST_CHECK;
