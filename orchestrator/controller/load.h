/* The leader's state read from PostgreSQL: whole at takeover, then what changed. */
#pragma once
#include "shell.h"

/* Inside leadership; a transaction a step. */
bool view_load(struct controller *c, struct err *err) MUST_CHECK;
/* Campaigns whose version moved, new ones, limits, projects. */
bool view_refresh(struct controller *c, struct err *err) MUST_CHECK;
/* Cancels what is under way and frees the state. */
void view_free(struct controller *c);
/* Reads one campaign into the state, in the caller's transaction. *ret is the state's. */
bool view_take_campaign(struct controller *c, int64_t campaign_id, int64_t seen_tasks,
                        struct live_campaign **ret, struct err *err) MUST_CHECK;
