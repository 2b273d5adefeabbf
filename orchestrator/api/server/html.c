/* See html.h. */
#include "html.h"

void html_text(struct buf *b, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        switch (*p) {
        case '&':
            buf_add_cstr(b, "&amp;");
            break;
        case '<':
            buf_add_cstr(b, "&lt;");
            break;
        case '>':
            buf_add_cstr(b, "&gt;");
            break;
        case '"':
            buf_add_cstr(b, "&quot;");
            break;
        case '\'':
            buf_add_cstr(b, "&#39;");
            break;
        default:
            buf_add(b, (unsigned char)*p < ' ' ? " " : p, 1);
        }
    }
}

void html_begin(struct buf *b, const char *title)
{
    buf_add_cstr(b, "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                    "<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
    html_text(b, title);
    buf_add_cstr(b, " - drover</title></head>\n<body><main>\n<h1>");
    html_text(b, title);
    buf_add_cstr(b, "</h1>\n");
}

void html_end(struct buf *b)
{
    buf_add_cstr(b, "</main></body>\n</html>\n");
}
