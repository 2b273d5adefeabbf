/* Rows between transfers: what the end of a transfer means for its row (done, failed, later, parked
 * with its host), and which row has the next transfer. Part of fetch.c; nobody else includes it. */
#pragma once
#include "fetch_curl.h"

#define FETCH_DOWN_TEXT "host has stopped answering, not tried"

/* Begin or go on with t->sample at its place (fetch.c). */
void fetch_begin(struct fetch *f, struct transfer *t);

/* t has ended so and is off the wire. */
void fetch_rows_act(struct fetch *f, struct transfer *t, const struct verdict *v);
/* The row fails; with what was said of it before, if its host was given up since. */
void fetch_rows_fail(struct fetch *f, struct transfer *t, const char *text);
/* The row waits for its host, which is silent; a try that does not count. */
void fetch_rows_park(struct fetch *f, struct transfer *t, const char *text);
/* t is free and the row the caller's. */
struct sample *fetch_rows_detach(struct fetch *f, struct transfer *t);
/* The next row that may be asked for, or that must fail now; NULL: none. */
struct sample *fetch_rows_next(struct fetch *f);
/* Nothing waits and nothing will come. */
bool fetch_rows_ended(struct fetch *f);
/* What is due by now; silence and the network are looked at. */
void fetch_rows_tick(struct fetch *f, int64_t now_us);
/* Rows that wait are freed. */
void fetch_rows_free(struct fetch *f);
