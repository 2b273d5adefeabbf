/* Secrets Manager and the Parameter Store, out of the configuration. See services.h. */
#include "common/cleanup.h"
#include "local/app.h"
#include "services.h"

static const char *secret_of(const struct request *r, const char *arn)
{
    return arn == NULL ? NULL : json_string_value(json_object_get(r->app->set.secrets, arn));
}

void secrets_get(struct request *r)
{
    const char *arn = json_string_value(json_object_get(r->input, "SecretId"));
    const char *text = secret_of(r, arn);
    if (text == NULL) {
        reply_error(r, 400, "ResourceNotFoundException",
                    "Secrets Manager can't find the specified secret.");
        return;
    }
    reply_json(r, json_pack("{s:s,s:s}", "ARN", arn, "SecretString", text));
}

/* A parameter is asked for by its name, with the slash it begins with, or by its ARN. */
void secrets_get_parameter(struct request *r)
{
    const char *name = json_string_value(json_object_get(r->input, "Name"));
    AUTO_FREE char *arn = name != NULL && name[0] == '/'
                              ? xasprintf("arn:aws:ssm:%s:%s:parameter%s", r->app->set.region,
                                          r->app->set.account, name)
                              : xstrdup(name == NULL ? "" : name);
    const char *text = secret_of(r, arn);
    if (text == NULL) {
        reply_error(r, 400, "ParameterNotFound", "The parameter couldn't be found.");
        return;
    }
    reply_json(r, json_pack("{s:{s:s,s:s}}", "Parameter", "Name", name, "Value", text));
}
