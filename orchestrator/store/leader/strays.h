/* Jobs without an attempt: finding them among names, holding and booking them, and attempts that
 * get their job back. Writes happen between leader_begin and leader_commit. Errors: those of
 * query.h. */
#pragma once
#include "core/rows.h"
#include "store/pg/connection.h"

/* Of n names those that no attempt and no stray stands for, and those of void attempts. Malloc'd,
 * the caller frees them. */
bool names_unknown(struct store *s, const char *const *names, size_t n, struct unknown_name **ret,
                   size_t *ret_n, struct err *err) MUST_CHECK;
/* The strays that have not ended, by name. Malloc'd, the caller frees them. */
bool view_strays(struct store *s, struct stray_row **ret, size_t *ret_n,
                 struct err *err) MUST_CHECK;
/* Inserts a stray with its slots and money. *ret_new false: an attempt or a stray stands for it. */
bool store_stray_put(struct store *s, const struct stray_row *row, bool *ret_new,
                     struct err *err) MUST_CHECK;
/* What a Describe says of a living stray, for people. */
bool store_stray_seen(struct store *s, const struct stray_row *row, struct err *err) MUST_CHECK;
/* Its end: booked, slots and money free. ERR_CONFLICT when it was not open. */
bool store_stray_end(struct store *s, const struct stray_end *e, struct err *err) MUST_CHECK;

/* The job of a void attempt is alive: the attempt goes on, of unknown outcome. *ret_revived false:
 * something has replaced it, or identity_hash is not its own. */
bool store_attempt_revive(struct store *s, int64_t epoch, const char *name,
                          const char *identity_hash, musd_t reserve_musd, bool *ret_revived,
                          struct err *err) MUST_CHECK;
/* The price of an attempt that had none, and what it reserves by it. ERR_CONFLICT when it has one,
 * or has ended. */
bool store_attempt_priced(struct store *s, const struct late_price *price,
                          struct err *err) MUST_CHECK;
/* The job under the name of an attempt of unknown outcome is that of an intent that was lost: the
 * attempt becomes that one. ERR_CONFLICT when the attempt has ended. */
bool store_attempt_recast(struct store *s, int64_t attempt_id, const struct intent *as,
                          struct err *err) MUST_CHECK;
