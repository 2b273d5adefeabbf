/* What droverd's own account has and lacks, its server of mail, and who leads: each check is good
 * or says what to do. AWS is asked at that moment, over the bridge; the server of mail is asked
 * here. */
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "common/aws.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "core/catalog/image_ref.h"
#include "default_bucket.h"
#include "store/api/lease.h"
#include "store/api/subnets.h"

#define CHECK_US        (10 * USEC_PER_SEC)
#define MAIL_US         (10 * USEC_PER_SEC)
#define MAIL_ANSWER_MAX 2048
#define ACCOUNT_N       16

struct checks {
    struct api_req *r;
    struct json_out *w;
    bool bad;
    char account[ACCOUNT_N]; /* of the credentials; "": not known */
};

/* next: what to do; NULL: nothing. */
static void note(struct checks *c, const char *what, bool good, const char *detail,
                 const char *next)
{
    json_out_object(c->w, NULL);
    json_out_str(c->w, "check", what);
    json_out_bool(c->w, "ok", good);
    json_out_str(c->w, "detail", detail);
    if (next != NULL) {
        json_out_str(c->w, "next", next);
    }
    json_out_end_object(c->w);
    c->bad |= !good;
}

static void note_clock(struct checks *c, int64_t skew_s)
{
    const char *detail = arena_printf(&c->r->arena, "%lld s apart from AWS", (long long)skew_s);
    note(c, "aws clock", llabs(skew_s) <= CLOCK_SKEW_S_MAX, detail,
         llabs(skew_s) <= CLOCK_SKEW_S_MAX ? NULL : "set the clock of droverd's machine");
}

static void check_credentials(struct checks *c)
{
    const struct bridge_question q = {.kind = BRIDGE_IDENTITY};
    CLEANUP(bridge_reply_done)
    struct bridge_reply reply = {0};
    AUTO_JSON json_t *who = NULL;
    struct err why = ERR_INIT;
    if (!req_bridge(c->r, &q, CHECK_US, &reply, &why) ||
        !json_parse(buf_str(&reply.json), reply.json.n, &who, &why)) {
        note(c, "credentials", false, why.message,
             "give droverd credentials: variables, a profile, or a role of its machine");
        return;
    }
    const char *account = json_string_value(json_object_get(who, "account"));
    const char *arn = json_string_value(json_object_get(who, "arn"));
    (void)snprintf(c->account, sizeof c->account, "%s", account != NULL ? account : "");
    note(c, "credentials", true, arn != NULL ? arn : "", NULL);
    note_clock(c, json_integer_value(json_object_get(who, "skew_seconds")));
}

static void check_region(struct checks *c)
{
    const char *region = req_config(c->r)->defaults.region;
    bool good = region != NULL && region[0] != '\0';
    note(c, "region", good, good ? region : "none is set",
         good ? NULL : "set AWS_REGION for droverd");
}

/* Nothing starts without a price: where AWS' list has none, a file has to. */
static void check_price_list(struct checks *c)
{
    const char *region = req_config(c->r)->defaults.region;
    if (region != NULL && region[0] != '\0' && strcmp(aws_partition(region), "aws") != 0) {
        note(c, "price list", true,
             arena_printf(&c->r->arena, "AWS' list has no prices of %.40s in USD", region),
             "set DROVER_PRICES_FILE");
    }
}

/* arn:PARTITION:iam::ACCOUNT:role/NAME; its account into ret. */
static bool role_account(const char *arn, char ret[static ACCOUNT_N])
{
    struct str rest = str_of(arn), word = {0};
    for (int i = 0; i < 5; i++) {
        word = str_split(&rest, ':');
    }
    (void)snprintf(ret, ACCOUNT_N, STR_FMT, STR_ARG(word));
    return strncmp(arn, "arn:", 4) == 0 && strstr(arn, ":iam::") != NULL && word.n == 12 &&
           str_starts(rest, "role/") && rest.n > strlen("role/");
}

