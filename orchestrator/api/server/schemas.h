/* The schemas of bodies and answers (JSON Schema 2020-12, as OpenAPI 3.1 takes it), and the check
 * of a request's body against its schema. In schemas*.def a reference is {"$ref": "NAME"},
 * and a maximum may be the name of a limit in schemas.c. */
#pragma once
#include "common/json.h"
#include "common/position.h"

#define SCHEMA_REF_PREFIX "#/components/schemas/"

/* All schemas by name, with references as OpenAPI writes them. The caller decrefs. */
json_t *schemas_load(void);
/* Append /schemas/campaign.json, the JSON Schema of a campaign file. */
void schemas_campaign(struct buf *out);
/* Check v against schemas[name]; every fault goes to f. Keywords that are not checked are a bug,
 * but for those that only describe. */
bool schema_check(const json_t *schemas, const char *name, const json_t *v,
                  struct faults *f) MUST_CHECK;
