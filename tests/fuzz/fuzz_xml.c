/* XML: the events nest, views lie within the input, escaping and decoding are inverse. */
#include "common/cleanup.h"
#include "common/xml.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = {(const char *)data, size};
    struct str s = {0};
    struct xml x;
    int depth = 0;
    AUTO_BUF struct buf text = BUF_INIT((size_t)1 << 20);
    xml_init(&x, in);
    for (bool more = true; more;) {
        enum xml_event e = xml_next(&x, &s);
        if (e == XML_OPEN || e == XML_TEXT || e == XML_CLOSE) {
            ASSERT(s.p >= in.p && s.p + s.n <= in.p + in.n);
        }
        switch (e) {
        case XML_OPEN:
            ASSERT(++depth <= 16);
            ASSERT(s.n > 0 && s.n <= 128);
            break;
        case XML_TEXT:
            ASSERT(depth > 0);
            xml_unescape(&text, s);
            break;
        case XML_CLOSE:
            ASSERT(--depth >= 0);
            break;
        case XML_END:
            ASSERT(depth == 0);
            more = false;
            break;
        case XML_ERROR:
            more = false;
            break;
        }
    }
    buf_reset(&text);
    (void)!xml_find(in, "Code", &text);
    if (str_is_utf8(in) && size < 65536) {
        AUTO_BUF struct buf escaped = BUF_INIT((size_t)1 << 20);
        AUTO_BUF struct buf back = BUF_INIT((size_t)1 << 20);
        xml_escape(&escaped, in);
        xml_unescape(&back, buf_str(&escaped));
        ASSERT(back.n <= in.n); /* control characters are left out */
        buf_reset(&text);
        xml_escape(&text, buf_str(&back));
        ASSERT(str_eq(buf_str(&text), buf_str(&escaped)));
    }
    return 0;
}
