/* A small pull reader for AWS' XML replies (S3, STS, EC2) and an escaper. No DTD, no external
 * entities, depth <= 16, names <= 128 bytes. */
#pragma once
#include "buf.h"

enum xml_event { XML_OPEN, XML_TEXT, XML_CLOSE, XML_END, XML_ERROR };
struct xml {
    struct str in;
    size_t at;
    int depth;
    struct str name[16]; /* open elements; views into the input */
    bool pending_close;
};
void xml_init(struct xml *x, struct str in);
/* Next event. *ret is the element's name, or the text with its entities not decoded. */
enum xml_event xml_next(struct xml *x, struct str *ret);
/* Append a text to out with the five entities and &#..; decoded. */
void xml_unescape(struct buf *out, struct str s);
void xml_escape(struct buf *out, struct str s);
/* Text of the first element with this name in the document; false when it does not occur. */
bool xml_find(struct str doc, const char *name, struct buf *out) MUST_CHECK;
