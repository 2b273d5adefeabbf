/* Pages without script. */
#pragma once
#include "common/buf.h"

/* Append what people wrote, escaped for HTML; control characters become blanks. */
void html_text(struct buf *b, const char *text);
void html_begin(struct buf *b, const char *title);
void html_end(struct buf *b);
