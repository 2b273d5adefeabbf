/* Whether a text looks like a key, by the shapes that providers give their keys, so that a plain
 * word, a hash or a path does not. Texts from outside (reasons, errors, lines of logs) lose
 * theirs. */
#pragma once
#include "str.h"

/* What is in it, for people ("an AWS access key id"); NULL when nothing looks like a key. */
const char *secret_shape(struct str text);
/* The same for the value of a variable whose name says that it is one, like HF_TOKEN. */
const char *secret_shape_named(const char *name, struct str value);
/* Each key in the text becomes its prefix and three stars, in place: "AKIA***", "https://me:***@x".
 * A text that has none stays as it is. */
void secret_mask(char *text);
/* The same for one line of a log. The lines of a private key say nothing one by one: each becomes
 * three stars. *in_key: false before the first line of a page, then kept by this function; a page
 * may begin in the middle of a key. */
void secret_mask_line(char *text, bool *in_key);
