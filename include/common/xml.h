/* A small pull reader for AWS' XML replies (S3, STS, EC2) and an escaper for writing them. No DTD,
 * no external entities, depth <= 16, names <= 128 bytes. */
#pragma once
#include "buf.h"

enum xml_event { XML_OPEN, XML_TEXT, XML_CLOSE, XML_END, XML_ERROR };
struct xml {
    struct str in;
    size_t at;
    int depth;
    struct str name[16]; /* open elements, borrowed from the input */
    bool pending_close;
};
void xml_init(struct xml *x, struct str in);
/* Next event. *ret is the element's name, or the text with entities still in it. */
enum xml_event xml_next(struct xml *x, struct str *ret);
/* Decode the five entities and &#..; of a text into out. */
void xml_unescape(struct buf *out, struct str s);
void xml_escape(struct buf *out, struct str s);
/* Text of the first element with this name anywhere in the document; false when there is none. */
bool xml_find(struct str doc, const char *name, struct buf *out) MUST_CHECK;
