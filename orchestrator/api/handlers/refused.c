/* See refused.h. */
#include "refused.h"

bool refused_by_s3(const struct err *why, const char *action, struct err *err)
{
    if (why->code == ERR_FORBIDDEN || why->code == ERR_NOT_FOUND) {
        return err_set(err, ERR_AWS, "%s; the bucket must be there, and droverd's role needs %s",
                       why->message, action);
    }
    *err = *why;
    return false;
}
