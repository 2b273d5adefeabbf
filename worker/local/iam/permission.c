/* See permission.h. */
#include "permission.h"
#include "local/app.h"
#include "local/oracle/record_value.h"
#include "local/s3/s3_store.h"
#include "local/services/issued_keys.h"
#include "policy.h"
#include <stdio.h>

#define ARN_BYTES_MAX ((size_t)2048)

static const struct need {
    const char *service;
    const char *operation;
    const char *action;
    const char *resource;
    const char *other;
} needs[] = {
#define X(service_, operation_, action_, resource_, other_)                                        \
    {.service = (service_),                                                                        \
     .operation = (operation_),                                                                    \
     .action = (action_),                                                                          \
     .resource = (resource_),                                                                      \
     .other = (other_)},
#include "action.def"
};

/* Policies of who signed r: by the key, or by the role that its session assumed. NULL: none. */
static json_t *documents_of(const struct request *r)
{
    json_t *all = r->app->set.policies;
    const char *principal;
    json_t *documents;
    if (r->session[0] == '\0') {
        return json_object_get(all, r->key_id);
    }
    json_object_foreach(all, principal, documents)
    {
        if (strncmp(principal, "arn:", 4) == 0) {
            AUTO_FREE char *session = issued_session(principal, "");
            if (str_starts(str_of(r->session), session)) {
                return documents;
            }
        }
    }
    return NULL;
}

static void after_last(struct buf *b, const char *text, char c)
{
    const char *at = strrchr(text, c);
    buf_add_cstr(b, at == NULL ? text : at + 1);
}

/* An ARN as it is, or the given text before a name. */
static void arn_or(struct buf *b, const struct request *r, const char *name, const char *kind)
{
    const struct local_settings *set = &r->app->set;
    if (strncmp(name, "arn:", 4) == 0) {
        buf_add_cstr(b, name);
    } else {
        buf_addf(b, "arn:aws:%s:%s:%s%s%s", r->service, set->region, set->account, kind,
                 name[0] == '/' ? name + 1 : name);
    }
}

/* Append what {word} stands for. */
static void word_add(struct buf *b, const struct request *r, struct str word)
{
    const struct local_settings *set = &r->app->set;
    if (str_eq_cstr(word, "region")) {
        buf_add_cstr(b, set->region);
    } else if (str_eq_cstr(word, "account")) {
        buf_add_cstr(b, set->account);
    } else if (str_eq_cstr(word, "bucket") || str_eq_cstr(word, "object")) {
        const char *slash = strchr(r->name, '/');
        bool whole = slash == NULL || str_eq_cstr(word, "object");
        buf_add_str(b, (struct str){r->name, whole ? strlen(r->name) : (size_t)(slash - r->name)});
    } else if (str_eq_cstr(word, "endpoint")) {
        buf_add_cstr(b, r->name);
    } else if (str_eq_cstr(word, "role")) {
        (void)request_form(r, "RoleArn", b);
    } else if (str_eq_cstr(word, "queue")) {
        const char *url = record_text(r->input, "QueueUrl");
        after_last(b, url[0] != '\0' ? url : record_text(r->input, "QueueName"), '/');
    } else if (str_eq_cstr(word, "registry")) {
        const char *id = record_text(r->input, "registryId");
        buf_add_cstr(b, id[0] != '\0' ? id : set->account);
    } else if (str_eq_cstr(word, "secret")) {
        arn_or(b, r, record_text(r->input, "SecretId"), ":secret:");
    } else if (str_eq_cstr(word, "parameter")) {
        arn_or(b, r, record_text(r->input, "Name"), ":parameter/");
    } else {
        AUTO_FREE char *key = str_dup(word);
        buf_add_cstr(b, record_text(r->input, key));
    }
}

static void resource_fill(const struct request *r, const char *pattern, struct buf *b)
{
    struct str rest = str_of(pattern);
    buf_reset(b);
    while (rest.n > 0) {
        buf_add_str(b, str_split(&rest, '{'));
        if (rest.n > 0) {
            word_add(b, r, str_split(&rest, '}'));
        }
    }
}

static void context_tags(json_t *context, const char *prefix, const json_t *tags)
{
    size_t i;
    json_t *tag;
    json_array_foreach(tags, i, tag)
    {
        AUTO_FREE char *key = xasprintf("%s%s", prefix, record_text(tag, "Key"));
        (void)json_object_set(context, key, json_object_get(tag, "Value"));
    }
}

/* The condition keys that drover's policies use; the caller decrefs. */
static json_t *context_of(const struct request *r)
{
    json_t *context = json_object();
    context_tags(context, "aws:RequestTag/", json_object_get(r->input, "Tags"));
    if (strcmp(r->service, "fsx") == 0) {
        const json_t *fs =
            record_find(r->app, RECORD_FILE_SYSTEM, record_text(r->input, "FileSystemId"));
        context_tags(context, "aws:ResourceTag/", json_object_get(fs, "tags"));
    }
    return context;
}

