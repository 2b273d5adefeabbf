/* YAML to a tree with positions, over libyaml's event parser. It has its own composer: only the
 * core schema's types, every limit counted while the text is read, and aliases counted by the nodes
 * they stand for (so "billion laughs" stops at YAML_NODES_MAX). */
#include "common/yaml.h"
#include "common/arena.h"
#include "yaml_pairs.h"
#include "yaml_scalar.h"
#include <yaml.h>

#define YAML_TEXT_BYTES_MAX  ((size_t)1024 * 1024)
#define YAML_DEPTH_MAX       32
#define YAML_NODES_MAX       ((size_t)100000)
#define YAML_ALIASES_MAX     64
#define YAML_ANCHORS_MAX     64
#define YAML_ARENA_BYTES_MAX ((size_t)64 * 1024 * 1024)

struct yaml_doc {
    struct arena arena;
    struct yaml_node *root;
};

struct anchor {
    const char *name;
    struct yaml_node *node; /* NULL while its own content is being read */
    size_t weight;          /* nodes it stands for, aliases expanded */
    int height;             /* levels below it */
};

struct composer {
    yaml_parser_t parser;
    struct str text;
    struct yaml_pairs pairs;
    struct yaml_doc *doc;
    struct faults *faults;
    struct anchor anchors[YAML_ANCHORS_MAX];
    int anchors_n;
    int aliases_n;
    size_t nodes_n; /* aliases expanded */
    bool fatal;     /* a fault after which nothing more is read */
    bool faulty;
};

/* Children of a list or map while they arrive; copied into the arena when it ends. */
struct children {
    struct yaml_node **items;
    const char **keys;
    struct position *key_pos;
    size_t n;
    size_t cap;
};

static struct position pos_of(const struct composer *c, yaml_mark_t m)
{
    struct position pos = {.line = (int)m.line + 1, .column = (int)m.column + 1};
    return c->pairs.n == 0 ? pos : yaml_pairs_origin(&c->pairs, pos);
}

/* Line and column (in characters) of a byte. */
static struct position pos_of_offset(struct str text, size_t offset)
{
    struct position p = {.line = 1, .column = 1};
    for (size_t i = 0; i < offset && i < text.n; i++) {
        if (text.p[i] == '\n') {
            p.line++;
            p.column = 1;
        } else if (((uint8_t)text.p[i] & 0xc0) != 0x80) {
            p.column++;
        }
    }
    return p;
}

/* The first byte that is not part of a well-formed character: they are tried one by one. */
static size_t bad_offset(struct str text)
{
    size_t good = 0;
    for (size_t i = 0; i < text.n; i++) {
        bool boundary = ((uint8_t)text.p[i] & 0xc0) != 0x80;
        if (boundary && i > good) {
            if (!str_is_utf8((struct str){text.p + good, i - good})) {
                return good;
            }
            good = i;
        }
    }
    return good;
}

static void fault(struct composer *c, struct position pos, const char *code, const char *hint,
                  const char *message)
{
    c->faulty = true;
    faults_add(c->faults, pos, "", code, hint, "%s", message);
}

static void fatal(struct composer *c, struct position pos, const char *code, const char *message)
{
    c->fatal = true;
    fault(c, pos, code, "", message);
}

static struct yaml_node *new_node(struct composer *c, enum yaml_kind kind, struct position pos)
{
    if (++c->nodes_n > YAML_NODES_MAX) {
        fatal(c, pos, "too_large", "more than 100000 values");
        return NULL;
    }
    struct yaml_node *n = arena_alloc(&c->doc->arena, sizeof *n);
    n->kind = kind;
    n->pos = pos;
    return n;
}

static struct anchor *find_anchor(struct composer *c, const char *name)
{
    for (int i = c->anchors_n - 1; i >= 0; i--) {
        if (strcmp(c->anchors[i].name, name) == 0) {
            return &c->anchors[i];
        }
    }
    return NULL;
}

static int begin_anchor(struct composer *c, const yaml_char_t *name, struct position pos)
{
    const char *text = (const char *)name;
    if (text == NULL) {
        return -1;
    }
    if (c->anchors_n == YAML_ANCHORS_MAX) {
        fatal(c, pos, "too_large", "more than 64 anchors");
        return -1;
    }
    c->anchors[c->anchors_n] =
        (struct anchor){.name = arena_strndup(&c->doc->arena, text, strlen(text))};
    return c->anchors_n++;
}

static void refuse_tag(struct composer *c, const yaml_char_t *tag, struct position pos)
{
    if (tag != NULL) {
        fault(c, pos, "tag", "leave the tag out", "tags like !x or !!str are not accepted");
    }
}

