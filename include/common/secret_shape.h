/* Does a text look like a key? By the shapes that providers give their keys, so that a plain word,
 * a hash or a path does not. */
#pragma once
#include "str.h"

/* What is in it, for people ("an AWS access key id"); NULL when nothing looks like a key. */
const char *secret_shape(struct str text);
/* The same for the value of a variable whose name says that it is one, like HF_TOKEN. */
const char *secret_shape_named(const char *name, struct str value);
