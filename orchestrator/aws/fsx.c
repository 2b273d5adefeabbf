/* See fsx.h. The codes of FSx tell the answers apart; its texts are not looked at. */
#include "fsx.h"
#include "common/json.h"
#include "common/secret_shape.h"
#include <stdio.h>

#define PAGE_ROWS 25 /* of associations FSx gives no more */
#define TOKEN_MAX 255

static const struct {
    const char *id_key;
    const char *ids_key;
    const char *one_key; /* of a create's answer */
    const char *list_key;
    enum aws_operation create, describe, end;
} kinds[FSX_KIND_COUNT] = {
    [FSX_FILESYSTEM] = {"FileSystemId", "FileSystemIds", "FileSystem", "FileSystems",
                        AWS_OP_CreateFileSystem, AWS_OP_DescribeFileSystems,
                        AWS_OP_DeleteFileSystem},
    [FSX_ASSOCIATION] = {"AssociationId", "AssociationIds", "Association", "Associations",
                         AWS_OP_CreateDataRepositoryAssociation,
                         AWS_OP_DescribeDataRepositoryAssociations,
                         AWS_OP_DeleteDataRepositoryAssociation},
    [FSX_TASK] = {"TaskId", "TaskIds", "DataRepositoryTask", "DataRepositoryTasks",
                  AWS_OP_CreateDataRepositoryTask, AWS_OP_DescribeDataRepositoryTasks,
                  AWS_OP_CancelDataRepositoryTask},
};

static const struct {
    const char *code;
    enum fsx_answer answer;
} codes[] = {
    {"FileSystemNotFound", FSX_NOT_FOUND},
    {"DataRepositoryAssociationNotFound", FSX_NOT_FOUND},
    {"DataRepositoryTaskNotFound", FSX_NOT_FOUND},
    {"IncompatibleParameterError", FSX_TOKEN_TAKEN},
    {"DataRepositoryTaskExecuting", FSX_TASK_RUNS},
    {"DataRepositoryTaskEnded", FSX_TASK_ENDED},
};

struct fsx_call {
    struct aws_client *client;
    struct aws_gate gate;
    struct json_call *json;
    enum fsx_kind kind;
    fsx_cb cb;
    void *ctx;
    /* describe and list */
    char id[129];           /* "": a listing */
    char filesystem_id[24]; /* "": of all */
    char token[TOKEN_MAX + 1];
    int pages;
    union fsx_row *rows;
    size_t rows_n, rows_cap;
};

static struct fsx_call *call_new(struct aws_client *c, struct aws_gate gate, enum fsx_kind kind,
                                 fsx_cb cb, void *ctx)
{
    struct fsx_call *call = xcalloc(1, sizeof *call);
    call->client = c;
    call->gate = gate;
    call->kind = kind;
    call->cb = cb;
    call->ctx = ctx;
    return call;
}

static void call_free(struct fsx_call *call)
{
    free(call->rows);
    free(call);
}

void aws_fsx_cancel(struct fsx_call *call)
{
    if (call != NULL) {
        json_call_cancel(call->json);
        call_free(call);
    }
}

static enum fsx_answer answer_of(const struct aws_failure *f)
{
    for (size_t i = 0; f->outcome == AWS_REFUSED && i < ARRAY_LEN(codes); i++) {
        if (strcmp(f->code, codes[i].code) == 0) {
            return codes[i].answer;
        }
    }
    return FSX_FAILED;
}

/* Both end the call. */
static void finish(struct fsx_call *call, const union fsx_row *rows, size_t n)
{
    call->cb(call->ctx, FSX_DONE, rows, n, NULL);
    call_free(call);
}

static void fail(struct fsx_call *call, const struct aws_failure *f)
{
    enum fsx_answer answer = answer_of(f);
    call->cb(call->ctx, answer, NULL, 0, answer == FSX_FAILED ? f : NULL);
    call_free(call);
}

static void read_failure(const json_t *o, char *out, size_t out_n)
{
    json_call_text(json_object_get(o, "FailureDetails"), "Message", out, out_n);
    secret_mask(out);
}

static void read_tag(const json_t *o, const char *key, char *out, size_t out_n)
{
    size_t i;
    const json_t *tag;
    json_array_foreach(json_object_get(o, "Tags"), i, tag)
    {
        const char *k = json_string_value(json_object_get(tag, "Key"));
        if (k != NULL && strcmp(k, key) == 0) {
            json_call_text(tag, "Value", out, out_n);
        }
    }
}

