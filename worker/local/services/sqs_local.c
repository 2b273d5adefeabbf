/* SQS by its JSON protocol: see sqs_local.h. */
#include "sqs_local.h"
#include "common/clock.h"
#include "local/app.h"
#include "local/sagemaker/job_clock.h"
#include <openssl/evp.h>
#include <stdio.h>

#define BATCH_MAX        10
#define WAIT_S_MAX       20
#define VISIBILITY_S     30
#define VISIBILITY_S_MAX 43200
#define DELAY_S_MAX      900
#define BODY_BYTES_MAX   (1 << 20)
#define QUEUES_MAX       16
#define RECEIPT_MAX      64

struct sqs_message {
    char *body;
    uint64_t id;
    uint64_t receipt; /* of the last receive */
    usec_t sent, visible, received_first;
    int64_t received_n;
    bool held;
};
struct sqs_queue {
    char name[81];
    const char *source; /* of the events it takes; "" none */
    struct sqs_message **items;
    size_t n, cap;
};
struct queues {
    struct sqs_queue all[QUEUES_MAX];
    size_t n;
    uint64_t next_id;
};

struct queues *queues_new(const struct local_settings *set)
{
    struct queues *q = xcalloc(1, sizeof *q);
    const char *name;
    json_t *source;
    json_object_foreach(set->queues, name, source)
    {
        if (q->n < QUEUES_MAX && strlen(name) < sizeof q->all[0].name) {
            struct sqs_queue *one = &q->all[q->n++];
            (void)snprintf(one->name, sizeof one->name, "%s", name);
            one->source = json_string_value(source);
        }
    }
    return q;
}

static void message_free(struct sqs_message *m)
{
    free(m->body);
    free(m);
}

void queues_reset(struct queues *q)
{
    for (size_t i = 0; i < q->n; i++) {
        for (size_t k = 0; k < q->all[i].n; k++) {
            message_free(q->all[i].items[k]);
        }
        q->all[i].n = 0;
    }
}

void queues_free(struct queues *q)
{
    if (q != NULL) {
        queues_reset(q);
        for (size_t i = 0; i < q->n; i++) {
            free(q->all[i].items);
        }
        free(q);
    }
}

static void queue_remove(struct sqs_queue *q, size_t i)
{
    message_free(q->items[i]);
    memmove(&q->items[i], &q->items[i + 1], (q->n - i - 1) * sizeof q->items[0]);
    q->n--;
}

/* Appends; what was held back comes after it. Returns its id. */
static uint64_t queue_put(struct app *app, struct sqs_queue *q, const char *body, usec_t visible,
                          bool held)
{
    usec_t now = clock_wall_us();
    struct sqs_message *m = xcalloc(1, sizeof *m);
    m->body = xstrdup(body);
    m->id = ++app->queues->next_id;
    m->sent = now;
    m->visible = visible;
    m->held = held;
    if (q->n >= SQS_MESSAGES_MAX) {
        queue_remove(q, 0);
    }
    ARRAY_ROOM(q->items, q->n, q->cap);
    q->items[q->n++] = m;
    for (size_t i = 0, last = q->n - 1; i < last && !held; i++) {
        struct sqs_message *before = q->items[i];
        if (before->held) {
            before->held = false;
            before->visible = MIN(before->visible, MAX(now, visible));
            memmove(&q->items[i], &q->items[i + 1], (q->n - i - 1) * sizeof q->items[0]);
            q->items[q->n - 1] = before;
            i--;
            last--;
        }
    }
    job_clock_message_put(app);
    return m->id;
}

void queues_put_event(struct app *app, const char *source, const char *body, usec_t visible,
                      bool held)
{
    for (size_t i = 0; i < app->queues->n; i++) {
        if (strcmp(app->queues->all[i].source, source) == 0) {
            (void)queue_put(app, &app->queues->all[i], body, visible, held);
        }
    }
}

static struct sqs_queue *queue_named(struct request *r, const char *name)
{
    for (size_t i = 0; name != NULL && i < r->app->queues->n; i++) {
        if (strcmp(r->app->queues->all[i].name, name) == 0) {
            return &r->app->queues->all[i];
        }
    }
    reply_header(r, "x-amzn-query-error", "AWS.SimpleQueueService.NonExistentQueue;Sender");
    reply_error(r, 400, "com.amazonaws.sqs#QueueDoesNotExist",
                "The specified queue does not exist.");
    return NULL;
}

/* The queue of QueueUrl, http://HOST/ACCOUNT/NAME; NULL: answered. */
static struct sqs_queue *queue_of(struct request *r)
{
    AUTO_FREE char *tail = xasprintf("/%s/", r->app->set.account);
    const char *at = strstr(record_text(r->input, "QueueUrl"), tail);
    return queue_named(r, at == NULL ? NULL : at + strlen(tail));
}

