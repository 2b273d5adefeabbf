/* See source_dirs.h. */
#include "source_dirs.h"
#include "client.h"
#include "common/cleanup.h"
#include "common/yaml.h"
#include "print.h"
#include "table.h"
#include <stdio.h>

#define SEND_US  (120 * USEC_PER_SEC)
#define KB_BYTES 1000

struct reading {
    struct campaign_file *f;
    const struct yaml_node *found[SOURCES_MAX]; /* in the order of the text, later ones first */
    const struct source_pack *pack[SOURCES_MAX];
    size_t n;
    int exit;
};

/* Not an address, not sent yet, and known without the file's variables. */
static bool is_folder(const struct yaml_node *n)
{
    return n != NULL && n->kind == YAML_STRING && n->text_n > 0 &&
           strncmp(n->text, "s3://", 5) != 0 && strncmp(n->text, "sha256:", 7) != 0 &&
           strpbrk(n->text, "{}") == NULL;
}

/* A folder is named from the campaign file; of stdin, from where the command runs. */
static char *path_of(const struct campaign_file *f, const char *folder)
{
    const char *slash = strrchr(f->name, '/');
    bool plain = folder[0] == '/' || slash == NULL;
    return plain ? xstrdup(folder) : xasprintf("%.*s/%s", (int)(slash - f->name), f->name, folder);
}

static const struct source_pack *pack_of(struct campaign_file *f, const char *folder,
                                         struct err *err)
{
    for (size_t i = 0; i < f->sources_n; i++) {
        if (strcmp(f->sources[i].folder, folder) == 0) {
            return &f->sources[i];
        }
    }
    AUTO_FREE char *path = path_of(f, folder);
    struct source_pack *p = &f->sources[f->sources_n];
    if (!source_pack(path, p, err)) {
        return NULL;
    }
    free(p->folder);
    p->folder = xstrdup(folder);
    f->sources_n++;
    return p;
}

static bool is_known(const struct reading *r, const struct yaml_node *n)
{
    for (size_t i = 0; i < r->n; i++) {
        if (r->found[i] == n) { /* an alias */
            return true;
        }
    }
    return false;
}

static bool failed(struct reading *r, const struct yaml_node *n, const char *hint, const char *text)
{
    AUTO_JSON json_t *e =
        json_pack("{s:i, s:i, s:s, s:s, s:s}", "line", n->pos.line, "column", n->pos.column,
                  "pointer", "source_dir", "message", text, "hint", hint);
    campaign_file_fault(r->f, e);
    r->exit = EXIT_USAGE;
    return false;
}

static bool take_map(struct reading *r, const struct yaml_node *map)
{
    const struct yaml_node *n = yaml_get(map, "source_dir");
    const struct yaml_node *script = yaml_get(map, "entry_point");
    struct err why = ERR_INIT;
    if (!is_folder(n)) {
        return true;
    }
    if (r->n == SOURCES_MAX) {
        return failed(r, n, "fewer stages of their own", "the file names too many folders");
    }
    const struct source_pack *p = pack_of(r->f, n->text, &why);
    if (p == NULL) {
        return failed(r, n, "a folder, named from the campaign file", why.message);
    }
    if (script != NULL && script->kind == YAML_STRING && strpbrk(script->text, "{}") == NULL &&
        !source_pack_has(p, script->text)) {
        AUTO_FREE char *text = xasprintf("%s is not in %s", script->text, n->text);
        return failed(r, script, "entry_point: a file of source_dir", text);
    }
    if (!is_known(r, n)) {
        r->pack[r->n] = p;
        r->found[r->n++] = n;
    }
    return true;
}

/* A stage, its matrix, and the rows of that. */
static bool take_stage(struct reading *r, const struct yaml_node *stage)
{
    const struct yaml_node *matrix = yaml_get(stage, "matrix");
    const struct yaml_node *rows =
        matrix != NULL && matrix->kind == YAML_MAP ? yaml_get(matrix, "include") : NULL;
    bool ok = take_map(r, stage);
    for (size_t i = 0; ok && rows != NULL && rows->kind == YAML_LIST && i < rows->n; i++) {
        ok = rows->items[i]->kind != YAML_MAP || take_map(r, rows->items[i]);
    }
    return ok;
}

/* The byte at a position, which counts in characters. */
static size_t offset_of(struct str text, struct position pos)
{
    size_t at = 0;
    for (int line = 1; line < pos.line && at < text.n; at++) {
        line += text.p[at] == '\n';
    }
    for (int column = 1; column < pos.column && at < text.n; column++) {
        do {
            at++;
        } while (at < text.n && ((uint8_t)text.p[at] & 0xc0) == 0x80);
    }
    return at;
}