static void read_filesystem(const json_t *o, struct filesystem_description *ret)
{
    const json_t *lustre = json_object_get(o, "LustreConfiguration");
    const char *subnet = json_string_value(json_array_get(json_object_get(o, "SubnetIds"), 0));
    json_call_text(o, "FileSystemId", ret->id, sizeof ret->id);
    json_call_text(o, "ResourceARN", ret->arn, sizeof ret->arn);
    json_call_text(o, "Lifecycle", ret->lifecycle, sizeof ret->lifecycle);
    read_failure(o, ret->failure_reason, sizeof ret->failure_reason);
    json_call_text(lustre, "MountName", ret->mount_name, sizeof ret->mount_name);
    json_call_text(o, "DNSName", ret->dns_name, sizeof ret->dns_name);
    (void)snprintf(ret->subnet, sizeof ret->subnet, "%s", subnet != NULL ? subnet : "");
    json_call_text(lustre, "DeploymentType", ret->deployment_type, sizeof ret->deployment_type);
    ret->capacity_gib = json_integer_value(json_object_get(o, "StorageCapacity"));
    ret->throughput_per_unit =
        json_integer_value(json_object_get(lustre, "PerUnitStorageThroughput"));
    read_tag(o, "drover-install", ret->owner, sizeof ret->owner);
    read_tag(o, "drover-token", ret->token, sizeof ret->token);
    ret->created = json_call_epoch(o, "CreationTime");
}

static void read_association(const json_t *o, struct association_description *ret)
{
    json_call_text(o, "AssociationId", ret->id, sizeof ret->id);
    json_call_text(o, "FileSystemId", ret->filesystem_id, sizeof ret->filesystem_id);
    json_call_text(o, "Lifecycle", ret->lifecycle, sizeof ret->lifecycle);
    read_failure(o, ret->failure_reason, sizeof ret->failure_reason);
    json_call_text(o, "FileSystemPath", ret->path, sizeof ret->path);
    json_call_text(o, "DataRepositoryPath", ret->s3_path, sizeof ret->s3_path);
    ret->created = json_call_epoch(o, "CreationTime");
}

static int64_t count_of(const json_t *status, const char *key)
{
    const json_t *v = json_object_get(status, key);
    return json_is_integer(v) ? json_integer_value(v) : -1;
}

static void read_task(const json_t *o, struct fsx_task_description *ret)
{
    const json_t *status = json_object_get(o, "Status");
    json_call_text(o, "TaskId", ret->id, sizeof ret->id);
    json_call_text(o, "FileSystemId", ret->filesystem_id, sizeof ret->filesystem_id);
    json_call_text(o, "Type", ret->type, sizeof ret->type);
    json_call_text(o, "Lifecycle", ret->lifecycle, sizeof ret->lifecycle);
    read_failure(o, ret->failure_reason, sizeof ret->failure_reason);
    ret->total = count_of(status, "TotalCount");
    ret->succeeded = count_of(status, "SucceededCount");
    ret->failed = count_of(status, "FailedCount");
    ret->created = json_call_epoch(o, "CreationTime");
    ret->started = json_call_epoch(o, "StartTime");
    ret->ended = json_call_epoch(o, "EndTime");
}

/* False: it names no id or no lifecycle. */
static bool read_row(enum fsx_kind kind, const json_t *o, union fsx_row *ret)
{
    memset(ret, 0, sizeof *ret);
    switch (kind) {
    case FSX_FILESYSTEM:
        read_filesystem(o, &ret->filesystem);
        return ret->filesystem.id[0] != '\0' && ret->filesystem.lifecycle[0] != '\0';
    case FSX_ASSOCIATION:
        read_association(o, &ret->association);
        return ret->association.id[0] != '\0' && ret->association.lifecycle[0] != '\0';
    case FSX_TASK:
        read_task(o, &ret->task);
        return ret->task.id[0] != '\0' && ret->task.lifecycle[0] != '\0';
    case FSX_KIND_COUNT:
        break;
    }
    return false;
}

static void on_create(void *ctx, const json_t *o, const struct aws_failure *f)
{
    struct fsx_call *call = ctx;
    union fsx_row row;
    struct aws_failure unread = {.outcome = AWS_UNKNOWN, .message = "an answer without an id"};
    if (f != NULL) {
        fail(call, f);
    } else if (read_row(call->kind, json_object_get(o, kinds[call->kind].one_key), &row)) {
        finish(call, &row, 1);
    } else {
        fail(call, &unread);
    }
}

struct fsx_call *aws_fsx_create(struct aws_client *c, struct aws_gate gate, enum fsx_kind kind,
                                struct str request, fsx_cb cb, void *ctx)
{
    struct fsx_call *call = call_new(c, gate, kind, cb, ctx);
    call->json = json_call_send(c, gate, kinds[kind].create, request, on_create, call);
    return call;
}