/* A number of the input within its range; false: answered. */
static bool number_get(struct request *r, const char *key, int64_t min, int64_t max, int64_t dflt,
                       int64_t *ret)
{
    struct err err = ERR_INIT;
    if (json_get_i64(r->input, key, min, max, dflt, ret, &err)) {
        return true;
    }
    reply_error(r, 400, "com.amazonaws.sqs#InvalidParameterValueException",
                "Value for parameter %s is invalid. Reason: Must be >= %lld and <= %lld.", key,
                (long long)min, (long long)max);
    return false;
}

static void md5_hex(const char *text, char out[static 33])
{
    unsigned char md[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    ASSERT(EVP_Digest(text, strlen(text), md, &n, EVP_md5(), NULL) == 1 && n == 16);
    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(out + (size_t)i * 2, 3, "%02x", md[i]);
    }
}

static json_t *message_json(const struct sqs_message *m)
{
    char id[40], receipt[RECEIPT_MAX], md5[33];
    (void)snprintf(id, sizeof id, "00000000-0000-4000-8000-%012llx", (unsigned long long)m->id);
    (void)snprintf(receipt, sizeof receipt, "%llu.%llu", (unsigned long long)m->id,
                   (unsigned long long)m->receipt);
    md5_hex(m->body, md5);
    AUTO_FREE char *sent = xasprintf("%lld", (long long)(m->sent / USEC_PER_MSEC));
    AUTO_FREE char *first = xasprintf("%lld", (long long)(m->received_first / USEC_PER_MSEC));
    AUTO_FREE char *times = xasprintf("%lld", (long long)m->received_n);
    return json_pack("{s:s, s:s, s:s, s:s, s:{s:s, s:s, s:s}}", "MessageId", id, "ReceiptHandle",
                     receipt, "MD5OfBody", md5, "Body", m->body, "Attributes", "SentTimestamp",
                     sent, "ApproximateReceiveCount", times, "ApproximateFirstReceiveTimestamp",
                     first);
}

/* Takes what can be received now; *ret_next: when something else can be. */
static json_t *take_visible(struct app *app, struct sqs_queue *q, int64_t most,
                            int64_t visibility_us, usec_t now, usec_t *ret_next)
{
    json_t *list = json_array();
    *ret_next = USEC_NEVER;
    for (size_t i = 0; i < q->n && json_array_size(list) < (size_t)most; i++) {
        struct sqs_message *m = q->items[i];
        if (m->visible > now) {
            *ret_next = MIN(*ret_next, m->visible);
            continue;
        }
        m->held = false;
        m->visible = now + visibility_us;
        m->receipt = ++app->queues->next_id;
        m->received_first = m->received_n++ == 0 ? now : m->received_first;
        (void)json_array_append_new(list, message_json(m));
    }
    return list;
}

void sqs_receive(struct request *r)
{
    int64_t most, wait_s, visibility_s;
    usec_t now = clock_wall_us();
    usec_t next;
    struct sqs_queue *q = queue_of(r);
    if (q == NULL || !number_get(r, "MaxNumberOfMessages", 1, BATCH_MAX, 1, &most) ||
        !number_get(r, "WaitTimeSeconds", 0, WAIT_S_MAX, 0, &wait_s) ||
        !number_get(r, "VisibilityTimeout", 0, VISIBILITY_S_MAX, VISIBILITY_S, &visibility_s)) {
        return;
    }
    json_t *list = take_visible(r->app, q, most, visibility_s * USEC_PER_SEC, now, &next);
    if (json_array_size(list) > 0) {
        reply_json(r, json_pack("{s:o}", "Messages", list));
        return;
    }
    json_decref(list);
    r->wait_until = r->wait_until == 0 ? now + wait_s * USEC_PER_SEC : r->wait_until;
    r->wait_seen = job_clock_messages(r->app);
    r->wait_due = MIN(r->wait_until, next);
    if (now >= r->wait_until || job_clock_stops(r->app)) {
        reply_json(r, json_object());
    }
}

/* Deletes by receipt; false: it is wrong. One whose message was received again deletes nothing. */
static bool receipt_delete(struct sqs_queue *q, const char *receipt)
{
    unsigned long long id, at;
    char more;
    if (receipt == NULL || sscanf(receipt, "%llu.%llu%c", &id, &at, &more) != 2) {
        return false;
    }
    for (size_t i = 0; i < q->n; i++) {
        if (q->items[i]->id == id && q->items[i]->receipt == at) {
            queue_remove(q, i);
            return true;
        }
    }
    return true;
}

void sqs_delete(struct request *r)
{
    struct sqs_queue *q = queue_of(r);
    if (q == NULL) {
        return;
    }
    if (!receipt_delete(q, json_string_value(json_object_get(r->input, "ReceiptHandle")))) {
        reply_error(r, 400, "com.amazonaws.sqs#ReceiptHandleIsInvalid",
                    "The input receipt handle is invalid.");
        return;
    }
    reply_json(r, json_object());
}

