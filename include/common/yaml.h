/* A YAML (or JSON, its subset) text to a tree of nodes with positions. YAML 1.2's core schema, and
 * no surprises: plain `no`, `on`, `yes` stay strings with `maybe_bool` set, no tags, no merge keys,
 * aliases <= 64, depth <= 32, nodes <= 100,000, text <= 1 MiB, duplicate keys are faults. */
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
    bool maybe_bool; /* a plain yes, no, on, off, y or n: STRING, as a boolean in b */
    int64_t i;
    double f;
    bool b;
    struct yaml_node **items; /* LIST: items[n]; MAP: values[n] beside keys[n] */
    const char **keys;
    struct position *key_pos;
    size_t n;
};
struct yaml_doc; /* owns all nodes */
/* Parse; syntax faults go to *faults and give false. *ret is NULL then. */
bool yaml_parse(struct str text, struct yaml_doc **ret, struct faults *faults) MUST_CHECK;
/* As yaml_parse, but a text that could be read to its end gives its tree beside its faults (a
 * duplicate key: both are in the map, the first is found), so that a caller can add its own. False:
 * reading ended early and *ret is NULL. */
bool yaml_parse_whole(struct str text, struct yaml_doc **ret, struct faults *faults) MUST_CHECK;
const struct yaml_node *yaml_root(const struct yaml_doc *d);
void yaml_doc_free(struct yaml_doc *d);
void yaml_freep(struct yaml_doc **d);
const struct yaml_node *yaml_get(const struct yaml_node *map,
                                 const char *key); /* NULL when absent */