static void on_end(void *ctx, const json_t *o UNUSED, const struct aws_failure *f)
{
    struct fsx_call *call = ctx;
    if (f != NULL) {
        fail(call, f);
    } else {
        finish(call, NULL, 0);
    }
}

struct fsx_call *aws_fsx_end(struct aws_client *c, struct aws_gate gate, enum fsx_kind kind,
                             const char *id, fsx_cb cb, void *ctx)
{
    struct fsx_call *call = call_new(c, gate, kind, cb, ctx);
    AUTO_BUF struct buf body = BUF_INIT(1024);
    struct json_out w;
    json_out_init(&w, &body);
    json_out_object(&w, NULL);
    json_out_str(&w, kinds[kind].id_key, id);
    if (kind == FSX_ASSOCIATION) {
        json_out_bool(&w, "DeleteDataInFileSystem", false);
    }
    json_out_end_object(&w);
    call->json = json_call_send(c, gate, kinds[kind].end, buf_str(&body), on_end, call);
    return call;
}

static void page_send(struct fsx_call *call);

static bool page_is_last(struct fsx_call *call, const json_t *o)
{
    const char *token = json_string_value(json_object_get(o, "NextToken"));
    if (token == NULL || token[0] == '\0' || strlen(token) > TOKEN_MAX ||
        strcmp(token, call->token) == 0 || ++call->pages >= FSX_LIST_PAGES_MAX) {
        return true;
    }
    (void)snprintf(call->token, sizeof call->token, "%s", token);
    return false;
}

static void on_page(void *ctx, const json_t *o, const struct aws_failure *f)
{
    struct fsx_call *call = ctx;
    struct aws_failure unread = {.outcome = AWS_UNKNOWN, .message = "an answer without the id"};
    size_t i;
    const json_t *row;
    call->json = NULL;
    if (f != NULL) {
        fail(call, f);
        return;
    }
    json_array_foreach(json_object_get(o, kinds[call->kind].list_key), i, row)
    {
        const char *id = json_string_value(json_object_get(row, kinds[call->kind].id_key));
        bool wanted = id != NULL && (call->id[0] == '\0' || strcmp(id, call->id) == 0);
        ARRAY_ROOM(call->rows, call->rows_n, call->rows_cap);
        call->rows_n += wanted && read_row(call->kind, row, &call->rows[call->rows_n]);
    }
    if (!page_is_last(call, o)) {
        page_send(call);
    } else if (call->id[0] != '\0' && call->rows_n != 1) {
        fail(call, &unread);
    } else {
        finish(call, call->rows, call->rows_n);
    }
}

static void page_send(struct fsx_call *call)
{
    AUTO_BUF struct buf body = BUF_INIT(4096);
    struct json_out w;
    json_out_init(&w, &body);
    json_out_object(&w, NULL);
    if (call->id[0] != '\0') {
        json_out_array(&w, kinds[call->kind].ids_key);
        json_out_str(&w, NULL, call->id);
        json_out_end_array(&w);
    }
    if (call->filesystem_id[0] != '\0') {
        json_out_array(&w, "Filters");
        json_out_object(&w, NULL);
        json_out_str(&w, "Name", "file-system-id");
        json_out_array(&w, "Values");
        json_out_str(&w, NULL, call->filesystem_id);
        json_out_end_array(&w);
        json_out_end_object(&w);
        json_out_end_array(&w);
    }
    json_out_i64(&w, "MaxResults", PAGE_ROWS);
    if (call->token[0] != '\0') {
        json_out_str(&w, "NextToken", call->token);
    }
    json_out_end_object(&w);
    call->json = json_call_send(call->client, call->gate, kinds[call->kind].describe,
                                buf_str(&body), on_page, call);
}

struct fsx_call *aws_fsx_describe(struct aws_client *c, struct aws_gate gate, enum fsx_kind kind,
                                  const char *id, fsx_cb cb, void *ctx)
{
    struct fsx_call *call = call_new(c, gate, kind, cb, ctx);
    ASSERT(id[0] != '\0'); /* an empty one would list all */
    (void)snprintf(call->id, sizeof call->id, "%s", id);
    page_send(call);
    return call;
}

struct fsx_call *aws_fsx_list(struct aws_client *c, struct aws_gate gate, enum fsx_kind kind,
                              const char *filesystem_id, fsx_cb cb, void *ctx)
{
    struct fsx_call *call = call_new(c, gate, kind, cb, ctx);
    ASSERT(kind != FSX_FILESYSTEM || filesystem_id == NULL);
    (void)snprintf(call->filesystem_id, sizeof call->filesystem_id, "%s",
                   filesystem_id != NULL ? filesystem_id : "");
    page_send(call);
    return call;
}
