/* FSx for Lustre: file systems, their associations with S3, tasks, tags. Handlers are called with
 * app->mu held and the request's input parsed. A file system is the folder ROOT/fsx/<id>. */
#pragma once
#include "local/http/request.h"
#include "local/oracle/records.h"

#define FSX_ARN_MAX 256

struct app;

/* fsx_filesystem.c */
void fsx_create(struct request *r);
void fsx_describe(struct request *r);
void fsx_update(struct request *r);
void fsx_delete(struct request *r);
/* fsx_repository.c */
void fsx_association_create(struct request *r);
void fsx_association_describe(struct request *r);
void fsx_association_delete(struct request *r);
void fsx_task_create(struct request *r);
void fsx_task_describe(struct request *r);
void fsx_task_cancel(struct request *r);
/* fsx_resource.c */
void fsx_tag(struct request *r);
void fsx_list_tags(struct request *r);

/* One kind of resource. fsx_resource.c */
struct fsx_class {
    enum record_kind record;
    const char *prefix;    /* of ids: "fs" */
    const char *id_key;    /* "FileSystemId" */
    const char *arn_type;  /* "file-system" */
    const char *ids_key;   /* of Describe: "FileSystemIds" */
    const char *list_key;  /* "FileSystems" */
    const char *not_found; /* error code */
};
extern const struct fsx_class fsx_filesystems, fsx_associations, fsx_tasks;

/* A new id, "fs-" and 17 hex digits; the caller frees. */
char *fsx_id_new(const struct fsx_class *c);
void fsx_arn(const struct app *app, const struct fsx_class *c, const char *id,
             char out[static FSX_ARN_MAX]);
/* The object that input[key] names; NULL: answered with the class's not-found error. */
json_t *fsx_named(struct request *r, const struct fsx_class *c, const char *key);
/* What ClientRequestToken made before: *ret_id is its id, NULL when nothing. False: answered, since
 * the parameters differ. */
bool fsx_repeated(struct request *r, const struct fsx_class *c, const char **ret_id) MUST_CHECK;
/* The record of a request: what was asked for, tags apart, lifecycle, due. The caller owns it. */
json_t *fsx_record(const struct request *r, const char *lifecycle, int64_t due_us);
/* Set the state of a record, and when the next is due (0: never), and save it. */
void fsx_enter(struct app *app, const struct fsx_class *c, const char *id, const char *lifecycle,
               int64_t due_us);
/* Answer a Describe: those named or all, by pages, each shown by `show`. */
void fsx_describe_all(struct request *r, const struct fsx_class *c,
                      json_t *(*show)(const struct app *app, const char *id, const json_t *o));
/* The members that all kinds show: id, ARN, tags, lifecycle, times, failure. */
void fsx_show_common(const struct app *app, const struct fsx_class *c, const char *id,
                     const json_t *o, json_t *into);
