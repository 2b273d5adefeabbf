/* Campaign files: either a tree within its limits or at least one fault; never both. JSON without
 * surrogate escapes that our JSON reader takes, the YAML reader takes as well. */
#include "common/cleanup.h"
#include "common/json.h"
#include "common/yaml.h"
#include "fuzz.h"

static size_t walk(const struct yaml_node *n, int depth)
{
    size_t count = 1;
    ASSERT(depth <= 32);
    ASSERT(n->pos.line > 0 && n->pos.column > 0);
    switch (n->kind) {
    case YAML_NULL:
    case YAML_BOOL:
    case YAML_INT:
    case YAML_FLOAT:
    case YAML_STRING:
        ASSERT(strlen(n->text) == n->text_n);
        return 1;
    case YAML_LIST:
    case YAML_MAP:
        break;
    }
    for (size_t i = 0; i < n->n; i++) {
        if (n->kind == YAML_MAP) {
            ASSERT(yaml_get(n, n->keys[i]) == n->items[i]);
        }
        count += walk(n->items[i], depth + 1);
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(yaml_freep)
    struct yaml_doc *d = NULL;
    struct faults *faults = xcalloc(1, sizeof *faults);
    struct str in = {(const char *)data, size};
    bool ok = yaml_parse(in, &d, faults);
    ASSERT(ok == (faults->n == 0));
    ASSERT(ok == (d != NULL));
    if (ok && size < 4096) {
        ASSERT(walk(yaml_root(d), 1) <= 100000);
    }
    free(faults);
    return 0;
}
