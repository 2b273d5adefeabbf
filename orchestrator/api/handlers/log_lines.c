/* See log_lines.h. */
#include "log_lines.h"
#include <ctype.h>
#include <strings.h>

#define SHOWN_BYTES_MAX 8192
#define LINE_BYTES_MAX  (256 * 1024)

static const char *const bad_words[] = {"error",  "exception", "traceback",    "fatal",
                                        "killed", "panic",     "no space left"};
static const char *const warn_words[] = {"warn"};

static bool has_word(const char *text, const char *const *words, size_t n)
{
    for (const char *p = text; *p != '\0'; p++) {
        for (size_t i = 0; i < n; i++) {
            if (strncasecmp(p, words[i], strlen(words[i])) == 0) {
                return true;
            }
        }
    }
    return false;
}

static const char *level_of_text(const char *text)
{
    return has_word(text, bad_words, ARRAY_LEN(bad_words))     ? "error"
           : has_word(text, warn_words, ARRAY_LEN(warn_words)) ? "warn"
                                                               : "info";
}

static void value_add(struct buf *b, const json_t *v)
{
    const char *s = json_string_value(v);
    if (s != NULL && s[0] != '\0' && strpbrk(s, " \"=") == NULL) {
        buf_add_cstr(b, s);
        return;
    }
    AUTO_FREE char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
    buf_add_cstr(b, text != NULL ? text : "null");
}

/* "event key=value ..." without what the line shows in other columns; NULL: no such object. */
static char *shown_of(const json_t *o, const char **ret_level)
{
    const char *key, *event = json_string_value(json_object_get(o, "event"));
    const char *level = json_string_value(json_object_get(o, "level"));
    json_t *v;
    if (event == NULL) {
        return NULL;
    }
    if (level != NULL && (strcmp(level, "error") == 0 || strcmp(level, "warn") == 0)) {
        *ret_level = strcmp(level, "error") == 0 ? "error" : "warn";
    } else {
        *ret_level = "info";
    }
    AUTO_BUF struct buf b = BUF_INIT(SHOWN_BYTES_MAX);
    buf_add_cstr(&b, event);
    json_object_foreach((json_t *)(uintptr_t)o, key, v)
    {
        bool known = strcmp(key, "event") == 0 || strcmp(key, "level") == 0 ||
                     strcmp(key, "ts") == 0 || strcmp(key, "program") == 0;
        if (!known) {
            buf_addf(&b, " %s=", key);
            value_add(&b, v);
        }
    }
    return b.overflow ? NULL : buf_take(&b);
}

void log_lines_readable(json_t *lines)
{
    size_t i;
    json_t *line;
    json_array_foreach(lines, i, line)
    {
        const char *text = json_string_value(json_object_get(line, "text"));
        text = text != NULL ? text : "";
        const char *level = level_of_text(text);
        AUTO_JSON json_t *o = NULL;
        AUTO_FREE char *shown = NULL;
        struct err ignored = ERR_INIT;
        if (text[0] == '{' && json_parse(str_of(text), LINE_BYTES_MAX, &o, &ignored)) {
            shown = shown_of(o, &level);
        }
        (void)json_object_set_new(line, "level", json_string(level));
        if (shown != NULL) {
            (void)json_object_set_new(line, "shown", json_string(shown));
        }
    }
}
