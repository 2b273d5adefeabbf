/* Where the first admin token lies, for droverd, which makes it, and drover, which reads it. */
#pragma once
#include "base.h"

/* The token file when no setting names one: token in $STATE_DIRECTORY (which systemd gives a
 * service), else drover/token in $XDG_CONFIG_HOME or ~/.config; for a user without a home
 * /var/lib/drover/token. The caller frees it. */
char *token_path_default(void);
/* The file drover reads: $DROVER_TOKEN_FILE, else the default, else, when that is not there and the
 * one of the installed service can be read, /var/lib/drover/token. The caller frees it. */
char *token_path_find(void);
