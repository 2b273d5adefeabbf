/* See templates.h. The assembler copies the files in. */
#include "templates.h"
#include "common/base.h"

#define X(id, name, summary)                                                                       \
    __asm__(".section .rodata\ntemplate_" #id ":\n.incbin \"deploy/examples/" name                 \
            ".yaml\"\n.byte 0\n.previous\n");                                                      \
    extern const char template_##id[] __attribute__((visibility("hidden")));
#include "templates.def"
#undef X

static const struct template templates[] = {
#define X(id, name, summary) {name, summary, template_##id},
#include "templates.def"
#undef X
};

const struct template *templates_all(size_t *ret_n)
{
    *ret_n = ARRAY_LEN(templates);
    return templates;
}
