/* Parses arguments, prints help, and suggests the nearest name for a mistyped one. */
#include "args.h"
#include "cli.h"
#include "options.h"
#include "print.h"
#include "wait.h"
#include <stdio.h>

#define NUMBER_MAX INT64_C(1000000000000000) /* what the API takes for an epoch */

const struct command *command_find(const struct commands *all, const char *verb)
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
        (void)printf("  %-10s %s\n", all->at[i].verb, all->at[i].summary);
    }
    (void)printf("\nhelp for one verb, with examples: drover VERB --help\n"
                 "server: --context, DROVER_URL, else of drover login (http://127.0.0.1:8080)\n"
                 "token: --context, DROVER_TOKEN_FILE, else of drover login\n"
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
    size_t n;
    const struct option *options = options_all(&n);
    for (size_t i = 0; i < n; i++) {
        const struct option *o = &options[i];
        if (option_of(c, o)) {
            AUTO_FREE char *name = xasprintf("--%s %s", o->name, o->value);
            char letter[4] = {o->letter != 0 ? '-' : ' ', o->letter != 0 ? o->letter : ' ',
                              o->letter != 0 ? ',' : ' ', '\0'};
            (void)printf("  %s %-22s %s\n", letter, name, o->help);
        }
    }
}

static bool option_unknown(const struct command *c, const char *arg, size_t n)
{
    const char *best = NULL;
    size_t least = 4;
    size_t options_n;
    const struct option *options = options_all(&options_n);
    for (size_t i = 0; n > 2 && i < options_n; i++) {
        size_t d = str_distance((struct str){arg + 2, n - 2}, str_of(options[i].name));
        if (option_of(c, &options[i]) && d < least) {
            least = d;
            best = options[i].name;
        }
    }
    AUTO_FREE char *next = best != NULL ? xasprintf("did you mean --%s?", best)
                                        : xasprintf("drover %s --help shows its options", c->verb);
    (void)fail(EXIT_USAGE, next, "drover %s has no option %.*s", c->verb, (int)n, arg);
    return false;
}

/* True when the option takes any text, or one of its words. */
static bool choice_check(const struct option *o, const char *value)
{
    struct str rest = str_of(o->choices);
    bool known = rest.n == 0;
    AUTO_BUF struct buf all = BUF_INIT(1024);
    while (rest.n > 0) {
        struct str one = str_split(&rest, ' ');
        known |= str_eq_cstr(one, value);
        buf_addf(&all, "%s" STR_FMT, all.n == 0 ? "" : rest.n == 0 ? " or " : ", ", STR_ARG(one));
    }
    if (!known) {
        (void)fail(EXIT_USAGE, buf_cstr(&all), "--%s: '%.40s' is not known", o->name, value);
    }
    return known;
}

static bool option_set(struct cli *cli, const struct option *o, const char *value)
{
    char *at = (char *)&cli->opt + o->offset;
    bool yes = true;
    int64_t n;
    struct err err = ERR_INIT;
    switch (o->kind) {
    case OPTION_BOOL:
        memcpy(at, &yes, sizeof yes);
        return true;
    case OPTION_STR:
        memcpy(at, &value, sizeof value);
        return choice_check(o, value);
    case OPTION_NUM:
    case OPTION_COUNT:
        if (!parse_i64(str_of(value), o->kind == OPTION_NUM, NUMBER_MAX, &n, &err)) {
            AUTO_FREE char *next = xasprintf("write a number: --%s 5", o->name);
            (void)fail(EXIT_USAGE, next, "--%s: %s", o->name, err.message);
            return false;
        }
        memcpy(at, &n, sizeof n);
        return true;
    }
    return false;
}

/* A value in the same word, else the next word. NULL after an error message. */
static const char *take_value(const struct cli *cli, const struct option *o, const char *joined,
                              int argc, char **argv, int *i)
{
    if (joined != NULL) {
        return joined;
    }
    if (*i + 1 >= argc) {
        AUTO_FREE char *next = xasprintf("drover %s --help shows examples", cli->command->verb);
        (void)fail(EXIT_USAGE, next, "--%s needs a value: %s", o->name, o->value);
        return NULL;
    }
    return argv[++*i];
}

/* --name, --name=value, --name value */
static bool take_long(struct cli *cli, int argc, char **argv, int *i)
{
    const char *arg = argv[*i], *equals = strchr(arg, '=');
    size_t n = equals != NULL ? (size_t)(equals - arg) : strlen(arg);
    const struct option *o = option_named((struct str){arg + 2, n - 2});
    const char *value = equals != NULL ? equals + 1 : NULL;
    if (o == NULL || !option_of(cli->command, o)) {
        return option_unknown(cli->command, arg, n);
    }
    if (o->kind == OPTION_BOOL && value != NULL) {
        AUTO_FREE char *next = xasprintf("write --%s alone", o->name);
        (void)fail(EXIT_USAGE, next, "--%s takes no value", o->name);
        return false;
    }
    if (o->kind != OPTION_BOOL) {
        value = take_value(cli, o, value, argc, argv, i);
    }
    return (o->kind == OPTION_BOOL || value != NULL) && option_set(cli, o, value);
}