static struct yaml_node *compose(struct composer *c, const yaml_event_t *e, int depth,
                                 int *ret_height);

/* Next event, or false with the syntax fault recorded. The caller deletes the event. */
static bool next_event(struct composer *c, yaml_event_t *e)
{
    if (yaml_parser_parse(&c->parser, e) == 1) {
        return true;
    }
    const yaml_parser_t *p = &c->parser;
    if (p->error == YAML_MEMORY_ERROR) { /* no fault of the text */
        out_of_memory();
    }
    struct position pos = pos_of(c, p->problem_mark);
    if (p->error == YAML_READER_ERROR) {
        pos = pos_of_offset(c->text, p->problem_offset);
    }
    const char *problem = p->problem == NULL ? "cannot be read" : p->problem;
    bool odd = strstr(problem, "cannot start any token") != NULL;
    bool tab = odd && p->buffer.pointer != NULL && *p->buffer.pointer == '\t';
    char text[256];
    (void)snprintf(text, sizeof text, "%s%s%s", p->context == NULL ? "" : p->context,
                   p->context == NULL ? "" : ": ", problem);
    fault(c, pos, "syntax",
          tab   ? "indent with spaces"
          : odd ? "indent with spaces, and quote text that starts oddly"
                : "",
          tab ? "a tab cannot stand here" : text);
    c->fatal = true;
    return false;
}

static struct yaml_node *compose_alias(struct composer *c, const yaml_event_t *e, int depth,
                                       int *ret_height)
{
    struct position pos = pos_of(c, e->start_mark);
    const struct anchor *a = find_anchor(c, (const char *)e->data.alias.anchor);
    if (++c->aliases_n > YAML_ALIASES_MAX) {
        fatal(c, pos, "too_large", "more than 64 aliases");
    } else if (a == NULL) {
        fatal(c, pos, "alias", "an alias to an anchor that is not there");
    } else if (a->node == NULL) {
        fatal(c, pos, "alias", "an alias inside of what it stands for");
    } else if (depth + a->height > YAML_DEPTH_MAX) {
        fatal(c, pos, "too_deep", "nested deeper than 32");
    } else if (a->weight > YAML_NODES_MAX - c->nodes_n) {
        fatal(c, pos, "too_large", "more than 100000 values with aliases written out");
    } else {
        c->nodes_n += a->weight;
        *ret_height = a->height;
        return a->node;
    }
    return NULL;
}

static struct yaml_node *compose_scalar(struct composer *c, const yaml_event_t *e)
{
    struct position pos = pos_of(c, e->start_mark);
    struct yaml_node *n = new_node(c, YAML_STRING, pos);
    if (n == NULL) {
        return NULL;
    }
    const char *value = (const char *)e->data.scalar.value;
    n->text_n = e->data.scalar.length;
    n->text = arena_strndup(&c->doc->arena, value, n->text_n);
    n->quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    refuse_tag(c, e->data.scalar.tag, pos);
    if (strlen(n->text) != n->text_n) {
        fault(c, pos, "nul", "", "text with a NUL character");
        n->text_n = strlen(n->text);
    }
    const char *wrong = n->quoted ? NULL : yaml_resolve_plain(n);
    if (wrong != NULL) {
        fault(c, pos, "range", "quote it if it is meant as text", wrong);
    }
    return n;
}

static void children_done(struct children *k)
{
    free(k->items);
    free(k->keys);
    free(k->key_pos);
}

static void add_child(struct children *k, const char *key, struct position key_pos,
                      struct yaml_node *node)
{
    if (k->n == k->cap) {
        k->cap = k->cap == 0 ? 8 : k->cap * 2;
        k->items = xrealloc(k->items, k->cap * sizeof *k->items);
        k->keys = xrealloc(k->keys, k->cap * sizeof *k->keys);
        k->key_pos = xrealloc(k->key_pos, k->cap * sizeof *k->key_pos);
    }
    k->items[k->n] = node;
    k->keys[k->n] = key;
    k->key_pos[k->n] = key_pos;
    k->n++;
}

static void *arena_copy(struct arena *a, const void *p, size_t n)
{
    void *to = arena_alloc(a, n);
    if (n > 0) {
        memcpy(to, p, n);
    }
    return to;
}

static void keep_children(struct composer *c, struct yaml_node *n, const struct children *k)
{
    struct arena *a = &c->doc->arena;
    n->n = k->n;
    n->items = arena_copy(a, k->items, k->n * sizeof *k->items);
    if (n->kind == YAML_MAP) {
        n->keys = arena_copy(a, k->keys, k->n * sizeof *k->keys);
        n->key_pos = arena_copy(a, k->key_pos, k->n * sizeof *k->key_pos);
    }
}