/* How the node is written: its text, bare or in quotes. False: in another way. */
static bool written_as(struct str text, size_t at, const struct yaml_node *n, size_t *ret_n)
{
    size_t quote = n->quoted ? 1 : 0;
    *ret_n = n->text_n + 2 * quote;
    if (at + *ret_n > text.n || memcmp(text.p + at + quote, n->text, n->text_n) != 0) {
        return false;
    }
    char q = text.p[at];
    return !n->quoted || ((q == '"' || q == '\'') && text.p[at + *ret_n - 1] == q);
}

static int later_first(const void *a, const void *b)
{
    const struct campaign_change *x = a, *y = b;
    return x->at == y->at ? 0 : x->at < y->at ? 1 : -1;
}

static bool place_changes(struct reading *r)
{
    struct campaign_file *f = r->f;
    for (size_t i = 0; i < r->n; i++) {
        const struct yaml_node *n = r->found[i];
        struct campaign_change *c = &f->changes[f->changes_n];
        *c = (struct campaign_change){.line = n->pos.line,
                                      .column = n->pos.column,
                                      .at = offset_of(buf_str(&f->text), n->pos)};
        if (!written_as(buf_str(&f->text), c->at, n, &c->was_n)) {
            return failed(r, n, "source_dir: ./train",
                          "a folder is written on one line, without "
                          "anchors and escapes");
        }
        (void)snprintf(c->now, sizeof c->now, "\"sha256:%s\"", r->pack[i]->sha256);
        f->changes_n++;
    }
    qsort(f->changes, f->changes_n, sizeof f->changes[0], later_first);
    return true;
}

/* The text with the digests in place; the file keeps what was written. */
static void rewrite(struct campaign_file *f)
{
    struct str rest = buf_str(&f->text);
    f->sent = (struct buf)BUF_INIT(2 * rest.n + sizeof f->changes);
    size_t done = 0;
    for (size_t i = f->changes_n; i-- > 0;) {
        const struct campaign_change *c = &f->changes[i];
        buf_add(&f->sent, rest.p + done, c->at - done);
        buf_add_cstr(&f->sent, c->now);
        done = c->at + c->was_n;
    }
    buf_add(&f->sent, rest.p + done, rest.n - done);
    ASSERT(!f->sent.overflow);
}

bool source_dirs_pack(struct campaign_file *f, int *ret_exit)
{
    AUTO_FREE struct faults *ignored = xcalloc(1, sizeof *ignored);
    AUTO_FREE struct reading *r = xcalloc(1, sizeof *r);
    CLEANUP(yaml_freep)
    struct yaml_doc *doc = NULL;
    r->f = f;
    if (!yaml_parse(buf_str(&f->text), &doc, ignored) || yaml_root(doc)->kind != YAML_MAP) {
        return true;
    }
    const struct yaml_node *stages = yaml_get(yaml_root(doc), "stages");
    for (size_t i = 0; stages != NULL && stages->kind == YAML_LIST && i < stages->n; i++) {
        if (stages->items[i]->kind == YAML_MAP && !take_stage(r, stages->items[i])) {
            *ret_exit = r->exit;
            return false;
        }
    }
    if (!place_changes(r)) {
        *ret_exit = r->exit;
        return false;
    }
    if (f->changes_n > 0) {
        rewrite(f);
    }
    return true;
}

static bool server_has(struct cli *cli, const char *path)
{
    const struct client_call call = {.method = "GET", .path = path};
    CLEANUP(reply_done)
    struct client_reply r = {0};
    struct err ignored = ERR_INIT;
    return client_try(cli, &call, &r, &ignored) && r.status == 200;
}

bool source_dirs_send(struct cli *cli, const struct campaign_file *f, int *ret_exit)
{
    for (size_t i = 0; i < f->sources_n; i++) {
        const struct source_pack *p = &f->sources[i];
        AUTO_FREE char *path = xasprintf("/v1/sources/%s", p->sha256);
        CLEANUP(reply_done)
        struct client_reply r = {0};
        const struct client_call put = {.method = "PUT",
                                        .path = path,
                                        .type = "application/gzip",
                                        .body = buf_str(&p->gz),
                                        .timeout_us = SEND_US};
        if (server_has(cli, path)) {
            continue;
        }
        if (!client_call(cli, &put, &r, ret_exit)) {
            return false;
        }
        if (cli->talk_tty && !cli->opt.quiet) {
            say("sent %s: %zu file%s, %zu kB", p->folder, p->n, p->n == 1 ? "" : "s",
                (p->gz.n + KB_BYTES - 1) / KB_BYTES);
        }
    }
    return true;
}
