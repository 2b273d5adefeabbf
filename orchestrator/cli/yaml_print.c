/* See yaml_print.h. */
#include "yaml_print.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/str.h"
#include <stdio.h>

#define YAML_STRING_MAX (256 * 1024 * 1024)

/* True for text that YAML would not read as this text without quotes. */
static bool yaml_quoted(const char *s)
{
    static const char *const words = "null Null NULL ~ true True TRUE false False FALSE yes no on "
                                     "off Yes No On Off YES NO ON OFF y n Y N";
    size_t n = strlen(s);
    bool plain = n > 0 && n < 200 &&
                 strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                           "0123456789_/.- ") == n;
    plain = plain && strchr("-. 0123456789", s[0]) == NULL && s[n - 1] != ' ';
    struct str rest = str_of(words);
    while (plain && rest.n > 0) {
        plain = !str_eq_cstr(str_split(&rest, ' '), s);
    }
    return !plain;
}

/* The code point at s when a reader of YAML refuses it or breaks the line there; 0: none.
 * *ret_n: its bytes. The text is UTF-8, as all strings of JSON here. */
static unsigned yaml_special(const uint8_t *s, size_t *ret_n)
{
    unsigned three = s[0] >= 0xe0 && s[0] < 0xf0
                         ? (unsigned)((s[0] & 15) << 12 | (s[1] & 63) << 6 | (s[2] & 63))
                         : 0;
    *ret_n = 1;
    if (s[0] < 0x20 || s[0] == 0x7f) {
        return s[0] == 0 ? 0 : s[0];
    }
    if (s[0] == 0xc2 && s[1] < 0xa0) {
        *ret_n = 2;
        return s[1];
    }
    *ret_n = 3;
    return three == 0x2028 || three == 0x2029 || three == 0xfeff || three >= 0xfffe ? three : 0;
}

static void yaml_string_print(const char *text)
{
    AUTO_BUF struct buf b = BUF_INIT(YAML_STRING_MAX);
    buf_add_char(&b, '"');
    for (const char *s = text; *s != '\0';) {
        size_t n;
        unsigned c = yaml_special((const uint8_t *)s, &n);
        if (c != 0) {
            buf_addf(&b, "\\u%04x", c);
            s += n;
        } else {
            buf_add_cstr(&b, *s == '"' || *s == '\\' ? "\\" : "");
            buf_add_char(&b, *s++);
        }
    }
    buf_add_char(&b, '"');
    (void)fputs(buf_cstr(&b), stdout);
}

static void yaml_text_print(const char *s)
{
    if (yaml_quoted(s)) {
        yaml_string_print(s);
    } else {
        (void)fputs(s, stdout);
    }
}

/* YAML 1.1 wants a point and the exponent's sign: 1.0e+20. */
static void yaml_real_print(const json_t *v)
{
    AUTO_FREE char *text = json_dumps(v, JSON_ENCODE_ANY);
    char *e = strchr(text, 'e');
    if (e == NULL) {
        (void)fputs(text, stdout);
        return;
    }
    *e = '\0';
    (void)printf("%s%se%s%s", text, strchr(text, '.') == NULL ? ".0" : "", e[1] == '-' ? "" : "+",
                 e + 1);
}

static void yaml_scalar_print(const json_t *v)
{
    if (json_is_string(v)) {
        yaml_text_print(json_string_value(v));
    } else if (json_is_real(v)) {
        yaml_real_print(v);
    } else {
        AUTO_FREE char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
        (void)fputs(text != NULL ? text : "null", stdout);
    }
    (void)putchar('\n');
}

static bool is_nested(const json_t *v)
{
    return json_object_size(v) > 0 || json_array_size(v) > 0;
}

/* first: the cursor is behind "- ". */
static void yaml_block(const json_t *v, int indent, bool first)
{
    const char *key;
    json_t *x;
    size_t i;
    json_object_foreach((json_t *)(uintptr_t)v, key, x)
    {
        (void)printf("%*s", first ? 0 : indent, "");
        yaml_text_print(key);
        (void)fputs(is_nested(x) ? ":\n" : ": ", stdout);
        first = false;
        if (is_nested(x)) {
            yaml_block(x, indent + 2, false);
        } else {
            yaml_scalar_print(x);
        }
    }
    json_array_foreach(v, i, x)
    {
        (void)printf("%*s- ", first ? 0 : indent, "");
        first = false;
        if (is_nested(x)) {
            yaml_block(x, indent + 2, true);
        } else {
            yaml_scalar_print(x);
        }
    }
}

void yaml_print(const json_t *v)
{
    if (is_nested(v)) {
        yaml_block(v, 0, false);
    } else {
        yaml_scalar_print(v);
    }
}
