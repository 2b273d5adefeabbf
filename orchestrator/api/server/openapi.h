/* /openapi.json: what routes.def, parameters.def, schemas*.def and problems.def say, as one
 * OpenAPI 3.1 document. */
#pragma once
#include "common/json.h"

#define OPENAPI_MAX (1024 * 1024)
/* Append the document; schemas as schemas_load gives them. */
void openapi_build(const json_t *schemas, struct buf *out);
