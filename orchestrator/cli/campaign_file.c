/* See campaign_file.h. */
#include "campaign_file.h"
#include "core/spec/spec.h"
#include "print.h"
#include "table.h"
#include <errno.h>
#include <stdio.h>

void campaign_file_done(struct campaign_file *f)
{
    for (size_t i = 0; i < f->sources_n; i++) {
        source_pack_done(&f->sources[i]);
    }
    buf_done(&f->text);
    buf_done(&f->sent);
}

struct str campaign_file_sent(const struct campaign_file *f)
{
    return buf_str(f->changes_n > 0 ? &f->sent : &f->text);
}

bool campaign_file_read(const char *name, struct campaign_file *ret, int *ret_exit)
{
    bool in = strcmp(name, "-") == 0;
    AUTO_FILE FILE *opened = in ? NULL : fopen(name, "re");
    FILE *f = in ? stdin : opened;
    *ret = (struct campaign_file){.name = in ? "stdin" : name, .text = BUF_INIT(SPEC_TEXT_MAX)};
    if (f == NULL) {
        *ret_exit = fail(EXIT_USAGE, "give the path of a campaign file, or - for stdin",
                         "cannot open '%s': %s", name, strerror(errno));
        return false;
    }
    if (!buf_add_file(&ret->text, f) && !ret->text.overflow) {
        *ret_exit = fail(EXIT_USAGE, "give the path of a campaign file, or - for stdin",
                         "cannot read '%s'", name);
    } else if (ret->text.overflow) {
        *ret_exit = fail(EXIT_USAGE, "is it a campaign file?", "'%s' is larger than %d bytes", name,
                         SPEC_TEXT_MAX);
    } else if (ret->text.n == 0) {
        *ret_exit = fail(EXIT_USAGE, "drover init writes one to begin with", "'%s' is empty", name);
    } else {
        return true;
    }
    return false;
}

static struct str file_line(const struct campaign_file *f, int64_t line)
{
    struct str rest = buf_str(&f->text), at = {0};
    for (int64_t i = 0; i < line && rest.n > 0; i++) {
        at = str_split(&rest, '\n');
    }
    return at;
}

/* A column of what is sent, in the file. */
static long long column_in_file(const struct campaign_file *f, int64_t line, int64_t column)
{
    for (size_t i = f->sent.n > 0 ? f->changes_n : 0; i-- > 0;) {
        const struct campaign_change *c = &f->changes[i];
        int64_t now_n = (int64_t)strlen(c->now);
        if (c->line == line && column > c->column) {
            column = MAX(column - now_n + (int64_t)c->was_n, (int64_t)c->column);
        }
    }
    return column;
}

void campaign_file_fault(const struct campaign_file *f, const json_t *e)
{
    int64_t line = jint(e, "line");
    AUTO_FREE char *message = text_clean(jstr(e, "message"));
    AUTO_FREE char *hint = text_clean(jstr(e, "hint"));
    AUTO_FREE char *pointer = text_clean(jstr(e, "pointer"));
    const char *colon = pointer[0] != '\0' ? ": " : "";
    if (line > 0) {
        say("error: %s:%lld:%lld %s%s%s", f->name, (long long)line,
            column_in_file(f, line, jint(e, "column")), pointer, colon, message);
        AUTO_FREE char *raw = str_dup(file_line(f, line));
        AUTO_FREE char *source = text_clean(raw);
        say("%5lld | %s", (long long)line, source);
    } else {
        say("error: %s: %s%s%s", f->name, pointer, colon, message);
    }
    if (hint[0] != '\0') {
        say("      hint: %s", hint);
    }
}
