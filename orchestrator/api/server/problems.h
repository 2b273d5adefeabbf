/* What each error means, for people: pages below /problems/, and descriptions in /openapi.json. */
#pragma once
#include "common/err.h"

/* A sentence. */
const char *problem_meaning(enum err_code code);
