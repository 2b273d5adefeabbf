/* See request_parts.h. */
#include "request_parts.h"
#include "core/spec/spec_read.h"

bool request_expand(const struct training_request_input *in, const char *what, const char *template,
                    size_t max, char **ret, struct err *err)
{
    AUTO_BUF struct buf out = BUF_INIT(SPEC_STRING_MAX);
    struct err why = ERR_INIT;
    if (!spec_expand(template, in->task, &out, &why)) {
        return err_set(err, ERR_INVALID, "%s: %s", what, why.message);
    }
    if (out.n > max) {
        return err_set(err, ERR_INVALID, "%s is %zu bytes long; CreateTrainingJob takes %zu", what,
                       out.n, max);
    }
    *ret = xstrdup(buf_cstr(&out));
    return true;
}