static void check_role(struct checks *c)
{
    const char *role = req_config(c->r)->defaults.role;
    char account[ACCOUNT_N];
    if (role == NULL) {
        note(c, "role", true, "none is set: each campaign file names its own",
             "DROVER_ROLE_ARN is the role of jobs whose file names none");
    } else if (!role_account(role, account)) {
        note(c, "role", false,
             arena_printf(&c->r->arena, "'%.200s' is not the ARN of a role", role),
             "set DROVER_ROLE_ARN=arn:aws:iam::ACCOUNT:role/NAME");
    } else if (c->account[0] != '\0' && strcmp(account, c->account) != 0) {
        note(c, "role", false,
             arena_printf(&c->r->arena, "%.200s is of another account than the credentials, %s",
                          role, c->account),
             "only a role of one's own account can be passed: correct DROVER_ROLE_ARN");
    } else {
        note(c, "role", true, role,
             "the first job shows whether droverd may pass it: allow iam:PassRole on it");
    }
}

static void check_bucket(struct checks *c)
{
    struct bridge_question q = {.kind = BRIDGE_S3_LIST, .max = 1};
    CLEANUP(bridge_reply_done)
    struct bridge_reply reply = {0};
    struct err why = ERR_INIT;
    const char *bucket;
    if (!default_bucket(c->r, &bucket, &why)) {
        note(c, "bucket", false, why.message, "set DROVER_BUCKET");
        return;
    }
    const char *place = strncmp(bucket, "s3://", 5) == 0 ? bucket + 5 : bucket;
    int name_n = (int)strcspn(place, "/");
    (void)snprintf(q.uri, sizeof q.uri, "s3://%.*s/sources/*", MIN(name_n, 1000), place);
    /* ERR_LIMIT: it has more than one object */
    if (req_bridge(c->r, &q, CHECK_US, &reply, &why) || why.code == ERR_LIMIT) {
        note(c, "bucket", true, bucket, NULL);
        return;
    }
    const char *next = "allow s3:ListBucket, s3:GetObject and s3:PutObject on it: deploy/iam";
    if (why.code == ERR_NOT_FOUND) {
        next =
            arena_printf(&c->r->arena, "aws s3 mb s3://%.*s, or set DROVER_BUCKET", name_n, place);
    }
    note(c, "bucket", false, why.message, next);
}

static void note_image(struct checks *c, const char *image, const struct err *why)
{
    if (why == NULL) {
        note(c, "image", true, image, NULL);
    } else if (why->code == ERR_NOT_FOUND) {
        note(c, "image", false, arena_printf(&c->r->arena, "ECR has no %.200s", image),
             "push drover-worker's image, or correct DROVER_WORKER_IMAGE");
    } else {
        note(c, "image", why->code == ERR_AWS, why->message,
             "allow ecr:BatchGetImage, so that tags are pinned to digests");
    }
}

static void check_image(struct checks *c)
{
    struct bridge_question q = {.kind = BRIDGE_IMAGE};
    CLEANUP(bridge_reply_done)
    struct bridge_reply reply = {0};
    const struct spec_defaults *d = &req_config(c->r)->defaults;
    struct image_ref ref;
    struct err why = ERR_INIT;
    if (d->worker_image == NULL) {
        note(c, "image", true, "no image of drover-worker is set",
             "set DROVER_WORKER_IMAGE for stages with worker: copy, download or index");
        return;
    }
    if (!image_ref_parse(d->worker_image, &ref)) {
        note(c, "image", true, d->worker_image, "it is not in ECR: AWS runs only images that are");
        return;
    }
    if (d->region != NULL && strcmp(ref.region, d->region) != 0) {
        note(c, "image", false,
             arena_printf(&c->r->arena, "%.200s is of another region", d->worker_image),
             "push it to the region of the jobs, and set DROVER_WORKER_IMAGE");
        return;
    }
    const char *digest = strchr(d->worker_image, '@');
    (void)snprintf(q.job, sizeof q.job, "%s", ref.account);
    (void)snprintf(q.uri, sizeof q.uri, "%s", ref.repository);
    (void)snprintf(q.token, sizeof q.token, "%s", digest != NULL ? digest + 1 : ref.tag);
    bool ok = req_bridge(c->r, &q, CHECK_US, &reply, &why);
    note_image(c, d->worker_image, ok ? NULL : &why);
}

