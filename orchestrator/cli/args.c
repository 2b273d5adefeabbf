/* Parses arguments, prints help, and suggests the nearest name for a mistyped one. */
#include "args.h"
#include "cli.h"
#include "print.h"
#include "wait.h"
#include <stdio.h>

enum option_kind { KIND_STR, KIND_NUM, KIND_BOOL };
static const struct option {
    const char *name;
    char letter;
    enum option_kind kind;
    size_t offset;
    const char *value, *help;
} options[] = {
#define X(name, letter, kind, field, value, help)                                                  \
    {name, letter, KIND_##kind, offsetof(struct cli_options, field), value, help},
#include "options.def"
#undef X
};

static const char *const state_words =
    "planned running draining paused held succeeded failed cancelled";

static bool takes(const struct command *c, const char *name)
{
    struct str names = str_of(c->options);
    while (names.n > 0) {
        if (str_eq_cstr(str_split(&names, ' '), name)) {
            return true;
        }
    }
    return strcmp(name, "help") == 0;
}

static const struct command *command_find(const struct commands *all, const char *verb)
{
    for (size_t i = 0; i < all->n; i++) {
        if (strcmp(all->at[i].verb, verb) == 0) {
            return &all->at[i];
        }
    }
    return NULL;
}

static const char *command_guess(const struct commands *all, const char *verb)
{
    const char *best = NULL;
    size_t least = 3;
    for (size_t i = 0; i < all->n; i++) {
        size_t d = str_distance(str_of(verb), str_of(all->at[i].verb));
        if (d < least) {
            least = d;
            best = all->at[i].verb;
        }
    }
    return best;
}

void args_help_all(const struct commands *all)
{
    (void)printf("drover: runs campaigns of SageMaker jobs to their end\n\nusage: drover VERB "
                 "[CAMPAIGN[/STAGE[/PART[/ATTEMPT]]]] [options]\n\n");
    for (size_t i = 0; i < all->n; i++) {
        (void)printf("  %-9s %s\n", all->at[i].verb, all->at[i].summary);
    }
    (void)printf("\nhelp for one verb, with examples: drover VERB --help\nserver: DROVER_URL "
                 "(http://127.0.0.1:8080)\n"
                 "token: DROVER_TOKEN_FILE (~/.config/drover/token)\n"
                 "exit status:\n"
                 "  0 done  1 failed  2 usage  3 not found  4 token  5 conflict\n"
                 "  6 budget or quota  7 server unreachable  8 wait timed out\n"
                 "  10 ended with failed parts  11 cancelled  130 interrupted\n");
}

void args_help(const struct command *c)
{
    (void)printf("examples:\n");
    struct str rest = str_of(c->examples);
    while (rest.n > 0) {
        struct str line = str_split(&rest, '\n');
        (void)printf("  " STR_FMT "\n", STR_ARG(line));
    }
    (void)printf("\ndrover %s %s\n  %s\n\noptions:\n", c->verb, c->args, c->summary);
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        const struct option *o = &options[i];
        if (takes(c, o->name)) {
            AUTO_FREE char *name = xasprintf("--%s %s", o->name, o->value);
            char letter[4] = {o->letter != 0 ? '-' : ' ', o->letter != 0 ? o->letter : ' ',
                              o->letter != 0 ? ',' : ' ', '\0'};
            (void)printf("  %s %-22s %s\n", letter, name, o->help);
        }
    }
}

/* "-n", "-n2" or the name behind "--"; of any command. */
static const struct option *option_any(const char *arg, size_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        const struct option *o = &options[i];
        bool is_long =
            arg[1] == '-' && strlen(o->name) == n - 2 && strncmp(o->name, arg + 2, n - 2) == 0;
        bool attached = n == 2 || o->kind != KIND_BOOL;
        bool is_short = arg[1] != '-' && attached && o->letter != 0 && o->letter == arg[1];
        if (is_long || is_short) {
            return o;
        }
    }
    return NULL;
}

static const struct option *option_find(const struct command *c, const char *arg, size_t n)
{
    const struct option *o = option_any(arg, n);
    return o != NULL && takes(c, o->name) ? o : NULL;
}

static bool option_unknown(const struct command *c, const char *arg, size_t n)
{
    const char *best = NULL;
    size_t least = 4;
    for (size_t i = 0; n > 2 && i < ARRAY_LEN(options); i++) {
        size_t d = str_distance((struct str){arg + 2, n - 2}, str_of(options[i].name));
        if (takes(c, options[i].name) && d < least) {
            least = d;
            best = options[i].name;
        }
    }
    AUTO_FREE char *next = best != NULL ? xasprintf("did you mean --%s?", best)
                                        : xasprintf("drover %s --help shows its options", c->verb);
    (void)fail(EXIT_USAGE, next, "drover %s has no option %.*s", c->verb, (int)n, arg);
    return false;
}

static bool option_set(struct cli *cli, const struct option *o, const char *value)
{
    char *at = (char *)&cli->opt + o->offset;
    bool yes = true;
    int64_t n;
    struct err err = ERR_INIT;
    switch (o->kind) {
    case KIND_BOOL:
        memcpy(at, &yes, sizeof yes);
        return true;
    case KIND_STR:
        memcpy(at, &value, sizeof value);
        return true;
    case KIND_NUM:
        if (!parse_i64(str_of(value), 0, 1000000, &n, &err)) {
            (void)fail(EXIT_USAGE, NULL, "--%s: %s", o->name, err.message);
            return false;
        }
        memcpy(at, &n, sizeof n);
        return true;
    }
    return false;
}

