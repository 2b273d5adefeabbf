/* API tokens and browser sessions. */
#pragma once
#include "store/pg/connection.h"

#define TOKEN_PROJECTS_MAX  8
#define TOKEN_PROJECTS_TEXT 640 /* names joined by commas */
#define TOKEN_NAME_TEXT     260 /* 64 characters */

struct apidb_token {
    uint8_t hash[32];
    char role[16];
    char projects[TOKEN_PROJECTS_TEXT]; /* joined by commas; "" for all */
    char name[TOKEN_NAME_TEXT];         /* what people call it */
    bool to_note;                       /* that it is used was not noted for a minute */
};
struct apidb_session {
    int64_t id;
    char token_id[33];
    char role[16];
    char projects[TOKEN_PROJECTS_TEXT];
    char name[TOKEN_NAME_TEXT]; /* of its token */
    bool to_note;
};
struct apidb_token_new {
    const char *id, *role, *name, *by;
    const uint8_t *hash;                      /* of 32 bytes */
    const char *projects[TOKEN_PROJECTS_MAX]; /* n 0: all */
    size_t projects_n;
    int64_t lives_s; /* 0: for ever */
};
/* ERR_NOT_FOUND: unknown, revoked or expired. */
bool apidb_token_get(struct store *s, const char *id, struct apidb_token *ret,
                     struct err *err) MUST_CHECK;
/* Insert the token file's token as an admin's, or replace its hash. A revoked one stays revoked. */
bool apidb_token_put(struct store *s, const char *id, const uint8_t hash[static 32],
                     const char *name, struct err *err) MUST_CHECK;
bool apidb_token_new(struct store *s, const struct apidb_token_new *t, struct err *err) MUST_CHECK;
/* Until the transaction ends nobody else changes it; none: nothing is locked. */
bool apidb_token_lock(struct store *s, const char *id, struct err *err) MUST_CHECK;
/* Revoke it, or let it expire in lives_s (-1: as it is). ERR_NOT_FOUND. */
bool apidb_token_change(struct store *s, const char *id, bool revoke, int64_t lives_s,
                        struct err *err) MUST_CHECK;
/* A JSON list. id NULL: all. */
bool apidb_tokens(struct store *s, const char *id, struct buf *ret_json,
                  struct err *err) MUST_CHECK;
/* Calls cb for each of the names (a token's id, or "session 7") that is not valid (any more). */
bool apidb_tokens_ended(struct store *s, const char *const *names, size_t n,
                        void (*cb)(void *ctx, const char *name), void *ctx,
                        struct err *err) MUST_CHECK;
bool apidb_session_get(struct store *s, const uint8_t hash[static 32], struct apidb_session *ret,
                       struct err *err) MUST_CHECK;
bool apidb_session_new(struct store *s, const uint8_t hash[static 32], const char *token_id,
                       int64_t lives_s, const char *address, struct err *err) MUST_CHECK;
/* End one by id (0: by hash), of this token only (NULL: of any). ERR_NOT_FOUND. */
bool apidb_session_end(struct store *s, int64_t id, const uint8_t *hash, const char *token_id,
                       struct err *err) MUST_CHECK;
/* A JSON list of the live ones. token_id NULL: of all. own: the one that asks, or 0. */
bool apidb_sessions(struct store *s, const char *token_id, int64_t own, struct buf *ret_json,
                    struct err *err) MUST_CHECK;
/* Note that a token, and with session_id > 0 that session of it, is used. */
bool apidb_token_used(struct store *s, const char *id, int64_t session_id,
                      struct err *err) MUST_CHECK;
/* Project of a campaign; with 0 of an operation; with 0 too, of the endpoint or file system of this
 * name, or of the pool that the job of this name left. ERR_NOT_FOUND. */
bool apidb_project_of(struct store *s, int64_t campaign_id, int64_t operation_id, const char *name,
                      char ret[static 128], struct err *err) MUST_CHECK;
