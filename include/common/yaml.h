/* Parses YAML (or JSON, its subset) into a tree of nodes with positions. YAML 1.2 core schema;
 * plain `no`, `on`, `yes` stay strings with `maybe_bool` set. No tags, no merge keys, aliases <=
 * 64, depth <= 32, nodes <= 100,000, text <= 1 MiB; duplicate keys are faults. */
#pragma once
#include "position.h"
#include "str.h"

enum yaml_kind { YAML_NULL, YAML_BOOL, YAML_INT, YAML_FLOAT, YAML_STRING, YAML_LIST, YAML_MAP };
struct yaml_node {
    enum yaml_kind kind;
    struct position pos;
    const char *text; /* scalars: the text as written (unquoted), NUL-terminated */
    size_t text_n;
    bool quoted;
    /* a plain yes, no, on, off, y or n: kind is STRING, b holds the boolean it may mean */
    bool maybe_bool;
    int64_t i;
    double f;
    bool b;
    struct yaml_node **items; /* LIST: items[n]; MAP: values[n], with the keys in keys[n] */
    const char **keys;
    struct position *key_pos;
    size_t n;
};
struct yaml_doc; /* owns all nodes */
/* Parse. False on syntax faults, which are added to *faults; *ret is then NULL. */
bool yaml_parse(struct str text, struct yaml_doc **ret, struct faults *faults) MUST_CHECK;
/* As yaml_parse, but a text with faults that could be read to its end still returns its tree, so
 * that the caller can add faults of its own. A duplicate key is in the map twice; the first is
 * found. False when reading ended early; *ret is then NULL. */
bool yaml_parse_whole(struct str text, struct yaml_doc **ret, struct faults *faults) MUST_CHECK;
const struct yaml_node *yaml_root(const struct yaml_doc *d);
void yaml_doc_free(struct yaml_doc *d);
void yaml_freep(struct yaml_doc **d);
const struct yaml_node *yaml_get(const struct yaml_node *map,
                                 const char *key); /* NULL when absent */
