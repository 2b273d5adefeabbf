/* STS: GetCallerIdentity, AssumeRole, AssumeRoleWithWebIdentity. See services.h. */
#include "common/clock.h"
#include "common/xml.h"
#include "issued_keys.h"
#include "local/app.h"
#include "services.h"

#define FIELD_BYTES_MAX    ((size_t)20480)
#define ROLE_SECONDS_MIN   900
#define ROLE_SECONDS_MAX   43200
#define ROLE_SECONDS_USUAL 3600

const char *sts_operation(const struct request *r)
{
    static const char *const names[] = {"GetCallerIdentity", "AssumeRole",
                                        "AssumeRoleWithWebIdentity"};
    AUTO_BUF struct buf action = BUF_INIT(64);
    (void)request_form(r, "Action", &action);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(buf_cstr(&action), names[i]) == 0) {
            return names[i];
        }
    }
    return "";
}

static void reply_end(struct request *r)
{
    buf_addf(&r->reply.body,
             "<ResponseMetadata><RequestId>%016llx</RequestId></ResponseMetadata></%sResponse>",
             (unsigned long long)r->id, r->operation);
    reply_xml(r);
}

static void reply_begin(struct request *r)
{
    buf_addf(&r->reply.body,
             "<%sResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><%sResult>",
             r->operation, r->operation);
}

static void caller_identity(struct request *r)
{
    const char *account = r->app->set.account;
    AUTO_FREE char *user = xasprintf("arn:aws:iam::%s:user/drover", account);
    reply_begin(r);
    buf_add_cstr(&r->reply.body, "<Arn>");
    xml_escape(&r->reply.body, str_of(r->session[0] != '\0' ? r->session : user));
    buf_addf(&r->reply.body,
             "</Arn><UserId>AIDALOCAL</UserId><Account>%s</Account></GetCallerIdentityResult>",
             account);
    reply_end(r);
}

static bool is_session_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!word && strchr("_+=,.@-", c) == NULL) {
            return false;
        }
    }
    return s.n >= 2 && s.n <= 64;
}

static bool may_assume(const struct local_settings *set, const char *arn)
{
    size_t i;
    json_t *role;
    if (set->roles == NULL) {
        return true;
    }
    json_array_foreach(set->roles, i, role)
    {
        if (json_is_string(role) && strcmp(json_string_value(role), arn) == 0) {
            return true;
        }
    }
    return false;
}

/* The checks of both operations. False: answered. */
static bool role_fields(struct request *r, struct buf *arn, struct buf *session, int64_t *ret_s)
{
    AUTO_BUF struct buf seconds = BUF_INIT(16);
    *ret_s = ROLE_SECONDS_USUAL;
    if (!request_form(r, "RoleArn", arn) || arn->n < 20 || !str_starts(buf_str(arn), "arn:")) {
        reply_error(r, 400, "ValidationError", "'roleArn' is missing or no ARN of a role");
    } else if (!request_form(r, "RoleSessionName", session) || !is_session_name(buf_str(session))) {
        reply_error(r, 400, "ValidationError",
                    "'roleSessionName' failed to satisfy constraint: [\\w+=,.@-]{2,64}");
    } else if (request_form(r, "DurationSeconds", &seconds) &&
               !parse_i64(buf_str(&seconds), ROLE_SECONDS_MIN,
                          r->session[0] != '\0' ? ROLE_SECONDS_USUAL : ROLE_SECONDS_MAX, ret_s,
                          NULL)) {
        reply_error(r, 400, "ValidationError",
                    "The requested DurationSeconds is not allowed for this role");
    } else {
        return true;
    }
    return false;
}

static void reply_keys(struct request *r, const char *role_arn, const char *session, int64_t s)
{
    struct issued_keys k;
    char end[32];
    AUTO_FREE char *arn = issued_session(role_arn, session);
    issued_make(&r->app->set, arn, s * USEC_PER_SEC, clock_wall_us(), &k);
    clock_format_rfc3339(k.expires, false, end);
    reply_begin(r);
    buf_addf(&r->reply.body,
             "<Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s"
             "</SecretAccessKey><SessionToken>",
             k.id, k.secret);
    xml_escape(&r->reply.body, str_of(k.token));
    buf_addf(&r->reply.body,
             "</SessionToken><Expiration>%s</Expiration></Credentials><AssumedRoleUser>"
             "<AssumedRoleId>AROALOCAL:%s</AssumedRoleId><Arn>",
             end, session);
    xml_escape(&r->reply.body, str_of(arn));
    buf_addf(&r->reply.body, "</Arn></AssumedRoleUser></%sResult>", r->operation);
    reply_end(r);
}

static void assume_role(struct request *r)
{
    AUTO_BUF struct buf arn = BUF_INIT(2048);
    AUTO_BUF struct buf session = BUF_INIT(64);
    int64_t seconds;
    if (!role_fields(r, &arn, &session, &seconds)) {
        return;
    }
    (void)snprintf(r->name, sizeof r->name, "%.1000s", buf_cstr(&arn));
    if (!may_assume(&r->app->set, buf_cstr(&arn))) {
        reply_error(r, 403, "AccessDenied",
                    "User: %s is not authorized to perform: sts:AssumeRole on resource: %s",
                    r->session[0] != '\0' ? r->session : r->key_id, buf_cstr(&arn));
        return;
    }
    reply_keys(r, buf_cstr(&arn), buf_cstr(&session), seconds);
}

static void assume_role_with_web_identity(struct request *r)
{
    AUTO_BUF struct buf arn = BUF_INIT(2048);
    AUTO_BUF struct buf session = BUF_INIT(64);
    AUTO_BUF struct buf token = BUF_INIT(FIELD_BYTES_MAX);
    int64_t seconds;
    if (!role_fields(r, &arn, &session, &seconds)) {
        return;
    }
    (void)snprintf(r->name, sizeof r->name, "%.1000s", buf_cstr(&arn));
    (void)request_form(r, "WebIdentityToken", &token);
    const char *role =
        json_string_value(json_object_get(r->app->set.web_identities, buf_cstr(&token)));
    if (role == NULL) {
        reply_error(r, 400, "InvalidIdentityToken", "The token is not known to the provider");
    } else if (strcmp(role, buf_cstr(&arn)) != 0) {
        reply_error(r, 403, "AccessDenied",
                    "Not authorized to perform sts:AssumeRoleWithWebIdentity");
    } else {
        reply_keys(r, buf_cstr(&arn), buf_cstr(&session), seconds);
    }
}

void sts_handle(struct request *r)
{
    if (strcmp(r->operation, "AssumeRole") == 0) {
        assume_role(r);
    } else if (strcmp(r->operation, "AssumeRoleWithWebIdentity") == 0) {
        assume_role_with_web_identity(r);
    } else {
        caller_identity(r);
    }
}
