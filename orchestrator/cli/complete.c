/* Completion from commands.def, options.def and the tables of states and causes; of campaigns,
 * stages and operations from the server. */
#include "complete.h"
#include "client.h"
#include "common/clock.h"
#include "contexts.h"
#include "core/spec/spec_parse.h"
#include "local_faults.h"
#include "options.h"
#include "print.h"
#include "table.h"
#include "templates.h"
#include <ctype.h>
#include <stdio.h>

#define SERVER_US (2 * USEC_PER_SEC) /* a shell waits for it */

struct completion {
    const struct commands *all;
    struct cli *cli;
    const struct command *verb;  /* NULL: none yet */
    const struct option *option; /* whose value is the next word; NULL: none */
    int at;                      /* of the arguments behind the verb */
    const char *first;           /* of these; NULL: the one to be completed */
    struct str word;             /* to be completed */
    struct str before;           /* "--output=" when the word is behind it */
    bool lost;                   /* behind a verb that does not exist */
};

static void offer(const struct completion *c, struct str word, const char *what)
{
    if (word.n < c->word.n || memcmp(word.p, c->word.p, c->word.n) != 0) {
        return;
    }
    AUTO_FREE char *clean = text_clean(what);
    (void)printf(STR_FMT STR_FMT "%s%s\n", STR_ARG(c->before), STR_ARG(word),
                 clean[0] != '\0' ? "\t" : "", clean);
}

static void offer_words(const struct completion *c, const char *words)
{
    struct str rest = str_of(words);
    while (rest.n > 0) {
        offer(c, str_split(&rest, ' '), "");
    }
}

static void offer_templates(const struct completion *c)
{
    size_t n;
    const struct template *all = templates_all(&n);
    for (size_t i = 0; i < n; i++) {
        offer(c, str_of(all[i].name), all[i].summary);
    }
}

static void offer_verbs(const struct completion *c)
{
    for (size_t i = 0; i < c->all->n; i++) {
        offer(c, str_of(c->all->at[i].verb), c->all->at[i].summary);
    }
}

static void offer_options(const struct completion *c)
{
    size_t n;
    const struct option *all = options_all(&n);
    for (size_t i = 0; i < n; i++) {
        AUTO_FREE char *name = xasprintf("--%s", all[i].name);
        if (c->verb == NULL || option_of(c->verb, &all[i])) {
            offer(c, str_of(name), all[i].help);
        }
    }
}

/* Rows of a list of the API by `key`. Silent when the server does not answer. */
static void offer_rows(const struct completion *c, const char *path, const char *list,
                       const char *key, const char *what)
{
    CLEANUP(reply_done)
    struct client_reply r = {0};
    struct err err = ERR_INIT;
    size_t i;
    json_t *v;
    const struct client_call call = {.method = "GET", .path = path, .timeout_us = SERVER_US};
    if (c->cli->client == NULL || !client_try(c->cli, &call, &r, &err) || r.status != 200) {
        return;
    }
    json_array_foreach(json_object_get(r.json, list), i, v)
    {
        AUTO_FREE char *id = text_clean(jstr(v, key));
        AUTO_FREE char *text = xasprintf("%s, %s", jstr(v, what), jstr(v, "state"));
        offer(c, str_of(id), text);
    }
}

/* The word goes on behind what it has to its last `end`: that is kept as it is. */
static struct completion behind(const struct completion *c, char end)
{
    struct completion ret = *c;
    const char *last = memrchr(c->word.p, end, c->word.n);
    size_t n = last != NULL ? (size_t)(last - c->word.p) + 1 : 0;
    ASSERT(c->before.n == 0 || c->before.p + c->before.n == c->word.p);
    ret.before = (struct str){c->before.n > 0 ? c->before.p : c->word.p, c->before.n + n};
    ret.word = (struct str){c->word.p + n, c->word.n - n};
    return ret;
}

/* The stages of a campaign by its id. */
static void offer_stages(const struct completion *c, struct str campaign)
{
    int64_t n;
    struct str digits =
        str_starts(campaign, "c-") ? (struct str){campaign.p + 2, campaign.n - 2} : campaign;
    if (!parse_i64(digits, 0, INT64_MAX, &n, NULL)) {
        return;
    }
    AUTO_FREE char *path = xasprintf("/v1/campaigns/c-%lld", (long long)n);
    offer_rows(c, path, "stages", "name", "kind");
}