/* The key of a map's entry: plain or quoted text, nothing else. NULL ends the reading. */
static const char *compose_key(struct composer *c, const yaml_event_t *e)
{
    struct position pos = pos_of(c, e->start_mark);
    if (e->type != YAML_SCALAR_EVENT) {
        fatal(c, pos, "key", "a key must be text, not a list, map or alias");
        return NULL;
    }
    const char *value = (const char *)e->data.scalar.value;
    size_t n = e->data.scalar.length;
    bool quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    refuse_tag(c, e->data.scalar.tag, pos);
    if (e->data.scalar.anchor != NULL) {
        fault(c, pos, "key", "", "a key cannot carry an anchor");
    }
    if (strlen(value) != n) {
        fault(c, pos, "nul", "", "a key with a NUL character");
    } else if (n == 0) {
        fault(c, pos, "key", "", "an empty key");
    } else if (!quoted && strcmp(value, "<<") == 0) {
        fault(c, pos, "merge", "write the keys out", "merge keys '<<' are not accepted");
    }
    return arena_strndup(&c->doc->arena, value, n);
}

struct key_ref {
    const char *key;
    size_t i;
};

static int compare_keys(const void *a, const void *b)
{
    const struct key_ref *x = a;
    const struct key_ref *y = b;
    int order = strcmp(x->key, y->key);
    return order != 0 ? order : (x->i < y->i ? -1 : 1);
}

/* Sorted rather than compared pairwise: a map may have a hundred thousand keys. */
static void check_duplicates(struct composer *c, const struct children *k)
{
    struct key_ref *refs = xcalloc(k->n, sizeof *refs);
    for (size_t i = 0; i < k->n; i++) {
        refs[i] = (struct key_ref){k->keys[i], i};
    }
    qsort(refs, k->n, sizeof *refs, compare_keys);
    for (size_t i = 1; i < k->n; i++) {
        if (strcmp(refs[i].key, refs[i - 1].key) == 0) {
            char text[160];
            (void)snprintf(text, sizeof text, "'%.64s' was set before, in line %d", refs[i].key,
                           k->key_pos[refs[i - 1].i].line);
            fault(c, k->key_pos[refs[i].i], "duplicate_key", "", text);
        }
    }
    free(refs);
}

/* Entries up to the end of the list or map. False: a fatal fault was recorded. */
static bool compose_children(struct composer *c, bool map, int depth, struct children *k,
                             int *ret_height)
{
    yaml_event_type_t end = map ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    for (;;) {
        yaml_event_t e;
        const char *key = NULL;
        struct position key_pos = {0};
        if (!next_event(c, &e)) {
            return false;
        }
        if (e.type == end) {
            yaml_event_delete(&e);
            return true;
        }
        if (map) {
            key = compose_key(c, &e);
            key_pos = pos_of(c, e.start_mark);
            yaml_event_delete(&e);
            if (key == NULL || !next_event(c, &e)) {
                return false;
            }
        }
        int height = 0;
        struct yaml_node *node = compose(c, &e, depth + 1, &height);
        yaml_event_delete(&e);
        if (node == NULL) {
            return false;
        }
        add_child(k, key, key_pos, node);
        *ret_height = MAX(*ret_height, height + 1);
    }
}

static struct yaml_node *compose_collection(struct composer *c, const yaml_event_t *e, int depth,
                                            int *ret_height)
{
    bool map = e->type == YAML_MAPPING_START_EVENT;
    struct position pos = pos_of(c, e->start_mark);
    if (depth > YAML_DEPTH_MAX) {
        fatal(c, pos, "too_deep", "nested deeper than 32");
        return NULL;
    }
    struct yaml_node *n = new_node(c, map ? YAML_MAP : YAML_LIST, pos);
    if (n == NULL) {
        return NULL;
    }
    refuse_tag(c, map ? e->data.mapping_start.tag : e->data.sequence_start.tag, pos);
    CLEANUP(children_done)
    struct children k = {0};
    if (!compose_children(c, map, depth, &k, ret_height)) {
        return NULL;
    }
    if (map) {
        check_duplicates(c, &k);
    }
    keep_children(c, n, &k);
    return n;
}

static const yaml_char_t *anchor_of(const yaml_event_t *e)
{
    return e->type == YAML_SCALAR_EVENT          ? e->data.scalar.anchor
           : e->type == YAML_MAPPING_START_EVENT ? e->data.mapping_start.anchor
                                                 : e->data.sequence_start.anchor;
}

