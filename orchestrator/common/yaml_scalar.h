/* Part of yaml.c: the meaning of plain scalars. */
#pragma once
#include "common/yaml.h"

/* Set kind and value of a plain scalar from its text. NULL, or why the number cannot be held. */
const char *yaml_resolve_plain(struct yaml_node *n);
