/* Rows between transfers: what the end of a transfer means for its row (done, failed, later, parked
 * with its host), and which row is transferred next. Included by fetch.c only and calls nothing of
 * it. */
#pragma once
#include "fetch_curl.h"

#define FETCH_DOWN_TEXT "host has stopped answering, not tried"

/* Handle the end of t, which curl no longer knows, according to its verdict. True: a redirect, t
 * still has its row and the caller begins the next hop; false: t is free. */
bool fetch_rows_act(struct fetch *f, struct transfer *t, const struct verdict *v) MUST_CHECK;
/* Fail the row. If its host was given up since, the reason says so. */
void fetch_rows_fail(struct fetch *f, struct transfer *t, const char *text);
/* Park the row with its silent host; the attempt does not count. */
void fetch_rows_park(struct fetch *f, struct transfer *t, const char *text);
/* Take the row from t; the row is the caller's and t is free. */
struct sample *fetch_rows_detach(struct fetch *f, struct transfer *t);
/* The next row that may be fetched or that must fail now; NULL: none. */
struct sample *fetch_rows_next(struct fetch *f);
/* True when no row waits and none will come. */
bool fetch_rows_ended(struct fetch *f);
/* Release the rows that are due; check silent hosts and the network. */
void fetch_rows_tick(struct fetch *f, int64_t now_us);
/* Free the waiting rows. */
void fetch_rows_free(struct fetch *f);
