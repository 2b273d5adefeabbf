/* drover init: a campaign file to begin with. */
#include "cli.h"
#include "common/buf.h"
#include "print.h"
#include "templates.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define TEMPLATE_MAX (1024 * 1024)

static const struct template *template_find(const char *name, const char **ret_guess)
{
    size_t n, least = 5;
    const struct template *all = templates_all(&n);
    *ret_guess = NULL;
    for (size_t i = 0; i < n; i++) {
        size_t d = str_distance(str_of(name), str_of(all[i].name));
        if (d == 0) {
            return &all[i];
        }
        if (d < least) {
            least = d;
            *ret_guess = all[i].name;
        }
    }
    return NULL;
}

static int templates_list(void)
{
    size_t n;
    const struct template *all = templates_all(&n);
    for (size_t i = 0; i < n; i++) {
        (void)printf("%-21s %s\n", all[i].name, all[i].summary);
    }
    say("next: drover init %s", all[0].name);
    return EXIT_OK;
}

/* The text with the commands in its comments naming `file`. */
static void template_text(const struct template *t, const char *file, struct buf *ret)
{
    AUTO_FREE char *path = xasprintf("deploy/examples/%s.yaml", t->name);
    const char *text = t->text, *at;
    while ((at = strstr(text, path)) != NULL) {
        buf_add(ret, text, (size_t)(at - text));
        buf_add_cstr(ret, file);
        text = at + strlen(path);
    }
    buf_add_cstr(ret, text);
}

static int template_write(const char *file, struct str text)
{
    AUTO_FD int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST) {
        return fail(EXIT_CONFLICT, "name another file, or - for standard output",
                    "'%s' is there already and is left as it is", file);
    }
    if (fd < 0) {
        return fail(EXIT_USAGE, "name a file in a folder of yours, or - for standard output",
                    "cannot write '%s': %s", file, strerror(errno));
    }
    if (write(fd, text.p, text.n) != (ssize_t)text.n) {
        (void)unlink(file);
        return fail(EXIT_FAILED, "is the disk full?", "cannot write '%s': %s", file,
                    strerror(errno));
    }
    (void)puts(file);
    say("next: edit what is yours (buckets, roles, images), then drover validate %s", file);
    return EXIT_OK;
}

int cmd_init(struct cli *cli)
{
    const char *guess;
    if (cli->args_n == 0) {
        return templates_list();
    }
    const struct template *t = template_find(cli->args[0], &guess);
    if (t == NULL) {
        AUTO_FREE char *next = guess != NULL ? xasprintf("did you mean drover init %s?", guess)
                                             : xstrdup("drover init lists them");
        return fail(EXIT_NOT_FOUND, next, "there is no template '%.40s'", cli->args[0]);
    }
    AUTO_BUF struct buf text = BUF_INIT(TEMPLATE_MAX);
    AUTO_FREE char *usual = xasprintf("%s.yaml", t->name);
    const char *file = cli->args_n > 1 ? cli->args[1] : usual;
    bool out = strcmp(file, "-") == 0;
    template_text(t, out ? usual : file, &text);
    if (!out) {
        return template_write(file, buf_str(&text));
    }
    (void)fwrite(text.p, 1, text.n, stdout);
    return EXIT_OK;
}
