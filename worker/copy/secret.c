/* Reading a secret. Source: GetSecretValue of Secrets Manager, GetParameter of Systems Manager. */
#include "secret.h"
#include "common/aws.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "common/retry.h"
#include "common/version.h"
#include <poll.h>

#define TRIES           6
#define REPLY_BYTES_MAX ((size_t)128 << 10)
#define CALL_TIMEOUT_US (20 * USEC_PER_SEC)
#define ARN_FIELDS      6 /* arn, partition, service, region, account, resource */

struct arn {
    bool ssm;
    char region[64];
    struct str name; /* of a parameter, with its slash */
};

static bool arn_parse(const char *text, struct arn *ret)
{
    struct str rest = str_of(text);
    struct str field[ARN_FIELDS];
    for (int i = 0; i < ARN_FIELDS - 1; i++) {
        field[i] = str_split(&rest, ':');
    }
    field[ARN_FIELDS - 1] = rest;
    bool ssm = str_eq_cstr(field[2], "ssm");
    bool known = ssm || str_eq_cstr(field[2], "secretsmanager");
    const char *kind = ssm ? "parameter/" : "secret:";
    if (!str_eq_cstr(field[0], "arn") || !known || field[3].n == 0 ||
        field[3].n >= sizeof ret->region || !str_starts(rest, kind) || rest.n == strlen(kind)) {
        return false;
    }
    ret->ssm = ssm;
    memcpy(ret->region, field[3].p, field[3].n);
    ret->region[field[3].n] = '\0';
    ret->name =
        (struct str){rest.p + strlen("parameter"), rest.n - MIN(rest.n, strlen("parameter"))};
    return true;
}

bool secret_arn_ok(const char *arn)
{
    struct arn ignored;
    return strlen(arn) <= 2048 && arn_parse(arn, &ignored);
}

struct ask {
    bool done, passing;
    char *value;
    struct err err;
    bool ssm;
};

static bool take_value(struct ask *a, struct str body)
{
    AUTO_JSON json_t *o = NULL;
    json_t *inner = NULL;
    const char *value = NULL;
    struct err ignored = ERR_INIT;
    if (!json_parse(body, REPLY_BYTES_MAX, &o, &ignored)) {
        return false;
    }
    inner = a->ssm ? json_object_get(o, "Parameter") : o;
    value = json_string_value(json_object_get(inner, a->ssm ? "Value" : "SecretString"));
    a->value = value == NULL ? NULL : xstrdup(value);
    return value != NULL;
}

static void on_reply(void *ctx, const struct aws_reply *r)
{
    struct ask *a = ctx;
    a->done = true;
    a->passing = r->outcome != AWS_OK && r->outcome != AWS_REFUSED;
    if (r->outcome != AWS_OK) {
        (void)aws_reply_err(r, a->ssm ? "GetParameter" : "GetSecretValue", &a->err);
        if (strstr(r->code, "AccessDenied") != NULL) {
            a->err.http_status = 403;
        }
    } else if (!take_value(a, r->body)) {
        (void)err_set(&a->err, ERR_INVALID, "the secret has no text");
    }
}

static void ask_once(struct aws_client *c, struct loop *l, const struct arn *arn, const char *text,
                     struct ask *a)
{
    AUTO_BUF struct buf body = BUF_INIT(8192);
    struct json_out w;
    json_out_init(&w, &body);
    json_out_object(&w, NULL);
    if (arn->ssm) {
        json_out_strn(&w, "Name", arn->name);
        json_out_bool(&w, "WithDecryption", true);
    } else {
        json_out_str(&w, "SecretId", text);
    }
    json_out_end_object(&w);
    const struct aws_call call = {.service = arn->ssm ? "ssm" : "secretsmanager",
                                  .target = arn->ssm ? "AmazonSSM.GetParameter"
                                                     : "secretsmanager.GetSecretValue",
                                  .content_type = "application/x-amz-json-1.1",
                                  .body = buf_str(&body),
                                  .reply_max = REPLY_BYTES_MAX,
                                  .timeout_us = CALL_TIMEOUT_US};
    *a = (struct ask){.ssm = arn->ssm};
    aws_client_await_creds(c);
    (void)aws_send(c, &call, on_reply, a);
    while (!a->done) {
        loop_run_once(l, -1);
    }
}

/* A header's value is printable; anything else would be another header. */
static bool fits_a_header(const char *value)
{
    size_t n = strlen(value);
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f) {
            return false;
        }
    }
    return n > 0 && n <= SECRET_BYTES_MAX;
}

bool secret_read(const char *arn_text, char **ret, struct err *err)
{
    static const struct retry_policy policy = {
        .base_us = 200 * USEC_PER_MSEC, .cap_us = 5 * USEC_PER_SEC, .floor_us = USEC_PER_MSEC};
    struct arn arn;
    struct loop *l = NULL;
    struct aws_client *c = NULL;
    struct ask a = {.passing = true};
    struct rng rng;
    if (!arn_parse(arn_text, &arn)) {
        return err_set(err, ERR_INVALID, "'%.200s' is not the ARN of a secret", arn_text);
    }
    const struct aws_config cfg = {.region = arn.region,
                                   .user_agent = "drover-worker/" DROVER_VERSION};
    bool ok = loop_new(&l, err) && aws_client_new(l, &cfg, &c, err);
    rng_seed(&rng, (uint64_t)getpid());
    for (int i = 0; ok && i < TRIES && a.passing; i++) {
        if (i > 0) {
            (void)poll(NULL, 0, (int)(retry_delay_us(&policy, i - 1, &rng) / USEC_PER_MSEC));
        }
        ask_once(c, l, &arn, arn_text, &a);
    }
    if (ok && a.value == NULL) {
        *err = a.err;
        ok = err_wrap(err, "cannot read the secret '%.200s'", arn_text);
    } else if (ok && !fits_a_header(a.value)) {
        explicit_bzero(a.value, strlen(a.value));
        free(a.value);
        ok = err_set(err, ERR_INVALID, "the secret '%.200s' is not one line of text", arn_text);
    } else if (ok) {
        *ret = a.value;
    }
    aws_client_free(c);
    loop_free(l);
    return ok;
}