/* The stages of a campaign file; silent when it has faults. */
static void offer_stages_of_file(const struct completion *c, const char *name)
{
    struct spec *s;
    const struct spec_defaults defaults = local_defaults_or_any();
    AUTO_BUF struct buf text = BUF_INIT(SPEC_TEXT_MAX);
    AUTO_FILE FILE *f = fopen(name, "re");
    if (f == NULL || !buf_add_file(&text, f)) {
        return;
    }
    CLEANUP(arena_done)
    struct arena a;
    arena_init(&a, SPEC_ARENA_BYTES);
    AUTO_FREE struct faults *faults = xcalloc(1, sizeof *faults);
    bool good = spec_parse(buf_str(&text), &defaults, &a, &s, faults);
    for (int i = 0; good && i < s->stages_n; i++) {
        offer(c, str_of(s->stages[i]->name), "");
    }
}

static void offer_campaigns(const struct completion *c, struct str what)
{
    const char *slash = memchr(c->word.p, '/', c->word.n);
    if (slash == NULL) {
        offer_rows(c, "/v1/campaigns?page_size=200", "campaigns", "id", "name");
    } else if (slash == memrchr(c->word.p, '/', c->word.n) &&
               (memchr(what.p, '/', what.n) != NULL || str_starts(what, "RUN"))) {
        struct completion stage = behind(c, '/');
        offer_stages(&stage, (struct str){c->word.p, (size_t)(slash - c->word.p)});
    }
}

/* One alternative of an argument: a class in capitals, or a word to be written as it is. */
static void offer_argument(const struct completion *c, struct str what)
{
    static const struct {
        const char *kind, *words;
    } known[] = {{"METHOD", "GET HEAD POST PATCH PUT DELETE"}, {"SHELL", "bash zsh fish"}};
    if (what.n > 1 && islower((unsigned char)what.p[0]) != 0) {
        offer(c, what, "");
    } else if (str_starts(what, "CAMPAIGN") || str_starts(what, "RUN")) {
        offer_campaigns(c, what);
    } else if (str_starts(what, "STAGE") && c->first != NULL) {
        offer_stages_of_file(c, c->first);
    } else if (str_starts(what, "OPERATION")) {
        offer_rows(c, "/v1/operations?page_size=200", "operations", "id", "kind");
    } else if (str_starts(what, "FILE")) {
        (void)puts(":files");
    } else if (str_starts(what, "VERB")) {
        offer_verbs(c);
    } else if (str_starts(what, "TEMPLATE")) {
        offer_templates(c);
    }
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (str_eq_cstr(what, known[i].kind)) {
            offer_words(c, known[i].words);
        }
    }
}

/* "[ls|new] [NAME|TOKEN]": the alternatives of the argument that the cursor is at. */
static void offer_arguments(const struct completion *c)
{
    struct str rest = str_of(c->verb->args), word = {0};
    for (int i = 0; i <= c->at; i++) {
        word = rest.n > 0 ? str_split(&rest, ' ') : (struct str){0};
    }
    while (word.n > 0) {
        struct str what = str_split(&word, '|');
        while (what.n > 0 && what.p[0] == '[') {
            what = (struct str){what.p + 1, what.n - 1};
        }
        while (what.n > 0 && what.p[what.n - 1] == ']') {
            what.n--;
        }
        offer_argument(c, what);
    }
}

static void offer_contexts(const struct completion *c)
{
    const char *name;
    json_t *context;
    struct err err = ERR_INIT;
    AUTO_JSON json_t *v = NULL;
    if (contexts_read(&v, &err)) {
        json_object_foreach(json_object_get(v, "contexts"), name, context)
        {
            offer(c, str_of(name), jstr(context, "url"));
        }
    }
}

static void offer_causes(const struct completion *c)
{
    static const struct {
        const char *name, *remedy;
    } causes[] = {
#define X(cause, name, counts, times, from_s, to_s, remedy) {name, remedy},
#include "core/failure/cause.def"
#undef X
    };
    struct completion last = behind(c, ',');
    for (size_t i = 1; i < ARRAY_LEN(causes); i++) { /* behind "none" */
        offer(&last, str_of(causes[i].name), causes[i].remedy);
    }
}

static void offer_part_states(const struct completion *c)
{
#define X(state, name, terminal, comment) offer(c, str_of(name), comment);
#include "core/states/task_state.def"
#undef X
}

static void offer_value(const struct completion *c)
{
    const char *verb = c->verb != NULL ? c->verb->verb : "", *option = c->option->name;
    if (strcmp(option, "state") == 0 && strcmp(verb, "parts") == 0) {
        offer_part_states(c);
    } else if (strcmp(option, "state") == 0) {
        offer_words(c, option_named(str_of("until"))->choices);
    } else if (strcmp(option, "cause") == 0) {
        offer_causes(c);
    } else if (strcmp(option, "stage") == 0 && c->first != NULL) {
        offer_stages(c, (struct str){c->first, strcspn(c->first, "/")});
    } else if (strcmp(option, "campaign") == 0) {
        offer_rows(c, "/v1/campaigns?page_size=200", "campaigns", "id", "name");
    } else if (strcmp(option, "context") == 0) {
        offer_contexts(c);
    } else {
        offer_words(c, c->option->choices);
    }
}

