/* The wire log: see wire.h. */
#include "wire.h"
#include "common/json.h"
#include "local/http/request.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#define WIRE_LINE_MAX 8192

static void index_add(struct wire_log *w, uint64_t id, usec_t arrival, int64_t offset,
                      int32_t length)
{
    ARRAY_ROOM(w->lines, w->n, w->cap);
    w->lines[w->n++] = (struct wire_line){id, arrival, offset, length};
    w->next_id = MAX(w->next_id, id + 1);
}

static bool index_read(struct wire_log *w, const char *path, struct err *err)
{
    AUTO_FILE FILE *f = fopen(path, "re");
    AUTO_FREE char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    if (f == NULL) {
        return errno == ENOENT || err_set_os(err, ERR_IO, errno, "cannot open '%s'", path);
    }
    while ((n = getline(&line, &cap, f)) > 0 && line[n - 1] == '\n') {
        json_t *o = json_loadb(line, (size_t)n, 0, NULL);
        json_int_t id = json_integer_value(json_object_get(o, "id"));
        double time = json_number_value(json_object_get(o, "time"));
        json_decref(o);
        if (id <= 0) {
            return err_set(err, ERR_MALFORMED, "'%s': a line without an id", path);
        }
        index_add(w, (uint64_t)id, (usec_t)(time * 1e6 + 0.5), w->size, (int32_t)n);
        w->size += n;
    }
    return true;
}

bool wire_open(struct wire_log *w, const char *root, struct err *err)
{
    char path[PATH_MAX];
    *w = (struct wire_log){.fd = -1, .next_id = 1};
    (void)snprintf(path, sizeof path, "%s/wire.log", root);
    if (!index_read(w, path, err)) {
        return false;
    }
    w->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (w->fd < 0 || ftruncate(w->fd, w->size) != 0) {
        return err_set_os(err, ERR_IO, errno, "cannot open '%s'", path);
    }
    return true;
}

void wire_close(struct wire_log *w)
{
    fd_closep(&w->fd);
    free(w->lines);
    *w = (struct wire_log){.fd = -1};
}

uint64_t wire_next_id(struct wire_log *w)
{
    return w->next_id++;
}

bool wire_full(const struct wire_log *w)
{
    return w->n >= WIRE_ENTRIES_MAX;
}

bool wire_has(const struct wire_log *w, uint64_t id)
{
    for (size_t i = w->n; i > 0; i--) {
        if (w->lines[i - 1].id == id) {
            return true;
        }
    }
    return false;
}

void wire_write(struct wire_log *w, const struct request *r, bool replied)
{
    CLEANUP(buf_done)
    struct buf b = BUF_INIT(WIRE_LINE_MAX);
    struct str name = str_of(r->name);
    if (wire_full(w)) {
        return; /* it was refused because the log is full */
    }
    buf_addf(&b,
             "{\"id\":%llu,\"time\":%lld.%06lld,\"service\":\"%s\",\"operation\":\"%s\",\"name\":",
             (unsigned long long)r->id, (long long)(r->arrival / USEC_PER_SEC),
             (long long)(r->arrival % USEC_PER_SEC), r->service, r->operation);
    json_escape(&b, str_is_utf8(name) ? name : STR("?"), false);
    if (replied) {
        buf_addf(&b, ",\"status\":%d,\"error\":", r->reply.status);
    } else {
        buf_add_cstr(&b, ",\"status\":null,\"error\":");
    }
    if (r->reply.error[0] != '\0') {
        json_escape(&b, str_of(r->reply.error), false);
    } else {
        buf_add_cstr(&b, "null");
    }
    buf_add_cstr(&b, ",\"key_id\":");
    json_escape(&b, str_is_utf8(str_of(r->key_id)) ? str_of(r->key_id) : STR("?"), false);
    buf_addf(&b, ",\"signed_at\":%lld", (long long)(r->signed_at / USEC_PER_SEC));
    buf_addf(&b, ",\"signed\":%s,\"accepted\":%s,\"replied\":%s,\"sha256\":\"%s\"",
             r->signed_ok ? "true" : "false", r->accepted ? "true" : "false",
             replied ? "true" : "false", r->body_sha256);
    buf_add_cstr(&b, "}\n");
    ASSERT(!b.overflow);
    if (write(w->fd, b.p, b.n) == (ssize_t)b.n) {
        index_add(w, r->id, r->arrival, w->size, (int32_t)b.n);
        w->size += (int64_t)b.n;
    } else {
        (void)!ftruncate(w->fd, w->size);
    }
}

static int line_cmp(const void *a, const void *b)
{
    const struct wire_line *x = a;
    const struct wire_line *y = b;
    if (x->arrival != y->arrival) {
        return x->arrival < y->arrival ? -1 : 1;
    }
    if (x->id != y->id) {
        return x->id < y->id ? -1 : 1;
    }
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

bool wire_dump(const struct wire_log *w, struct buf *out, struct err *err)
{
    AUTO_FREE struct wire_line *lines = xcalloc(w->n + 1, sizeof *lines);
    bool first = true;
    if (w->n > 0) {
        memcpy(lines, w->lines, w->n * sizeof *lines);
        qsort(lines, w->n, sizeof *lines, line_cmp);
    }
    buf_add_cstr(out, "{\"requests\":[");
    for (size_t i = 0; i < w->n; i++) {
        if (i + 1 < w->n && lines[i + 1].id == lines[i].id) {
            continue; /* the effect came later and has its own line */
        }
        size_t n = (size_t)lines[i].length - 1;
        buf_add_cstr(out, first ? "" : ",\n");
        char *p = buf_reserve(out, n);
        if (p == NULL) {
            return err_set(err, ERR_TOO_LARGE, "the wire log is larger than an answer may be");
        }
        if (pread(w->fd, p, n, lines[i].offset) != (ssize_t)n) {
            return err_set_os(err, ERR_IO, errno, "cannot read the wire log");
        }
        buf_commit(out, n);
        first = false;
    }
    buf_add_cstr(out, "]}\n");
    return true;
}

bool wire_reset(struct wire_log *w, struct err *err)
{
    if (ftruncate(w->fd, 0) != 0) {
        return err_set_os(err, ERR_IO, errno, "cannot empty the wire log");
    }
    w->size = 0;
    w->n = 0;
    return true;
}
