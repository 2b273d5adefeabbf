/* What of an archive is written to S3 before its rows are deleted: one object of it at a time, of
 * as many archives as there are places. */
#pragma once
#include "common/base.h"

struct controller;
struct operation_row;

/* Takes the answer of the object under way and sends the next one. True: there are more to write,
 * or one waits for its next try; nothing may be deleted yet. */
bool archive_export_goes_on(struct controller *c, const struct operation_row *op);
/* The leadership ends: the object under way is written again by the next leader. */
void archive_export_cancel(struct controller *c);