static void note_subnets(struct checks *c, const json_t *list)
{
    const json_t *least = NULL;
    size_t i;
    const json_t *one;
    json_array_foreach(list, i, one)
    {
        int64_t n = json_integer_value(json_object_get(one, "free"));
        if (least == NULL || n < json_integer_value(json_object_get(least, "free"))) {
            least = one;
        }
    }
    if (least == NULL) {
        note(c, "subnets", false, "EC2 names none of them", "correct security.vpc.subnets");
        return;
    }
    int64_t n = json_integer_value(json_object_get(least, "free"));
    const char *detail =
        arena_printf(&c->r->arena, "%zu used; %s in %s has the fewest free addresses: %lld",
                     json_array_size(list), json_string_value(json_object_get(least, "id")),
                     json_string_value(json_object_get(least, "zone")), (long long)n);
    note(c, "subnets", n > 0, detail,
         n > 0 ? NULL : "an instance needs an address: free some, or use another subnet");
}

/* Those of campaigns that have not ended. */
static bool check_subnets(struct checks *c, struct err *err)
{
    struct bridge_question q = {.kind = BRIDGE_SUBNETS};
    CLEANUP(bridge_reply_done)
    struct bridge_reply reply = {0};
    AUTO_JSON json_t *list = NULL;
    AUTO_BUF struct buf ids = BUF_INIT(sizeof q.uri - 1);
    struct err why = ERR_INIT;
    if (!req_db(c->r, err) || !apidb_subnets(c->r->db, &ids, err)) {
        return false;
    }
    if (ids.n == 0) {
        note(c, "subnets", true, "no campaign that has not ended runs in a VPC", NULL);
        return true;
    }
    (void)snprintf(q.uri, sizeof q.uri, "%s", buf_cstr(&ids));
    if (req_bridge(c->r, &q, CHECK_US, &reply, &why) &&
        json_parse(buf_str(&reply.json), reply.json.n, &list, &why)) {
        note_subnets(c, list);
        return true;
    }
    bool gone = strstr(why.message, "InvalidSubnetID") != NULL;
    note(c, "subnets", false, why.message,
         gone ? "correct security.vpc.subnets of the campaign" : "allow ec2:DescribeSubnets");
    return true;
}

static void check_events(struct checks *c)
{
    const struct bridge_question q = {.kind = BRIDGE_EVENTS};
    CLEANUP(bridge_reply_done)
    struct bridge_reply reply = {0};
    AUTO_JSON json_t *v = NULL;
    struct err why = ERR_INIT;
    if (!req_bridge(c->r, &q, CHECK_US, &reply, &why) ||
        !json_parse(buf_str(&reply.json), reply.json.n, &v, &why)) {
        note(c, "events", false, why.message,
             strstr(why.message, "QueueDoesNotExist") != NULL
                 ? "correct DROVER_EVENTS_QUEUE_URL, or leave it out"
                 : "allow sqs:GetQueueAttributes, sqs:ReceiveMessage and sqs:DeleteMessage on it: "
                   "deploy/iam");
        return;
    }
    const char *url = json_string_value(json_object_get(v, "queue"));
    if (url == NULL || url[0] == '\0') {
        note(c, "events", true, "no queue is set: lists tell how jobs move",
             "DROVER_EVENTS_QUEUE_URL makes lists rare: deploy/cloudformation makes the queue");
        return;
    }
    int64_t waiting = json_integer_value(json_object_get(v, "waiting"));
    note(c, "events", true,
         arena_printf(&c->r->arena, "%s answers, %lld messages wait", url, (long long)waiting),
         NULL);
}

