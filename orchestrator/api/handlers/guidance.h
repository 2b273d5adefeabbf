/* Guidance for a campaign that is held, stuck or cannot run: what happened, the evidence, since
 * when, and the steps that mend it. Made once here; command line and dashboard show it as it is. */
#pragma once
#include "common/buf.h"

/* Appends a JSON array, the most urgent first; [] when facts_json is NULL. facts_json: the row of
 * api_campaign_guidance. Each element has kind, title, text, evidence, since, stage, runs (whether
 * parts may run all the same) and steps: action, label, command, stage, parts, url. */
void guidance_out(struct buf *b, int64_t campaign_id, const char *facts_json);

/* Appends a command, or what to do, with {c} replaced by the campaign and {s} by the stage. */
void guidance_command(struct buf *b, const char *text, int64_t campaign_id, const char *stage);
