/* Our S3 and AWS clients as a program, for scripts that hold them against others' clients:
 *   aws_tool put|create|mput s3://bucket/key FILE     (create: only when absent; mput: parts of 5
 * MiB) aws_tool get s3://bucket/key FILE aws_tool head|delete|list s3://bucket/key aws_tool json
 * SERVICE TARGET BODY,  aws_tool query SERVICE BODY Prints what it learned, exits 0; a refusal is
 * printed as "error CODE AWSCODE: text", exit 1. */
#include "common/aws.h"
#include "common/cleanup.h"
#include "common/s3.h"
#include <errno.h>
#include <fcntl.h>

#define TOOL_BYTES_MAX ((size_t)512 << 20)

static bool read_whole(const char *path, struct buf *out, struct err *err)
{
    AUTO_FILE FILE *f = fopen(path, "re");
    if (f == NULL) {
        return err_set_os(err, ERR_IO, errno, "cannot open '%s'", path);
    }
    return buf_add_file(out, f) ||
           err_set(err, ERR_IO, "'%s' cannot be read or is too large", path);
}

static bool upload(struct s3_blocking *s, const struct s3_uri *u, struct str body, struct err *err)
{
    struct s3_multipart *m = NULL;
    int64_t size;
    if (!s3_multipart_begin(s, u, NULL, (size_t)5 << 20, &m, err)) {
        return false;
    }
    if (!s3_multipart_add(m, body.p, body.n, err)) {
        s3_multipart_abort(m);
        return false;
    }
    return s3_multipart_finish(m, false, &size, err);
}

static bool send_file(struct s3_blocking *s, const char *what, const struct s3_uri *u,
                      const char *path, struct err *err)
{
    AUTO_BUF struct buf body = BUF_INIT(TOOL_BYTES_MAX);
    if (!read_whole(path, &body, err)) {
        return false;
    }
    if (strcmp(what, "mput") == 0) {
        return upload(s, u, buf_str(&body), err);
    }
    return s3_blocking_put(s, u, buf_str(&body), NULL, strcmp(what, "create") == 0, err);
}

static bool receive(struct s3_blocking *s, const struct s3_uri *u, const char *path,
                    struct err *err)
{
    AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    int64_t size;
    if (fd < 0) {
        return err_set_os(err, ERR_IO, errno, "cannot open '%s'", path);
    }
    return s3_blocking_get_file(s, u, fd, &size, err);
}

static bool tell(struct s3_blocking *s, const struct s3_uri *u, struct err *err)
{
    struct s3_head head;
    if (!s3_blocking_head(s, u, &head, err)) {
        return false;
    }
    (void)printf("%jd %s\n", (intmax_t)head.size, head.etag);
    return true;
}

static bool list(struct s3_blocking *s, const struct s3_uri *u, struct err *err)
{
    struct s3_listing l;
    if (!s3_blocking_list(s, u, 1000000, &l, err)) {
        return false;
    }
    for (size_t i = 0; i < l.n; i++) {
        (void)printf("%jd %s %s\n", (intmax_t)l.objects[i].size, l.objects[i].etag,
                     l.objects[i].key);
    }
    s3_listing_done(&l);
    return true;
}

struct answer {
    bool done, ok;
    struct err err;
};

static void on_reply(void *ctx, const struct aws_reply *r)
{
    struct answer *a = ctx;
    a->done = true;
    a->ok = r->outcome == AWS_OK;
    if (a->ok) {
        (void)printf(STR_FMT "\n", STR_ARG(r->body));
    } else {
        (void)aws_reply_err(r, "call", &a->err);
    }
}

static bool ask(const struct aws_call *call, struct err *err)
{
    struct loop *l = NULL;
    struct aws_client *c = NULL;
    struct aws_config cfg = {.user_agent = "aws_tool"};
    struct answer a = {.done = false};
    if (!loop_new(&l, err) || !aws_client_new(l, &cfg, &c, err)) {
        loop_free(l);
        return false;
    }
    (void)aws_send(c, call, on_reply, &a);
    while (!a.done) {
        loop_run_once(l, -1);
    }
    aws_client_free(c);
    loop_free(l);
    if (!a.ok) {
        *err = a.err;
    }
    return a.ok;
}

static bool run(int argc, char **argv, struct err *err)
{
    const char *what = argv[1];
    if (strcmp(what, "json") == 0 && argc == 5) {
        return ask(&(struct aws_call){.service = argv[2],
                                      .target = argv[3],
                                      .content_type = "application/x-amz-json-1.1",
                                      .body = str_of(argv[4])},
                   err);
    }
    if (strcmp(what, "query") == 0 && argc == 4) {
        return ask(
            &(struct aws_call){.service = argv[2],
                               .content_type = "application/x-www-form-urlencoded; charset=utf-8",
                               .body = str_of(argv[3])},
            err);
    }
    struct s3_uri u;
    struct s3_blocking *s = NULL;
    if (argc < 3 || !s3_parse_uri(str_of(argv[2]), &u, err) || !s3_blocking_new(2, &s, err)) {
        return argc >= 3 ? false : err_set(err, ERR_INVALID, "usage: see the source");
    }
    bool ok;
    if (argc == 4) {
        ok = strcmp(what, "get") == 0 ? receive(s, &u, argv[3], err)
                                      : send_file(s, what, &u, argv[3], err);
    } else {
        ok = strcmp(what, "head") == 0     ? tell(s, &u, err)
             : strcmp(what, "delete") == 0 ? s3_blocking_delete(s, &u, err)
                                           : list(s, &u, err);
    }
    s3_blocking_free(s);
    return ok;
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    if (argc < 2 || !run(argc, argv, &err)) {
        (void)printf("error %s %s: %s\n", err_code_name(err.code), err.aws_code, err.message);
        return 1;
    }
    return 0;
}