/* What mends it, by what was said. */
static const char *mail_next(const char *why)
{
    static const char *const rows[][2] = {
        {"answered 530", "set DROVER_SMTP_CREDENTIALS_FILE: a file with USER:PASSWORD"},
        {"answered 535", "correct USER:PASSWORD in DROVER_SMTP_CREDENTIALS_FILE"},
        {"answered 5", "correct DROVER_SMTP_FROM: deploy/mail.md"},
        {"answered 4", "ask again later, or ask who runs the server"},
        {"ertificate", "DROVER_SMTP_CA_FILE names certificates that vouch for it"},
        {"STARTTLS", "use a server that offers STARTTLS, or smtps:// with its port"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strstr(why, rows[i][0]) != NULL) {
            return rows[i][1];
        }
    }
    return "correct DROVER_SMTP_URL, or let droverd's machine reach it";
}

/* The server is asked up to the sender; nothing is sent. */
static void check_mail(struct checks *c)
{
    const struct mail_server *server = &req_config(c->r)->mail;
    struct arena *arena = &c->r->arena;
    const struct http_mail mail = {.server = server};
    const struct http_request q = {.method = "PUT",
                                   .url = server->url,
                                   .mail = &mail,
                                   .reply_max = MAIL_ANSWER_MAX,
                                   .connect_timeout_us = MAIL_US,
                                   .timeout_us = MAIL_US};
    CLEANUP(http_reply_done)
    struct http_reply reply = {0};
    struct err why = ERR_INIT;
    if (str_of(server->url).n == 0) {
        note(c, "mail", true, "no server of mail is set: notices go to webhooks only",
             "DROVER_SMTP_URL and DROVER_SMTP_FROM let droverd send mail: deploy/mail.md");
    } else if (http_fetch(&q, &reply, &why)) {
        note(c, "mail", true,
             arena_printf(arena, "%s takes mail from %s", server->url, server->from), NULL);
    } else {
        note(c, "mail", false, arena_printf(arena, "%s: %s", server->url, why.message),
             mail_next(why.message));
    }
}

/* The leader renews the lease: past its length nobody leads, whatever this droverd answers. */
static bool check_leader(struct checks *c, struct err *err)
{
    struct apidb_lease l;
    struct arena *arena = &c->r->arena;
    if (!req_db(c->r, err) || !apidb_lease(c->r->db, &l, err)) {
        return false;
    }
    long long length_s = l.length_us / USEC_PER_SEC, age_s = l.age_us / USEC_PER_SEC;
    if (l.holder[0] == '\0') {
        note(c, "leader", false, "no droverd has led yet: nothing starts",
             "one takes the lead within seconds of its start; if none does, look at its log");
    } else if (l.age_us > l.length_us) {
        note(c, "leader", false,
             arena_printf(arena,
                          "nobody leads: %s last renewed its lease of %lld s %lld s ago; nothing "
                          "starts, is stopped or is settled",
                          l.holder, length_s, age_s),
             "start a droverd, or look at why those that run do not take over: the log of each");
    } else {
        note(c, "leader", true,
             arena_printf(arena, "%s leads, its lease of %lld s was renewed %lld s ago", l.holder,
                          length_s, age_s),
             NULL);
    }
    return true;
}

bool checks_get(struct api_req *r, struct err *err)
{
    struct json_out w;
    struct checks c = {.r = r, .w = &w};
    json_out_init(&w, &r->out);
    json_out_object(&w, NULL);
    json_out_array(&w, "checks");
    check_credentials(&c);
    check_region(&c);
    check_price_list(&c);
    check_role(&c);
    if (c.account[0] != '\0') { /* without credentials nothing else is answered */
        check_bucket(&c);
        check_image(&c);
        if (!check_subnets(&c, err)) {
            return false;
        }
        check_events(&c);
    }
    check_mail(&c);
    if (!check_leader(&c, err)) {
        return false;
    }
    json_out_end_array(&w);
    json_out_bool(&w, "ok", !c.bad);
    json_out_end_object(&w);
    return reply_out(r, 200);
}
