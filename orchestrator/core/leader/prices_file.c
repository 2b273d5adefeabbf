/* See prices_file.h. */
#include "prices_file.h"
#include "core/model.h"

bool prices_file_moved(const struct prices_file *was, const struct prices_file *now)
{
    return was->inode != now->inode || was->size != now->size || was->s != now->s ||
           was->ns != now->ns;
}

void prices_file_again(struct prices_file *was)
{
    *was = (struct prices_file){.s = -1};
}

bool prices_entry(const char *instance_type, const json_t *v, musd_t *ret, struct err *err)
{
    size_t n = strlen(instance_type);
    if (n == 0 || n > INSTANCE_TYPE_MAX) {
        return err_set(err, ERR_INVALID, "'%.64s' is no instance type", instance_type);
    }
    if (!json_is_string(v)) {
        return err_set(err, ERR_INVALID, "the price of %s is no text like \"0.115\"",
                       instance_type);
    }
    return parse_usd(str_of(json_string_value(v)), ret, err);
}
