/* The table of settings of `copy`. */
#include "copy_options.h"
#include "file_list.h"
#include "job/settings.h"
#include "secret.h"
#include "worker_protocol.h"

#define SETTING(name, flag, kind, dflt, min, max, field, words, help)                              \
    {#name, flag, SETTING_##kind, dflt, min, max, offsetof(struct copy_options, field),            \
     words, help},
static const struct setting rows[] = {
#include "worker_copy.def"
};

bool copy_options_load(const json_t *hyperparameters, int argc, char *const *argv,
                       struct copy_options *ret, struct buf *faults)
{
    struct copy_options o = {0};
    struct err err = ERR_INIT;
    bool loaded =
        settings_load(rows, ARRAY_LEN(rows), &o, hyperparameters, argc, argv, NULL, faults);
    if (loaded && !file_list_check_target(o.to, &err)) {
        buf_addf(faults, "to '%.200s': %s\n", o.to, err.message);
    }
    if (loaded && o.secret[0] != '\0' && !secret_arn_ok(o.secret)) {
        buf_addf(faults,
                 "secret '%.200s': expected arn:aws:secretsmanager:... or arn:aws:ssm:...\n",
                 o.secret);
    }
    if (!loaded || faults->n > 0) {
        copy_options_done(&o);
        return false;
    }
    *ret = o;
    return true;
}

void copy_options_done(struct copy_options *o)
{
    settings_done(rows, ARRAY_LEN(rows), o);
}

void copy_options_help(struct buf *out)
{
    settings_help(rows, ARRAY_LEN(rows), out);
}
