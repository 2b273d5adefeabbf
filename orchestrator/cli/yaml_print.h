/* JSON as YAML in block style, for people and for every reader of YAML 1.1 or 1.2. */
#pragma once
#include "common/json.h"

void yaml_print(const json_t *v); /* on stdout, with a newline at the end */
