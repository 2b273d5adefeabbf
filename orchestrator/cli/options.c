/* See options.h. */
#include "options.h"

static const struct option options[] = {
#define X(name, letter, kind, field, value, choices, help)                                         \
    {name, letter, OPTION_##kind, offsetof(struct cli_options, field), value, choices, help},
#include "options.def"
#undef X
};

const struct option *options_all(size_t *ret_n)
{
    *ret_n = ARRAY_LEN(options);
    return options;
}

const struct option *option_named(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        if (str_eq_cstr(name, options[i].name)) {
            return &options[i];
        }
    }
    return NULL;
}

const struct option *option_lettered(char letter)
{
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        if (options[i].letter != 0 && options[i].letter == letter) {
            return &options[i];
        }
    }
    return NULL;
}

bool option_of(const struct command *c, const struct option *o)
{
    struct str names = str_of(c->options);
    while (names.n > 0) {
        if (str_eq_cstr(str_split(&names, ' '), o->name)) {
            return true;
        }
    }
    return strcmp(o->name, "help") == 0 || strcmp(o->name, "context") == 0;
}

const struct option *option_pending(const char *word)
{
    if (word[1] == '-') {
        const struct option *o = strchr(word, '=') == NULL ? option_named(str_of(word + 2)) : NULL;
        return o != NULL && o->kind != OPTION_BOOL ? o : NULL;
    }
    for (const char *letter = word + 1; *letter != '\0'; letter++) {
        const struct option *o = option_lettered(*letter);
        if (o == NULL || o->kind != OPTION_BOOL) {
            return o != NULL && letter[1] == '\0' ? o : NULL;
        }
    }
    return NULL;
}
