/* See token_path.h. */
#include "common/token_path.h"
#include "common/cleanup.h"
#include <unistd.h>

#define SERVICE_FILE "/var/lib/drover/token"

/* The variable's value; NULL when it is unset or empty. */
static const char *env(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

char *token_path_default(void)
{
    const char *state = env("STATE_DIRECTORY"), *config = env("XDG_CONFIG_HOME");
    if (state != NULL) {
        return xasprintf("%s/token", state);
    }
    if (config != NULL) {
        return xasprintf("%s/drover/token", config);
    }
    return env("HOME") != NULL ? xasprintf("%s/.config/drover/token", env("HOME"))
                               : xstrdup(SERVICE_FILE);
}

char *token_path_find(void)
{
    if (env("DROVER_TOKEN_FILE") != NULL) {
        return xstrdup(env("DROVER_TOKEN_FILE"));
    }
    AUTO_FREE char *file = token_path_default();
    bool service = access(file, F_OK) != 0 && access(SERVICE_FILE, R_OK) == 0;
    return xstrdup(service ? SERVICE_FILE : file);
}
