/* Part of yaml.c: JSON writes characters past U+FFFF as two \u escapes, which libyaml refuses. They
 * are replaced by the characters before libyaml reads the text, and positions are mapped back to
 * the original text. */
#pragma once
#include "common/buf.h"
#include "common/position.h"

struct yaml_pairs {
    struct buf text;
    struct position *at; /* at[n], where the characters put in stand in `text`, in order */
    size_t n;
};
/* Rewrite a JSON text that has such pairs. False when there is nothing to do. */
bool yaml_pairs_join(struct str in, struct yaml_pairs *ret) MUST_CHECK;
void yaml_pairs_done(struct yaml_pairs *p);
/* A position in the rewritten text as one in the text given. */
struct position yaml_pairs_origin(const struct yaml_pairs *p, struct position pos);