/* The node that begins with event e, at depth (1 = the root). NULL: a fatal fault was recorded. */
static struct yaml_node *compose(struct composer *c, const yaml_event_t *e, int depth,
                                 int *ret_height)
{
    if (e->type == YAML_ALIAS_EVENT) {
        return compose_alias(c, e, depth, ret_height);
    }
    size_t before = c->nodes_n;
    int anchor = begin_anchor(c, anchor_of(e), pos_of(c, e->start_mark));
    if (c->fatal) {
        return NULL;
    }
    struct yaml_node *n = e->type == YAML_SCALAR_EVENT
                              ? compose_scalar(c, e)
                              : compose_collection(c, e, depth, ret_height);
    if (anchor >= 0 && n != NULL) {
        c->anchors[anchor].node = n;
        c->anchors[anchor].weight = c->nodes_n - before;
        c->anchors[anchor].height = *ret_height;
    }
    return n;
}

/* One event of the stream's frame; false (with a fault) when it is another. */
static bool expect(struct composer *c, yaml_event_type_t type, const char *code,
                   const char *message)
{
    yaml_event_t e;
    if (!next_event(c, &e)) {
        return false;
    }
    bool ok = e.type == type;
    if (!ok) {
        fatal(c, pos_of(c, e.start_mark), code, message);
    }
    yaml_event_delete(&e);
    return ok;
}

static void compose_document(struct composer *c)
{
    if (!expect(c, YAML_STREAM_START_EVENT, "syntax", "not a YAML stream") ||
        !expect(c, YAML_DOCUMENT_START_EVENT, "empty", "there is nothing in it")) {
        return;
    }
    yaml_event_t e;
    int height = 0;
    if (!next_event(c, &e)) {
        return;
    }
    c->doc->root = compose(c, &e, 1, &height);
    yaml_event_delete(&e);
    if (c->doc->root != NULL && expect(c, YAML_DOCUMENT_END_EVENT, "syntax", "no document end")) {
        (void)expect(c, YAML_STREAM_END_EVENT, "documents", "more than one document");
    }
}

/* keep_faulty: give the tree unless reading had to end early. */
static bool parse(struct str text, bool keep_faulty, struct yaml_doc **ret, struct faults *faults)
{
    *ret = NULL;
    if (text.n > YAML_TEXT_BYTES_MAX) {
        faults_add(faults, (struct position){0}, "", "too_large", "",
                   "text of %zu bytes, at most %zu", text.n, YAML_TEXT_BYTES_MAX);
        return false;
    }
    struct composer *c = xcalloc(1, sizeof *c);
    text = str_without_mark(text); /* libyaml itself takes it only where it guesses the encoding */
    if (yaml_pairs_join(text, &c->pairs)) {
        text = buf_str(&c->pairs.text);
    }
    c->faults = faults;
    c->doc = xcalloc(1, sizeof *c->doc);
    c->text = text;
    arena_init(&c->doc->arena, YAML_ARENA_BYTES_MAX);
    if (yaml_parser_initialize(&c->parser) != 1) {
        out_of_memory();
    }
    const char *start = text.n == 0 ? "" : text.p;
    if (str_is_utf8(text)) {
        yaml_parser_set_encoding(&c->parser, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&c->parser, (const unsigned char *)start, text.n);
        compose_document(c);
    } else {
        fatal(c, pos_of_offset(text, bad_offset(text)), "encoding", "not UTF-8 text");
    }
    yaml_parser_delete(&c->parser);
    bool good = keep_faulty ? !c->fatal : !c->faulty;
    if (good) {
        *ret = TAKE(c->doc);
    }
    yaml_doc_free(c->doc);
    yaml_pairs_done(&c->pairs);
    free(c);
    return good;
}

bool yaml_parse(struct str text, struct yaml_doc **ret, struct faults *faults)
{
    return parse(text, false, ret, faults);
}

bool yaml_parse_whole(struct str text, struct yaml_doc **ret, struct faults *faults)
{
    return parse(text, true, ret, faults);
}

const struct yaml_node *yaml_root(const struct yaml_doc *d)
{
    return d->root;
}

void yaml_doc_free(struct yaml_doc *d)
{
    if (d != NULL) {
        arena_done(&d->arena);
        free(d);
    }
}

void yaml_freep(struct yaml_doc **d)
{
    yaml_doc_free(*d);
}

const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key)
{
    if (map == NULL || map->kind != YAML_MAP) {
        return NULL;
    }
    for (size_t i = 0; i < map->n; i++) {
        if (strcmp(map->keys[i], key) == 0) {
            return map->items[i];
        }
    }
    return NULL;
}
