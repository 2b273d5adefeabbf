/* The servers that drover login has kept, each with its token, in one file that only its owner may
 * read: {"current": NAME, "contexts": {NAME: {"url": URL, "token": TOKEN}}}. */
#pragma once
#include "common/err.h"
#include "common/json.h"

/* $XDG_CONFIG_HOME/drover/contexts.json, else below ~/.config; NULL for a user without a home. The
 * caller frees it. */
char *contexts_path(void);
/* The file's content; without a file an empty one. The caller owns *ret. ERR_INVALID: it is not
 * such a file, or others may read it. */
bool contexts_read(json_t **ret, struct err *err) MUST_CHECK;
/* Replace the file, whole or not at all. */
bool contexts_write(const json_t *v, struct err *err) MUST_CHECK;
/* The context in use; NULL: there is none. Owned by v. */
const json_t *contexts_current(const json_t *v);
