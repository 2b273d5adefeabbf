/* See answer_error.h. */
#include "answer_error.h"
#include <string.h>

enum err_code answer_error(const struct aws_failure *f)
{
    return f->outcome == AWS_REFUSED ? ERR_AWS : ERR_UNAVAILABLE;
}

enum err_code answer_error_log(const struct aws_failure *f, bool next)
{
    bool expired = next && strcmp(f->code, "InvalidParameterException") == 0;
    return expired ? ERR_MALFORMED : answer_error(f);
}

enum err_code answer_error_model(int status)
{
    return status == 200 ? ERR_NONE : ERR_MODEL;
}

bool answer_error_deleted(enum aws_outcome outcome, int status)
{
    return outcome == AWS_OK || status == 404;
}