/* A word before the one to be completed. */
static void step(struct completion *c, const char *word)
{
    if (strcmp(word, "=") == 0) { /* bash splits --output=json into three */
        return;
    }
    if (c->option != NULL) {
        c->cli->opt.context = strcmp(c->option->name, "context") == 0 ? word : c->cli->opt.context;
        c->option = NULL;
    } else if (word[0] == '-' && word[1] != '\0') {
        c->option = option_pending(word);
        if (strncmp(word, "--context=", 10) == 0) {
            c->cli->opt.context = word + 10;
        }
    } else if (c->verb == NULL) {
        c->verb = command_find(c->all, word);
        c->lost = c->verb == NULL;
    } else {
        c->first = c->at++ == 0 ? word : c->first;
    }
}

void complete_words(const struct commands *all, struct cli *cli, int n, char **words)
{
    struct completion c = {.all = all, .cli = cli, .word = str_of(n > 0 ? words[n - 1] : "")};
    for (int i = 0; i + 1 < n; i++) {
        step(&c, words[i]);
    }
    if (str_eq_cstr(c.word, "=")) {
        c.word = str_of("");
    }
    const char *equals = memchr(c.word.p, '=', c.word.n);
    if (c.option == NULL && str_starts(c.word, "--") && equals != NULL) {
        size_t name = (size_t)(equals - c.word.p);
        c.option = option_named((struct str){c.word.p + 2, name - 2});
        c.before = (struct str){c.word.p, name + 1};
        c.word = (struct str){equals + 1, c.word.n - name - 1};
    }
    struct err err = ERR_INIT;
    if (c.lost || !client_new(&cli->client, cli->opt.context, &err)) {
        cli->client = NULL; /* without one it knows no campaigns */
    }
    if (c.lost) {
        return;
    }
    if (c.option != NULL) {
        offer_value(&c);
    } else if (str_starts(c.word, "-")) {
        offer_options(&c);
    } else if (c.verb == NULL) {
        offer_verbs(&c);
    } else {
        offer_arguments(&c);
    }
}

static const char bash[] =
    "# Completion of drover for bash: what a word may become is asked of the program itself.\n"
    "_drover() {\n"
    "    local line word=${COMP_WORDS[COMP_CWORD]}\n"
    "    COMPREPLY=()\n"
    "    [ \"$word\" = = ] && word=\n"
    "    while IFS= read -r line; do\n"
    "        if [ \"$line\" = :files ]; then\n"
    "            compopt -o filenames 2>/dev/null\n"
    "            while IFS= read -r line; do COMPREPLY+=(\"$line\"); done < <(compgen -f -- "
    "\"$word\")\n"
    "        else\n"
    "            COMPREPLY+=(\"${line%%$'\\t'*}\")\n"
    "        fi\n"
    "    done < <(\"${COMP_WORDS[0]}\" __complete \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _drover drover\n";

static const char zsh[] =
    "#compdef drover\n"
    "# Completion of drover for zsh: what a word may become is asked of the program itself.\n"
    "_drover() {\n"
    "    local line files\n"
    "    local -a offers\n"
    "    while IFS= read -r line; do\n"
    "        if [[ $line == :files ]]; then\n"
    "            files=1\n"
    "        elif [[ $line == *$'\\t'* ]]; then\n"
    "            offers+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\")\n"
    "        else\n"
    "            offers+=(\"${line//:/\\\\:}\")\n"
    "        fi\n"
    "    done < <(\"${words[1]}\" __complete \"${(@)words[2,CURRENT]}\" 2>/dev/null)\n"
    "    (( $#offers )) && _describe -t words drover offers\n"
    "    [[ -n $files ]] && _files\n"
    "    return 0\n"
    "}\n"
    "if [[ ${funcstack[1]} == _drover ]]; then _drover \"$@\"; else compdef _drover drover; fi\n";

static const char fish[] =
    "# Completion of drover for fish: what a word may become is asked of the program itself.\n"
    "function __drover_complete\n"
    "    set -l words (commandline -opc) (commandline -ct)\n"
    "    for line in ($words[1] __complete $words[2..-1] 2>/dev/null)\n"
    "        if test \"$line\" = :files\n"
    "            __fish_complete_path (commandline -ct)\n"
    "        else\n"
    "            echo $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c drover -f -a '(__drover_complete)'\n";

int cmd_completion(struct cli *cli)
{
    static const struct {
        const char *shell, *script;
    } scripts[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
        if (strcmp(cli->args[0], scripts[i].shell) == 0) {
            (void)fputs(scripts[i].script, stdout);
            return EXIT_OK;
        }
    }
    return fail(EXIT_USAGE, "drover completion bash, zsh or fish",
                "there is no completion for '%.40s'", cli->args[0]);
}
