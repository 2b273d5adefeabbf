/* Credentials for jobs, containers and instances: see metadata_local.h. */
#include "metadata_local.h"
#include "common/clock.h"
#include "common/hash.h"
#include "issued_keys.h"
#include "local/app.h"
#include "local/hosting/fleet.h"
#include <stdio.h>

#define CONTAINER_PATH "/v2/credentials/"
#define INSTANCE_TOKEN "/latest/api/token"
#define INSTANCE_DATA  "/latest/meta-data/"
#define INSTANCE_ROLES "iam/security-credentials/"

bool metadata_is(const struct request *r)
{
    if (str_starts(request_header(r, "authorization"), "AWS4-") || r->query.n > 0) {
        return false; /* a bucket of that name */
    }
    bool get = strcmp(r->method, "GET") == 0;
    bool instance = r->app->set.instance_role != NULL;
    return (get && str_starts(r->path, CONTAINER_PATH)) ||
           (instance && strcmp(r->method, "PUT") == 0 && str_eq_cstr(r->path, INSTANCE_TOKEN)) ||
           (instance && get && str_starts(r->path, INSTANCE_DATA));
}

const char *metadata_operation(const struct request *r)
{
    return str_starts(r->path, CONTAINER_PATH)    ? "GetContainerCredentials"
           : str_eq_cstr(r->path, INSTANCE_TOKEN) ? "PutInstanceToken"
                                                  : "GetInstanceMetadata";
}

static void reply_text(struct request *r, const char *text)
{
    buf_add_cstr(&r->reply.body, text);
    r->reply.status = 200;
    r->reply.content_type = "text/plain";
}

static void reply_keys(struct request *r, const char *role_arn, const char *session)
{
    struct issued_keys k;
    char now_text[32];
    char end_text[32];
    usec_t now = clock_wall_us();
    AUTO_FREE char *arn = issued_session(role_arn, session);
    issued_make(&r->app->set, arn, r->app->set.credential_us, now, &k);
    clock_format_rfc3339(now, false, now_text);
    clock_format_rfc3339(k.expires, false, end_text);
    reply_json(r, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "Code", "Success",
                            "LastUpdated", now_text, "Type", "AWS-HMAC", "RoleArn", role_arn,
                            "AccessKeyId", k.id, "SecretAccessKey", k.secret, "Token", k.token,
                            "Expiration", end_text));
    r->reply.content_type = "application/json";
}

static void container_handle(struct request *r)
{
    size_t n = sizeof CONTAINER_PATH - 1;
    AUTO_FREE char *name = str_dup((struct str){r->path.p + n, r->path.n - n});
    struct str given = request_header(r, "authorization");
    const char *role = json_string_value(json_object_get(r->app->set.containers, name));
    const char *want = r->app->set.container_authorization;
    char proof[33];
    if (role == NULL) {
        const struct local_job *job = jobs_find(&r->app->jobs, name);
        role = job == NULL ? fleet_role(r->app, name)
                           : json_string_value(json_object_get(job->request, "RoleArn"));
        if (role == NULL) {
            reply_error(r, 404, "NotFound", "no such container");
            return;
        }
        issued_proof(&r->app->set, "job", name, proof);
        want = proof;
    }
    if (want[0] != '\0' && !str_eq_cstr(given, want)) {
        reply_error(r, 401, "Unauthorized", "the Authorization header is wrong");
        return;
    }
    reply_keys(r, role, "container");
}

/* The token of IMDSv2: its end and a proof. */
static void instance_token(struct request *r)
{
    int64_t ttl_s;
    char proof[33];
    if (!parse_i64(request_header(r, "x-aws-ec2-metadata-token-ttl-seconds"), 1, 21600, &ttl_s,
                   NULL)) {
        reply_error(r, 400, "BadRequest", "X-aws-ec2-metadata-token-ttl-seconds is missing");
        return;
    }
    AUTO_FREE char *end = xasprintf("%lld", (long long)(clock_wall_us() / USEC_PER_SEC + ttl_s));
    issued_proof(&r->app->set, "instance", end, proof);
    AUTO_FREE char *token = xasprintf("%s-%s", end, proof);
    reply_text(r, token);
}

static bool instance_token_holds(const struct request *r)
{
    struct str proof = request_header(r, "x-aws-ec2-metadata-token");
    struct str end = str_split(&proof, '-');
    int64_t end_s;
    char want[33];
    if (!parse_i64(end, 0, INT64_MAX / USEC_PER_SEC, &end_s, NULL) ||
        end_s * USEC_PER_SEC < clock_wall_us()) {
        return false;
    }
    AUTO_FREE char *text = str_dup(end);
    issued_proof(&r->app->set, "instance", text, want);
    return str_eq_cstr(proof, want);
}

static void instance_handle(struct request *r)
{
    size_t n = sizeof INSTANCE_DATA - 1;
    struct str rest = {r->path.p + n, r->path.n - n};
    const char *role = r->app->set.instance_role;
    const char *role_name = strrchr(role, '/') != NULL ? strrchr(role, '/') + 1 : role;
    AUTO_FREE char *of_role = xasprintf(INSTANCE_ROLES "%s", role_name);
    if (!instance_token_holds(r)) {
        reply_error(r, 401, "Unauthorized", "a valid X-aws-ec2-metadata-token is missing");
    } else if (str_eq_cstr(rest, INSTANCE_ROLES)) {
        reply_text(r, role_name);
    } else if (str_eq_cstr(rest, of_role)) {
        reply_keys(r, role, "i-0123456789abcdef0");
    } else if (str_eq_cstr(rest, "placement/region")) {
        reply_text(r, r->app->set.region);
    } else {
        reply_error(r, 404, "NotFound", "no such page");
    }
}

void metadata_handle(struct request *r)
{
    if (strcmp(r->operation, "GetContainerCredentials") == 0) {
        container_handle(r);
    } else if (strcmp(r->operation, "PutInstanceToken") == 0) {
        instance_token(r);
    } else {
        instance_handle(r);
    }
}
