/* drover: the command line of droverd. */
#include "args.h"
#include "cli.h"
#include "client.h"
#include "common/memory.h"
#include "complete.h"
#include "print.h"
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

static const struct command table[] = {
#define X(verb, fn, args, options, summary, examples) {verb, fn, args, options, summary, examples},
#include "commands.def"
#undef X
};
static const struct commands all = {table, ARRAY_LEN(table)};

static void surroundings(struct cli *cli)
{
    (void)setlocale(LC_CTYPE, "");
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    bool dumb = term == NULL || strcmp(term, "dumb") == 0;
    cli->out_tty = isatty(STDOUT_FILENO) == 1;
    cli->talk_tty = isatty(STDERR_FILENO) == 1;
    cli->draws = cli->out_tty && !dumb;
    cli->color = cli->out_tty && !dumb && (no_color == NULL || no_color[0] == '\0');
    cli->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    cli->width = terminal_width();
}

int cmd_help(struct cli *cli)
{
    for (size_t i = 0; cli->args_n > 0 && i < all.n; i++) {
        if (strcmp(table[i].verb, cli->args[0]) == 0) {
            args_help(&table[i]);
            return EXIT_OK;
        }
    }
    if (cli->args_n > 0) {
        return fail(EXIT_USAGE, "drover help lists the verbs", "there is no verb '%.40s'",
                    cli->args[0]);
    }
    args_help_all(&all);
    return EXIT_OK;
}

int main(int argc, char **argv)
{
    struct cli cli = {0};
    memory_of_libraries();
    surroundings(&cli);
    if (argc < 2) {
        args_help_all(&all);
        return EXIT_USAGE;
    }
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        args_help_all(&all);
        return EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        argv[1][0] = argv[1][1] = ' ';
        argv[1] += 2;
    }
    struct err err = ERR_INIT;
    if (strcmp(argv[1], "__complete") == 0) { /* what the scripts of drover completion ask */
        complete_words(&all, &cli, argc - 2, argv + 2);
        client_free(cli.client);
        return EXIT_OK;
    }
    if (!args_parse(&all, &cli, argc, argv)) {
        return EXIT_USAGE;
    }
    if (cli.opt.help) {
        args_help(cli.command);
        return EXIT_OK;
    }
    if (!client_new(&cli.client, cli.opt.context, &err)) {
        bool unknown = err.code == ERR_NOT_FOUND;
        return fail(unknown ? EXIT_NOT_FOUND : EXIT_USAGE,
                    unknown ? "drover context lists them"
                            : "drover help shows where the address comes from",
                    "%s", err.message);
    }
    int status = cli.command->run(&cli);
    client_free(cli.client);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        struct pollfd out = {.fd = STDOUT_FILENO};
        if (poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0) {
            /* `| head -1` has read what it wants: nothing to be told of. A failure stays one. */
            return status == EXIT_OK ? EXIT_PIPE : status;
        }
        return fail(EXIT_FAILED, "is the disk full?", "cannot write to stdout");
    }
    return status;
}
