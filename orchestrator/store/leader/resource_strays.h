/* Strays that are no jobs, as rows. Writes happen between leader_begin and leader_commit. Errors:
 * those of query.h. */
#pragma once
#include "core/rows.h"
#include "store/pg/connection.h"

/* Those that are not proven absent, by name. Malloc'd, the caller frees them. */
bool view_resource_strays(struct store *s, struct resource_stray_row **ret, size_t *ret_n,
                          struct err *err) MUST_CHECK;
/* Inserts one. *ret_new false: its name is known. One of that name that has ended is booked by a
 * row of its own: this one is as if made then, and billed from then on; row says so. */
bool store_resource_stray_put(struct store *s, struct resource_stray_row *row, bool *ret_new,
                              struct err *err) MUST_CHECK;
/* What is left of it, and what it is billed for. */
bool store_resource_stray_seen(struct store *s, const struct resource_stray_row *row,
                               struct err *err) MUST_CHECK;
/* A row of ours stands for it: its own is deleted. */
bool store_resource_stray_drop(struct store *s, const char *name, struct err *err) MUST_CHECK;
/* It is proven absent, and booked. ERR_CONFLICT when that has happened before. */
bool store_resource_stray_end(struct store *s, const struct resource_stray_end *e,
                              struct err *err) MUST_CHECK;
