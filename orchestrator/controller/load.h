/* The leader's state read from PostgreSQL: whole at takeover, then what changed. */
#pragma once
#include "shell.h"

/* Inside leadership; a transaction a step. */
bool view_load(struct controller *c, struct err *err) MUST_CHECK;
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
