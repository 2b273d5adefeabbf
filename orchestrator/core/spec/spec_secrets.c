/* Keys anywhere in a campaign file. What is written there is kept in the database, sent to AWS and
 * shown to every viewer of the campaign, whatever field it stands in. */
#include "common/secret_shape.h"
#include "spec_read.h"

static bool refused_there(const struct spec_reader *r, struct position pos)
{
    for (int i = 0; i < r->faults->n; i++) {
        const struct fault *f = &r->faults->at[i];
        if (f->pos.line == pos.line && f->pos.column == pos.column &&
            strcmp(f->code, "secret") == 0) {
            return true;
        }
    }
    return false;
}

static void judge(struct spec_reader *r, const struct spec_node *p, const char *word,
                  struct str text)
{
    const char *what = secret_shape(text);
    if (what != NULL && !refused_there(r, p->pos)) {
        spec_fault(r, p, "secret", SPEC_SECRET_HINT, "the %s looks like %s", word, what);
    }
}

/* As deep as the reader of the text lets a file be. */
void spec_no_secrets_below(struct spec_reader *r, const struct spec_node *p)
{
    const struct yaml_node *n = p->node;
    char key[24];
    if (n->kind == YAML_MAP) {
        for (size_t i = 0; i < n->n; i++) {
            const struct spec_node at = {p, n->keys[i], n->items[i], n->key_pos[i]};
            judge(r, &at, "key", str_of(n->keys[i]));
            spec_no_secrets_below(r, &at);
        }
    } else if (n->kind == YAML_LIST) {
        for (size_t i = 0; i < n->n; i++) {
            const struct spec_node at = spec_item(p, i, key);
            spec_no_secrets_below(r, &at);
        }
    } else if (n->text != NULL) {
        judge(r, p, "value", (struct str){n->text, n->text_n});
    }
}
