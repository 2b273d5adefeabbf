/* Prints values for people, JSON as the API returned it, and errors with the next step. */
#include "print.h"
#include "cli.h"
#include "yaml_print.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

const char *jstr(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s != NULL ? s : "";
}

int64_t jint(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

json_t *jget(const json_t *o, const char *key, const char *key2)
{
    return json_object_get(json_object_get(o, key), key2);
}

bool jnull(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    return v == NULL || json_is_null(v);
}

/* Two decimals, four below one USD, rounded half up. */
const char *money(int64_t musd, char buf[static TEXT_N])
{
    if (musd > -MUSD_PER_USD && musd < MUSD_PER_USD && musd != 0) {
        int64_t v = (musd + (musd > 0 ? 50 : -50)) / 100;
        (void)snprintf(buf, TEXT_N, "%s%lld.%04lld", v < 0 ? "-" : "",
                       (long long)(llabs(v) / 10000), (long long)(llabs(v) % 10000));
        return buf;
    }
    int64_t cents = musd / 10000 + (musd % 10000 >= 5000 ? 1 : 0);
    (void)snprintf(buf, TEXT_N, "%lld.%02lld", (long long)(cents / 100),
                   (long long)(llabs(cents) % 100));
    return buf;
}

const char *when(const char *rfc3339, char buf[static TEXT_N])
{
    (void)snprintf(buf, TEXT_N, "%.19s", rfc3339);
    char *t = strchr(buf, 'T');
    if (t != NULL) {
        *t = ' ';
    }
    return buf;
}

const char *span(int64_t s, char buf[static TEXT_N])
{
    if (s < 60) {
        (void)snprintf(buf, TEXT_N, "%lld s", (long long)s);
    } else if (s < 3600) {
        (void)snprintf(buf, TEXT_N, "%lld m %02lld s", (long long)(s / 60), (long long)(s % 60));
    } else {
        (void)snprintf(buf, TEXT_N, "%lld h %02lld m", (long long)(s / 3600),
                       (long long)(s / 60 % 60));
    }
    return buf;
}

const char *duration(double s, char buf[static TEXT_N])
{
    if (s >= 59.95) {
        return span(llround(s), buf);
    }
    (void)snprintf(buf, TEXT_N, s < 1 ? "%.3g s" : "%.1f s", s);
    return buf;
}

const char *elapsed(const json_t *o, char buf[static TEXT_N])
{
    double s = json_number_value(json_object_get(o, "elapsed_seconds"));
    if (s >= 59.95) {
        return span((int64_t)(s + 0.5), buf);
    }
    (void)snprintf(buf, TEXT_N, "%.1f s", s);
    return buf;
}

static const struct {
    const char *state, *utf8, *ascii;
} glyphs[] = {
    {"waiting", "·", "."},   {"active", "▶", ">"},     {"running", "▶", ">"},
    {"held", "‖", "="},      {"paused", "‖", "="},     {"done", "✓", "+"},
    {"succeeded", "✓", "+"}, {"failed", "✗", "x"},     {"skipped", "⤼", "~"},
    {"cancelled", "⊘", "-"}, {"submitting", "↑", "^"}, {"backing_off", "↻", "@"},
    {"starting", "↑", "^"},  {"uploading", "▶", ">"},  {"stopping", "‖", "="},
    {"verifying", "▶", ">"},
};

const char *verb_past(const char *verb)
{
    static const char *const words[][2] = {
        {"retry", " retried"}, {"skip", " skipped"}, {"hold", " held"}, {"release", " released"}};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcmp(words[i][0], verb) == 0) {
            return words[i][1];
        }
    }
    return "";
}

const char *glyph(const struct cli *cli, const char *state)
{
    for (size_t i = 0; i < ARRAY_LEN(glyphs); i++) {
        if (strcmp(glyphs[i].state, state) == 0) {
            return cli->utf8 ? glyphs[i].utf8 : glyphs[i].ascii;
        }
    }
    return cli->utf8 ? "·" : ".";
}

void print_json(const struct cli *cli, const json_t *v)
{
    if (cli->yaml) {
        yaml_print(v);
        return;
    }
    AUTO_FREE char *text = json_dumps(v, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_ENCODE_ANY);
    (void)puts(text != NULL ? text : "null");
}

void print_lines(const json_t *list)
{
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v)
    {
        AUTO_FREE char *text = json_text(v);
        (void)puts(text);
    }
}

bool print_machine(const struct cli *cli, const json_t *v, const json_t *list)
{
    if (cli->out == OUT_JSON) {
        print_json(cli, v);
        return true;
    }
    if (cli->out != OUT_JSONL) {
        return false;
    }
    if (json_is_array(list)) {
        print_lines(list);
    } else {
        AUTO_FREE char *text = json_text(v);
        (void)puts(text);
    }
    return true;
}

int terminal_width(void)
{
    struct winsize w;
    const char *columns = getenv("COLUMNS");
    int64_t n;
    if (columns != NULL && parse_i64(str_of(columns), 20, 1000, &n, NULL)) {
        return (int)n;
    }
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col >= 20) {
        return w.ws_col;
    }
    return 80;
}

void say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fputc('\n', stderr);
}

int fail(enum cli_exit status, const char *next, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)fflush(stdout);
    (void)fputs("error: ", stderr);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fputc('\n', stderr);
    if (next != NULL) {
        (void)fprintf(stderr, "  next: %s\n", next);
    }
    return status;
}

static bool can_ask(const struct cli *cli)
{
    return isatty(STDIN_FILENO) == 1 && cli->talk_tty;
}

bool confirm(const struct cli *cli, const char *question)
{
    if (cli->opt.yes) {
        return true;
    }
    if (!can_ask(cli)) {
        return false;
    }
    char line[16] = "";
    (void)fprintf(stderr, "%s [y/N] ", question);
    return fgets(line, sizeof line, stdin) != NULL && (line[0] == 'y' || line[0] == 'Y');
}

int declined(const struct cli *cli, const char *verb, const char *text)
{
    if (can_ask(cli)) {
        say("%s", text);
        return EXIT_USAGE;
    }
    AUTO_FREE char *next = xasprintf("add -y to %s without confirmation", verb);
    return fail(EXIT_USAGE, next, "%s", text);
}

const char *number(int64_t n, char buf[static TEXT_N])
{
    (void)snprintf(buf, TEXT_N, "%lld", (long long)n);
    return buf;
}

void print_names(const json_t *list, const char *key)
{
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v)
    {
        (void)puts(jstr(v, key));
    }
}

const char *span_or_never(const json_t *v, const char *key, char buf[static TEXT_N])
{
    return jnull(v, key) ? "never" : span(jint(v, key), buf);
}