static void refuse(struct request *r, const struct policy_question *q, enum policy_answer answer)
{
    AUTO_FREE char *user = xasprintf("arn:aws:iam::%s:user/drover", r->app->set.account);
    AUTO_FREE char *why =
        answer == POLICY_DENIED
            ? xasprintf("with an explicit deny in an identity-based policy")
            : xasprintf("because no identity-based policy allows the %s action", q->action);
    bool s3 = strcmp(r->service, "s3") == 0;
    bool query = request_is_query(r);
    const char *code = s3 || strcmp(r->service, "sts") == 0 ? "AccessDenied"
                       : strcmp(r->service, "ec2") == 0     ? "UnauthorizedOperation"
                                                            : "AccessDeniedException";
    reply_error(r, s3 || query ? 403 : 400, code,
                "User: %s is not authorized to perform: %s on resource: %s %s",
                r->session[0] != '\0' ? r->session : user, q->action, q->resource, why);
}

static bool ask(struct request *r, const json_t *documents, const struct policy_question *q)
{
    enum policy_answer answer = policy_ask(documents, q);
    if (answer != POLICY_ALLOWED) {
        refuse(r, q, answer);
    }
    return answer == POLICY_ALLOWED;
}

/* Tags in a Create need the action that sets them, and a role must be one that may be passed. */
static bool implied_check(struct request *r, const json_t *documents, struct policy_question q)
{
    const char *role = record_text(r->input, "RoleArn");
    if (role[0] == '\0') {
        role = record_text(r->input, "ExecutionRoleArn");
    }
    if (strncmp(r->operation, "Create", 6) == 0 &&
        json_array_size(json_object_get(r->input, "Tags")) > 0) {
        q.action = strcmp(r->service, "fsx") == 0 ? "fsx:TagResource" : "sagemaker:AddTags";
        if (!ask(r, documents, &q)) {
            return false;
        }
    }
    if (strcmp(r->service, "sagemaker") != 0 || role[0] == '\0') {
        return true;
    }
    (void)json_object_set_new(q.context, "iam:PassedToService",
                              json_string("sagemaker.amazonaws.com"));
    q.action = "iam:PassRole";
    q.resource = role;
    return ask(r, documents, &q);
}

/* FSx reads the bucket in a service-linked role of each file system, which it makes in the name of
 * who asks for the association:
 * https://docs.aws.amazon.com/fsx/latest/LustreGuide/using-service-linked-roles.html */
static bool link_role_check(struct request *r, const json_t *documents, struct policy_question q)
{
    static const char service[] = "s3.data-source.lustre.fsx.amazonaws.com";
    static const char *const actions[] = {"iam:CreateServiceLinkedRole", "iam:AttachRolePolicy",
                                          "iam:PutRolePolicy"};
    if (strcmp(r->operation, "CreateDataRepositoryAssociation") != 0) {
        return true;
    }
    AUTO_FREE char *role =
        xasprintf("arn:aws:iam::%s:role/aws-service-role/%s/AWSServiceRoleForFSxS3Access_%s",
                  r->app->set.account, service, record_text(r->input, "FileSystemId"));
    q.resource = role;
    (void)json_object_set_new(q.context, "iam:AWSServiceName", json_string(service));
    for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
        q.action = actions[i];
        if (!ask(r, documents, &q)) {
            return false;
        }
        (void)json_object_del(q.context, "iam:AWSServiceName"); /* a key of the first alone */
    }
    return true;
}

static const struct need *need_of(const struct request *r)
{
    for (size_t i = 0; i < ARRAY_LEN(needs); i++) {
        if (strcmp(needs[i].service, r->service) == 0 &&
            strcmp(needs[i].operation, r->operation) == 0) {
            return &needs[i];
        }
    }
    return NULL;
}

/* S3 looks for the bucket first: without one there is nobody who could allow or deny. */
static bool is_of_no_bucket(const struct request *r)
{
    AUTO_BUF struct buf bucket = BUF_INIT(REQUEST_NAME_MAX);
    if (strcmp(r->service, "s3") != 0 || r->name[0] == '\0' ||
        strcmp(r->operation, "CreateBucket") == 0) {
        return false;
    }
    word_add(&bucket, r, STR("bucket"));
    return !s3_store_has_bucket(r->app->root, buf_cstr(&bucket));
}

bool permission_check(struct request *r)
{
    const json_t *documents = r->signed_ok ? documents_of(r) : NULL;
    AUTO_BUF struct buf resource = BUF_INIT(ARN_BYTES_MAX);
    AUTO_BUF struct buf other = BUF_INIT(ARN_BYTES_MAX);
    if (documents == NULL || r->operation[0] == '\0') {
        return true;
    }
    const struct need *n = need_of(r);
    if (is_of_no_bucket(r)) {
        return true;
    }
    if (n == NULL) {
        AUTO_FREE char *action = xasprintf("%s:%s", r->service, r->operation);
        struct policy_question unknown = {action, "*", NULL};
        refuse(r, &unknown, POLICY_NOT_ALLOWED);
        return false;
    }
    if (n->action[0] == '\0') {
        return true;
    }
    resource_fill(r, n->resource, &resource);
    resource_fill(r, n->other, &other);
    json_t *context = context_of(r);
    struct policy_question q = {n->action, buf_cstr(&resource), context};
    struct policy_question second = {n->action, buf_cstr(&other), context};
    bool ok = ask(r, documents, &q) && (n->other[0] == '\0' || ask(r, documents, &second)) &&
              implied_check(r, documents, q) && link_role_check(r, documents, q);
    json_decref(context);
    return ok;
}

bool permission_allows(const struct request *r, const char *action, const char *resource)
{
    const json_t *documents = r->signed_ok ? documents_of(r) : NULL;
    struct policy_question q = {action, resource, NULL};
    return documents == NULL || policy_ask(documents, &q) == POLICY_ALLOWED;
}
