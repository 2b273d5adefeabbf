/* A folder for each shard with the files KEY.jpg, KEY.json and KEY.txt of every success. */
#include "body.h"
#include "io/sink_tree.h"

struct body_tree {
    struct body b;
    struct sink_tree *tree;
};

static struct body_tree *tree_of(struct body *b)
{
    _Static_assert(offsetof(struct body_tree, b) == 0, "a body is its tree");
    void *p = b;
    return p;
}

static bool files_begin(const struct body_io *io, int64_t shard_i, struct body **ret,
                        struct err *err)
{
    char name[SHARD_KEY_BYTES];
    struct body_tree *t = xcalloc(1, sizeof *t);
    t->b = (struct body){.io = io, .shard_i = shard_i};
    shard_name(io->format, shard_i, "", name);
    if (!sink_tree_begin(io->sink, name, &t->tree, err)) {
        free(t);
        return false;
    }
    *ret = &t->b;
    return true;
}

static bool put(struct body *b, const char *key, const char *suffix, struct str data,
                const char *content_type, struct err *err)
{
    char name[SHARD_KEY_BYTES + 8];
    (void)snprintf(name, sizeof name, "%s.%s", key, suffix);
    b->size.files++;
    b->size.bytes += (int64_t)data.n;
    return sink_tree_put(tree_of(b)->tree, name, data, content_type, err);
}

static bool put_sample(struct body *b, const struct sample *s, struct err *err)
{
    static const char *const types[] = {[IMAGE_UNKNOWN] = "application/octet-stream",
                                        [IMAGE_JPEG] = "image/jpeg",
                                        [IMAGE_PNG] = "image/png",
                                        [IMAGE_WEBP] = "image/webp"};
    const struct shard_format *f = b->io->format;
    char key[SHARD_KEY_BYTES];
    struct buf *json = b->io->scratch;
    shard_key(f, s->shard_i, s->row_i, key);
    buf_reset(json);
    shard_json(f, b->io->columns, s, json);
    if (json->overflow) {
        return err_set(err, ERR_LIMIT, "the json of %s is larger than %zu bytes", key, json->max);
    }
    struct str image = {(const char *)s->image, s->image_n};
    struct str caption;
    return put(b, key, shard_image_suffix(f->image), image, types[f->image], err) &&
           (!shard_caption(b->io->columns, s, &caption) ||
            put(b, key, "txt", caption, "text/plain", err)) &&
           put(b, key, "json", buf_str(json), "application/json", err);
}

static bool files_add(struct body *b, struct sample *s, struct err *err)
{
    bool ok = s->status != STATUS_SUCCESS || put_sample(b, s, err);
    sample_drop_image(s);
    return ok;
}

static bool files_finish(struct body *b, struct body_size *ret, struct err *err)
{
    struct sink_tree_size written;
    bool ok = sink_tree_finish(TAKE(tree_of(b)->tree), &written, err);
    *ret = (struct body_size){written.bytes, written.files};
    free(b);
    return ok;
}

static void files_abort(struct body *b)
{
    sink_tree_abort(tree_of(b)->tree);
    free(b);
}

const struct body_ops body_files = {files_begin, files_add, files_finish, files_abort};
