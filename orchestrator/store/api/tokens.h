/* API tokens: hash and role by id. */
#pragma once
#include "store/pg/connection.h"

/* The hash and role of a token. ERR_NOT_FOUND. */
bool apidb_token_get(struct store *s, const char *id, uint8_t ret_hash[static 32],
                     char ret_role[static 16], struct err *err) MUST_CHECK;
/* Calls cb for each of the ids whose token is not valid (any more). */
bool apidb_tokens_ended(struct store *s, const char *const *ids, size_t n,
                        void (*cb)(void *ctx, const char *id), void *ctx,
                        struct err *err) MUST_CHECK;
/* Insert an admin token, or replace the hash of an existing one and make it valid again. */
bool apidb_token_put(struct store *s, const char *id, const uint8_t hash[static 32],
                     const char *name, struct err *err) MUST_CHECK;