void sqs_delete_batch(struct request *r)
{
    struct sqs_queue *q = queue_of(r);
    const json_t *entries = json_object_get(r->input, "Entries");
    size_t i;
    const json_t *e;
    if (q == NULL) {
        return;
    }
    if (json_array_size(entries) == 0 || json_array_size(entries) > BATCH_MAX) {
        reply_error(r, 400,
                    json_array_size(entries) == 0
                        ? "com.amazonaws.sqs#EmptyBatchRequest"
                        : "com.amazonaws.sqs#TooManyEntriesInBatchRequest",
                    "There must be 1 to %d entries in the request.", BATCH_MAX);
        return;
    }
    json_t *good = json_array(), *bad = json_array();
    json_array_foreach(entries, i, e)
    {
        const char *id = json_string_value(json_object_get(e, "Id"));
        if (receipt_delete(q, json_string_value(json_object_get(e, "ReceiptHandle")))) {
            (void)json_array_append_new(good, json_pack("{s:s}", "Id", id != NULL ? id : ""));
        } else {
            (void)json_array_append_new(bad, json_pack("{s:s, s:b, s:s, s:s}", "Id",
                                                       id != NULL ? id : "", "SenderFault", 1,
                                                       "Code", "ReceiptHandleIsInvalid", "Message",
                                                       "The input receipt handle is invalid."));
        }
    }
    reply_json(r, json_pack("{s:o, s:o}", "Successful", good, "Failed", bad));
}

void sqs_send(struct request *r)
{
    int64_t delay_s;
    char id[40], md5[33];
    struct sqs_queue *q = queue_of(r);
    const char *body = json_string_value(json_object_get(r->input, "MessageBody"));
    if (q == NULL || !number_get(r, "DelaySeconds", 0, DELAY_S_MAX, 0, &delay_s)) {
        return;
    }
    if (body == NULL || body[0] == '\0' || strlen(body) > BODY_BYTES_MAX) {
        reply_error(r, 400, "com.amazonaws.sqs#InvalidParameterValueException",
                    "One or more parameters are invalid. Reason: Message must be 1 to %d bytes.",
                    BODY_BYTES_MAX);
        return;
    }
    uint64_t n = queue_put(r->app, q, body, clock_wall_us() + delay_s * USEC_PER_SEC, false);
    (void)snprintf(id, sizeof id, "00000000-0000-4000-8000-%012llx", (unsigned long long)n);
    md5_hex(body, md5);
    r->accepted = true;
    reply_json(r, json_pack("{s:s, s:s}", "MessageId", id, "MD5OfMessageBody", md5));
}

void sqs_get_url(struct request *r)
{
    const struct sqs_queue *q =
        queue_named(r, json_string_value(json_object_get(r->input, "QueueName")));
    if (q != NULL) {
        AUTO_FREE char *url = xasprintf("%s/%s/%s", r->app->url, r->app->set.account, q->name);
        reply_json(r, json_pack("{s:s}", "QueueUrl", url));
    }
}

static bool attribute_wanted(const json_t *names, const char *name)
{
    size_t i;
    const json_t *v;
    json_array_foreach(names, i, v)
    {
        const char *s = json_string_value(v);
        if (s != NULL && (strcmp(s, "All") == 0 || strcmp(s, name) == 0)) {
            return true;
        }
    }
    return false;
}

void sqs_get_attributes(struct request *r)
{
    const struct sqs_queue *q = queue_of(r);
    const json_t *names = json_object_get(r->input, "AttributeNames");
    usec_t now = clock_wall_us();
    size_t visible = 0, delayed = 0;
    if (q == NULL) {
        return;
    }
    for (size_t i = 0; i < q->n; i++) {
        visible += q->items[i]->visible <= now;
        delayed += q->items[i]->visible > now && q->items[i]->received_n == 0;
    }
    AUTO_FREE char *waiting = xasprintf("%zu", visible);
    AUTO_FREE char *hidden = xasprintf("%zu", q->n - visible - delayed);
    AUTO_FREE char *later = xasprintf("%zu", delayed);
    AUTO_FREE char *arn =
        xasprintf("arn:aws:sqs:%s:%s:%s", r->app->set.region, r->app->set.account, q->name);
    const char *const all[][2] = {{"QueueArn", arn},
                                  {"ApproximateNumberOfMessages", waiting},
                                  {"ApproximateNumberOfMessagesNotVisible", hidden},
                                  {"ApproximateNumberOfMessagesDelayed", later},
                                  {"VisibilityTimeout", "30"}};
    json_t *o = json_object();
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (attribute_wanted(names, all[i][0])) {
            (void)json_object_set_new(o, all[i][0], json_string(all[i][1]));
        }
    }
    reply_json(r, json_pack("{s:o}", "Attributes", o));
}