/* -y, -yw, -n2, -n 2, -n=2, -yn2 */
static bool take_letters(struct cli *cli, int argc, char **argv, int *i)
{
    const char *arg = argv[*i];
    for (size_t k = 1; arg[k] != '\0'; k++) {
        const struct option *o = option_lettered(arg[k]);
        if (o == NULL || !option_of(cli->command, o)) {
            return option_unknown(cli->command, arg, strlen(arg));
        }
        if (o->kind != OPTION_BOOL) {
            const char *joined = arg[k + 1] != '\0' ? arg + k + 1 + (arg[k + 1] == '=') : NULL;
            const char *value = take_value(cli, o, joined, argc, argv, i);
            return value != NULL && option_set(cli, o, value);
        }
        if (!option_set(cli, o, NULL)) {
            return false;
        }
    }
    return true;
}

static bool take_option(struct cli *cli, int argc, char **argv, int *i)
{
    return argv[*i][1] == '-' ? take_long(cli, argc, argv, i) : take_letters(cli, argc, argv, i);
}

/* CSV and chosen columns are of lists. */
static bool output_fits(const struct cli *cli)
{
    bool list = option_of(cli->command, option_named(str_of("columns")));
    if (cli->csv && !list) {
        (void)fail(EXIT_USAGE, "use -o json or -o yaml; drover parts has CSV",
                   "drover %s prints no list for CSV", cli->command->verb);
        return false;
    }
    if (cli->opt.columns != NULL && cli->out != OUT_TABLE) {
        (void)fail(EXIT_USAGE, "leave --columns out, or use -o csv",
                   "-o %s has every field: --columns is for tables and CSV", cli->opt.output);
        return false;
    }
    if (cli->opt.sort != NULL && cli->out != OUT_TABLE && cli->out != OUT_NAME) {
        (void)fail(EXIT_USAGE, "leave --sort out, or use -o csv",
                   "-o %s has the server's order: --sort is for tables, CSV and names",
                   cli->opt.output);
        return false;
    }
    return true;
}

static bool output_read(struct cli *cli)
{
    static const char *const names[] = {"table", "json", "jsonl", "name"};
    const char *o = cli->opt.output != NULL ? cli->opt.output : "table";
    cli->csv = strcmp(o, "csv") == 0;
    cli->wide = strcmp(o, "wide") == 0;
    cli->yaml = strcmp(o, "yaml") == 0;
    cli->out = cli->yaml ? OUT_JSON : OUT_TABLE;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(o, names[i]) == 0) {
            cli->out = (enum cli_output)i;
        }
    }
    return output_fits(cli);
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

/* Where the verb is: the first word that is neither an option nor the value of one. 0: nowhere. */
static int verb_at(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-' || argv[i][1] == '\0') {
            return i;
        }
        i += option_pending(argv[i]) != NULL;
    }
    return 0;
}

static bool verb_find(const struct commands *all, struct cli *cli, const char *verb)
{
    cli->command = command_find(all, verb);
    if (cli->command == NULL) {
        const char *guess = command_guess(all, verb);
        AUTO_FREE char *next = guess != NULL ? xasprintf("did you mean drover %s?", guess)
                                             : xstrdup("drover help lists the verbs");
        (void)fail(EXIT_USAGE, next, "there is no verb '%.40s'", verb);
    }
    return cli->command != NULL;
}

/* A count of 0 is a value, so that none is -1. */
static void counts_clear(struct cli *cli)
{
    const int64_t none = -1;
    size_t n;
    const struct option *all = options_all(&n);
    for (size_t i = 0; i < n; i++) {
        if (all[i].kind == OPTION_COUNT) {
            memcpy((char *)&cli->opt + all[i].offset, &none, sizeof none);
        }
    }
}

bool args_parse(const struct commands *all, struct cli *cli, int argc, char **argv)
{
    counts_clear(cli);
    int verb = verb_at(argc, argv);
    if (verb == 0) {
        (void)fail(EXIT_USAGE, "drover help lists the verbs", "write what to do, like drover ls");
        return false;
    }
    if (!verb_find(all, cli, argv[verb])) {
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
    return cli->opt.help ||
           (output_read(cli) && timeout_read(cli, &timeout_us) && count_check(cli));
}
