/* The two AWS profile files as one set of profiles. The config file names them "[profile x]" (and
 * "[default]"), the credentials file "[x]"; of a key in both the credentials file's counts. */
#pragma once
#include "ini.h"

struct profiles {
    char *config_path, *credentials_path;
    struct ini config; /* sections renamed: "p:x" for profile x, "s:..." for all others */
    struct ini credentials;
};

/* Paths from AWS_CONFIG_FILE and AWS_SHARED_CREDENTIALS_FILE, else below ~/.aws. A missing file is
 * empty. ERR_UNAUTHENTICATED, ERR_MALFORMED or ERR_TOO_LARGE names the file. profiles_done frees.
 */
bool profiles_load(struct profiles *ret, struct err *err) MUST_CHECK;
void profiles_done(struct profiles *p);
bool profiles_has(const struct profiles *p, const char *name);
/* Value of a key in a profile, of both files or of one of them; NULL: absent. Borrowed from p. */
const char *profiles_value(const struct profiles *p, const char *name, const char *key);
const char *profiles_config_value(const struct profiles *p, const char *name, const char *key);
const char *profiles_credentials_value(const struct profiles *p, const char *name, const char *key);
/* Value of a key in a "[services x]" section of the config file. */
const char *profiles_service_value(const struct profiles *p, const char *services, const char *key);
/* The profile chosen by AWS_DEFAULT_PROFILE or AWS_PROFILE; NULL: none, which means "default". */
const char *profiles_chosen(void);
/* An environment variable; NULL when unset or empty. */
const char *env_value(const char *name);
/* Append the whole file, at most out->max bytes. *ret_found is false when there is no such file. */
bool file_read_small(const char *path, struct buf *out, bool *ret_found,
                     struct err *err) MUST_CHECK;
