/* Aim: AWS' XML is read event by event, and anything that is not well-formed ends in an error.
 * Method: documents to a line of events; broken documents; entities both ways. */
#include "common/cleanup.h"
#include "common/xml.h"
#include "tests/unit/unit.h"

/* "(a" opens, ")a" closes, "'text" is text, "$" the end, "!" an error. */
static void check_events(const char *doc, const char *want)
{
    AUTO_BUF struct buf got = BUF_INIT(1 << 16);
    struct xml x;
    struct str s = {0};
    xml_init(&x, str_of(doc));
    for (bool more = true; more;) {
        switch (xml_next(&x, &s)) {
        case XML_OPEN:
            buf_addf(&got, "(" STR_FMT " ", STR_ARG(s));
            break;
        case XML_TEXT:
            buf_addf(&got, "'" STR_FMT " ", STR_ARG(s));
            break;
        case XML_CLOSE:
            buf_addf(&got, ")" STR_FMT " ", STR_ARG(s));
            break;
        case XML_END:
            buf_add_char(&got, '$');
            more = false;
            break;
        case XML_ERROR:
            buf_add_char(&got, '!');
            more = false;
            break;
        }
    }
    assert_string_equal(buf_cstr(&got), want);
}

static void test_xml__documents_give_their_events(void **state)
{
    (void)state;
    check_events("<a/>", "(a )a $");
    check_events("<a></a>", "(a )a $");
    check_events("<a>x&amp;y</a>", "(a 'x&amp;y )a $");
    check_events("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<a xmlns=\"http://x/\" b = 'c>d'>"
                 "<b>1</b> <c />\n</a>\n",
                 "(a (b '1 )b '  (c )c '\n )a $");
    check_events("<!-- <x> -- > --><a><!----><b/></a><!-- end -->", "(a (b )b )a $");
    check_events("\xef\xbb\xbf<a/>", "(a )a $");
    check_events("<a><a><a/></a></a >", "(a (a (a )a )a )a $");
    check_events("<ns:a_b-c.d/>", "(ns:a_b-c.d )ns:a_b-c.d $");
}

static void test_xml__broken_documents_end_in_an_error(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      " ",
                                      "text",
                                      "<",
                                      "<a",
                                      "<a>",
                                      "<a></b>",
                                      "<a></a",
                                      "</a>",
                                      "<a/><b/>",
                                      "<a/>x",
                                      "x<a/>",
                                      "<a><b></a></b>",
                                      "<a b></a>",
                                      "<a b=c></a>",
                                      "<a b=\"c></a>",
                                      "<a b=\"<\"></a>",
                                      "<ab=\"c\"></ab>",
                                      "<a/ >",
                                      "<a b=\"1\"c=\"2\"/ >",
                                      "< a/>",
                                      "<1a/>",
                                      "<-a/>",
                                      "<a><!-- </a>",
                                      "<?xml <a/>",
                                      "<!DOCTYPE a><a/>",
                                      "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>",
                                      "<a><![CDATA[x]]></a>"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct xml x;
        struct str s;
        enum xml_event e;
        xml_init(&x, str_of(bad[i]));
        do {
            e = xml_next(&x, &s);
        } while (e != XML_END && e != XML_ERROR);
        if (e != XML_ERROR) {
            fail_msg("'%s' was accepted", bad[i]);
        }
    }
}

static void test_xml__depth_and_names_are_bounded(void **state)
{
    (void)state;
    check_events("<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a/></a></a></a></a></a></a></a></a>"
                 "</a></a></a></a></a></a></a>",
                 "(a (a (a (a (a (a (a (a (a (a (a (a (a (a (a (a )a )a )a )a )a )a )a )a )a )a "
                 ")a )a )a )a )a )a $");
    check_events("<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a/>",
                 "(a (a (a (a (a (a (a (a (a (a (a (a (a (a (a (a !");
    char name[132] = "<";
    memset(name + 1, 'n', 128);
    memcpy(name + 129, "/>", 3);
    struct xml x;
    struct str s;
    xml_init(&x, str_of(name));
    assert_int_equal(xml_next(&x, &s), XML_OPEN);
    assert_int_equal(s.n, 128);
    memcpy(name + 129, "n/", 2);
    xml_init(&x, (struct str){name, 131});
    assert_int_equal(xml_next(&x, &s), XML_ERROR);
}

static void check_unescape(const char *in, const char *want)
{
    AUTO_BUF struct buf b = BUF_INIT(1024);
    xml_unescape(&b, str_of(in));
    assert_string_equal(buf_cstr(&b), want);
}

static void test_xml__entities_are_decoded(void **state)
{
    (void)state;
    check_unescape("", "");
    check_unescape("a&lt;b&gt;c&amp;d&quot;e&apos;f", "a<b>c&d\"e'f");
    check_unescape("&#65;&#x42;&#x1F600;&#233;&#xe9;", "AB\xf0\x9f\x98\x80\xc3\xa9\xc3\xa9");
    check_unescape("&amp;lt;", "&lt;");
    check_unescape("&#10;&#13;&#9;", "\n\r\t");
}

static void test_xml__what_is_no_entity_is_kept(void **state)
{
    (void)state;
    static const char *const kept[] = {
        "&",           "&&",    "a & b",  "&;",    "&nbsp;",   "&amp",
        "&#;",         "&#x;",  "&#0;",   "&#1;",  "&#xD800;", "&#x110000;",
        "&#99999999;", "&#xg;", "&#6 5;", "&#-1;", "&AMP;",    "&#x00000000041;"};
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        check_unescape(kept[i], kept[i]);
    }
}

static void test_xml__escaped_text_reads_back(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(4096);
    AUTO_BUF struct buf back = BUF_INIT(4096);
    struct str text = STR("a<b>&\"'\r\n\t \xc3\xa9 &amp; ]]>");
    buf_add_cstr(&b, "<r><Key>");
    xml_escape(&b, text);
    buf_add_cstr(&b, "</Key></r>");
    assert_int_equal(str_find(buf_str(&b), STR("\r")), -1);
    assert_true(xml_find(buf_str(&b), "Key", &back));
    assert_true(str_eq(buf_str(&back), text));
    buf_reset(&b);
    xml_escape(&b, STR("a\0\x01\x1f\x0b z"));
    assert_string_equal(buf_cstr(&b), "a z");
}

static void test_xml__find_takes_the_first_and_only_its_own_text(void **state)
{
    (void)state;
    const char *doc = "<Error><Code>No<Sub>x</Sub>SuchKey</Code><Code>b</Code><E/></Error>";
    AUTO_BUF struct buf b = BUF_INIT(1024);
    assert_true(xml_find(str_of(doc), "Code", &b));
    assert_string_equal(buf_cstr(&b), "NoSuchKey");
    buf_reset(&b);
    assert_true(xml_find(str_of(doc), "E", &b));
    assert_string_equal(buf_cstr(&b), "");
    assert_false(xml_find(str_of(doc), "Message", &b));
    assert_false(xml_find(STR("<a><Code>x"), "Code", &b));
    assert_false(xml_find(STR("<html>not <b>xml"), "Code", &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_xml__documents_give_their_events),
        cmocka_unit_test(test_xml__broken_documents_end_in_an_error),
        cmocka_unit_test(test_xml__depth_and_names_are_bounded),
        cmocka_unit_test(test_xml__entities_are_decoded),
        cmocka_unit_test(test_xml__what_is_no_entity_is_kept),
        cmocka_unit_test(test_xml__escaped_text_reads_back),
        cmocka_unit_test(test_xml__find_takes_the_first_and_only_its_own_text),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