static bool take_option(struct cli *cli, int argc, char **argv, int *i)
{
    const char *arg = argv[*i], *equals = arg[1] == '-' ? strchr(arg, '=') : NULL;
    size_t n = equals != NULL ? (size_t)(equals - arg) : strlen(arg);
    const struct option *o = option_find(cli->command, arg, n);
    if (o == NULL) {
        return option_unknown(cli->command, arg, n);
    }
    const char *value = equals != NULL           ? equals + 1
                        : arg[1] != '-' && n > 2 ? arg + 2 + (arg[2] == '=')
                                                 : NULL;
    if (o->kind == KIND_BOOL && value != NULL) {
        (void)fail(EXIT_USAGE, NULL, "--%s takes no value", o->name);
        return false;
    }
    if (o->kind != KIND_BOOL && value == NULL) {
        if (*i + 1 >= argc) {
            (void)fail(EXIT_USAGE, NULL, "--%s needs a value: %s", o->name, o->value);
            return false;
        }
        value = argv[++*i];
    }
    return option_set(cli, o, value);
}

static bool output_read(struct cli *cli)
{
    static const char *const names[] = {"table", "json", "jsonl", "name"};
    const char *o = cli->opt.output;
    if (o == NULL) {
        return true;
    }
    cli->csv = strcmp(o, "csv") == 0;
    cli->wide = strcmp(o, "wide") == 0;
    cli->yaml = strcmp(o, "yaml") == 0;
    if (cli->yaml) {
        cli->out = OUT_JSON;
        return true;
    }
    if (cli->csv && !takes(cli->command, "columns")) {
        (void)fail(EXIT_USAGE, "use -o json or yaml", "drover %s prints no table for csv",
                   cli->command->verb);
        return false;
    }
    if (cli->csv || cli->wide) {
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(cli->opt.output, names[i]) == 0) {
            cli->out = (enum cli_output)i;
            return true;
        }
    }
    (void)fail(EXIT_USAGE, "table, wide, csv, json, jsonl, yaml or name", "-o %s is not known",
               cli->opt.output);
    return false;
}

static bool until_check(const struct cli *cli)
{
    struct str names = str_of(state_words);
    bool known = cli->opt.until == NULL;
    while (names.n > 0) {
        known |= cli->opt.until != NULL && str_eq_cstr(str_split(&names, ' '), cli->opt.until);
        if (cli->opt.until == NULL) {
            break;
        }
    }
    if (!known) {
        (void)fail(EXIT_USAGE, state_words, "--until %s is not a state of a campaign",
                   cli->opt.until);
    }
    return known;
}

/* The number of words: "CAMPAIGN[/PART] [USD]" is at most two, at least one. */
static void count_words(const char *args, int *ret_min, int *ret_max)
{
    struct str rest = str_of(args);
    *ret_min = *ret_max = 0;
    while (rest.n > 0) {
        struct str word = str_split(&rest, ' ');
        *ret_min += word.n > 0 && word.p[0] != '[';
        *ret_max += word.n > 0;
    }
}

static bool count_check(const struct cli *cli)
{
    static const char *const words[] = {"no argument", "one argument", "two arguments",
                                        "three arguments"};
    const char *args = cli->command->args;
    int min, max;
    count_words(args, &min, &max);
    ASSERT(max < (int)ARRAY_LEN(words));
    AUTO_FREE char *next = xasprintf("drover %s --help shows examples", cli->command->verb);
    if (cli->args_n < min) {
        (void)fail(EXIT_USAGE, next, "drover %s needs %s", cli->command->verb, args);
        return false;
    }
    if (cli->args_n > max) {
        (void)fail(EXIT_USAGE, next, "drover %s takes %s, not also '%s'", cli->command->verb,
                   words[max], cli->args[max]);
        return false;
    }
    return true;
}

/* Where the verb is: the first word that is neither an option nor the value of one. */
static int verb_at(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (arg[0] != '-' || arg[1] == '\0') {
            return i;
        }
        const struct option *o = strchr(arg, '=') == NULL ? option_any(arg, strlen(arg)) : NULL;
        bool attached = arg[1] != '-' && strlen(arg) > 2;
        i += o != NULL && o->kind != KIND_BOOL && !attached;
    }
    return 1;
}

bool args_parse(const struct commands *all, struct cli *cli, int argc, char **argv)
{
    int verb = verb_at(argc, argv);
    cli->command = command_find(all, argv[verb]);
    if (cli->command == NULL) {
        const char *guess = command_guess(all, argv[verb]);
        AUTO_FREE char *next = guess != NULL ? xasprintf("did you mean drover %s?", guess)
                                             : xstrdup("drover help lists the verbs");
        (void)fail(EXIT_USAGE, next, "there is no verb '%.40s'", argv[verb]);
        return false;
    }
    bool plain = false;
    for (int i = 1; i < argc; i++) {
        if (i == verb) {
            continue;
        }
        bool option = !plain && argv[i][0] == '-' && argv[i][1] != '\0';
        if (option && strcmp(argv[i], "--") == 0) {
            plain = true;
        } else if (option) {
            if (!take_option(cli, argc, argv, &i)) {
                return false;
            }
        } else if (cli->args_n < CLI_ARGS_MAX) {
            cli->args[cli->args_n++] = argv[i];
        }
    }
    int64_t timeout_us;
    return cli->opt.help || (output_read(cli) && until_check(cli) &&
                             timeout_read(cli, &timeout_us) && count_check(cli));
}
