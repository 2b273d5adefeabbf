/* Aim: a mail has the headers and lines that RFC 5322, 2045, 2047 and 3834 want, nothing in a name
 * can add a header or an address, and the same mail gives the same bytes.
 * Method: whole mails and subjects, written down by hand; addresses of both kinds. */
#include "common/json.h"
#include "notices/message.h"
#include "tests/unit/unit.h"

static void write_one(const char *subject, const char *text, struct buf *b)
{
    struct err err = ERR_INIT;
    struct mail_addresses to;
    assert_true(mail_addresses_read("mailto:a@b.example,c+d@e.example", &to, &err));
    const struct mail m = {.id = "msg_1.d-2",
                           .from = "drover@f.example",
                           .to = &to,
                           .at_us = INT64_C(1700000000000000),
                           .subject = subject,
                           .text = text};
    mail_write(&m, b);
}

static void test_mail__has_its_headers(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(4096);
    write_one("a subject", "two\nlines\n", &b);
    assert_string_equal(buf_cstr(&b), "From: drover <drover@f.example>\r\n"
                                      "To: a@b.example,\r\n c+d@e.example\r\n"
                                      "Subject: a subject\r\n"
                                      "Date: Tue, 14 Nov 2023 22:13:20 +0000\r\n"
                                      "Message-ID: <msg_1.d-2@f.example>\r\n"
                                      "Auto-Submitted: auto-generated\r\n"
                                      "MIME-Version: 1.0\r\n"
                                      "Content-Type: text/plain; charset=utf-8\r\n"
                                      "Content-Transfer-Encoding: quoted-printable\r\n"
                                      "\r\n"
                                      "two\r\nlines\r\n");
}

static void test_mail__a_subject_is_one_header(void **state)
{
    (void)state;
    static const struct {
        const char *subject, *want;
    } rows[] = {
        {"", ""},
        {"x\r\nBcc: evil@example.com", "x  Bcc: evil@example.com"},
        {"x\n\n<body>", "x  <body>"},
        {"tab\tand\x7f"
         "del",
         "tab and del"},
        {"\xc3\xa4", "=?utf-8?B?w6Q=?="},
        {"\xc3\xa4\r\nBcc: x", "=?utf-8?B?w6QgIEJjYzogeA==?="},
        {"=?utf-8?B?eA==?=", "=?utf-8?B?PT91dGYtOD9CP2VBPT0/PQ==?="},
        /* cut before the character that would be divided after 39 bytes */
        {"12345678901234567890123456789012345678\xc3\xa4",
         "=?utf-8?B?MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg=?=\r\n "
         "=?utf-8?B?w6Q=?="},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_BUF struct buf b = BUF_INIT(4096);
        AUTO_BUF struct buf want = BUF_INIT(4096);
        write_one(rows[i].subject, "", &b);
        buf_addf(&want, "\r\nSubject: %s\r\nDate: ", rows[i].want);
        if (strstr(buf_cstr(&b), buf_cstr(&want)) == NULL) {
            print_error("%s\n", buf_cstr(&b));
        }
        assert_non_null(strstr(buf_cstr(&b), buf_cstr(&want)));
    }
}

static void test_mail__lines_of_a_text_are_short_and_ascii(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"a=b\n", "a=3Db\r\n"},
        {".\n..x\n", "=2E\r\n=2E.x\r\n"},
        {"blank \nb\n", "blank=20\r\nb\r\n"},
        {"\xc3\xa4\r\n\t\x01\n", "=C3=A4=0D\r\n=09=01\r\n"},
        {"123456789 123456789 123456789 123456789 123456789 123456789 123456789 123456789\n",
         "123456789 123456789 123456789 123456789 123456789 123456789 123456789 "
         "12345=\r\n6789\r\n"},
        {"123456789 123456789 123456789 123456789 123456789 123456789 123456789 123\xc3\xa4\n",
         "123456789 123456789 123456789 123456789 123456789 123456789 123456789 123=\r\n=C3=A4"
         "\r\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_BUF struct buf b = BUF_INIT(4096);
        write_one("x", rows[i].text, &b);
        assert_string_equal(strstr(buf_cstr(&b), "\r\n\r\n") + 4, rows[i].want);
    }
}

static void test_mail__addresses_are_plain_ones(void **state)
{
    (void)state;
    struct mail_addresses to;
    struct err err = ERR_INIT;
    static const char *const wrong[] = {
        "mailto:",           "a@b",
        "http://a@b",        "mailto:a",
        "mailto:@b",         "mailto:a@",
        "mailto:a@b@c",      "mailto:a@b,",
        "mailto:,a@b",       "mailto:a@b, c@d",
        "mailto:a@b>c",      "mailto:a@b\r\nc",
        "mailto:\"a\"@b",    "mailto:a@b?bcc=c@d",
        "mailto:\xc3\xa4@b", "mailto:a@b,a@b,a@b,a@b,a@b,a@b,a@b,a@b,a@b,a@b,a@b"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        if (mail_addresses_read(wrong[i], &to, &err)) {
            print_error("%s was taken\n", wrong[i]);
            fail();
        }
    }
    assert_true(mail_addresses_read("mailto:a.b+c_d=e~f-g@h-i.example,x@localhost", &to, &err));
    assert_int_equal(to.n, 2);
    assert_string_equal(to.text[1], "x@localhost");
    AUTO_BUF struct buf b = BUF_INIT(1024);
    buf_add_cstr(&b, "x@");
    while (b.n < MAIL_ADDRESS_MAX) {
        buf_add_cstr(&b, "y");
    }
    assert_true(mail_address_ok(buf_str(&b)));
    buf_add_cstr(&b, "y");
    assert_false(mail_address_ok(buf_str(&b)));
}

/* The facts are those of the other formats; a notice of a campaign leads to it. */
static void test_mail__says_what_the_others_say(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *facts, *url, *want;
    } rows[] = {
        {"failed", "{\"campaign\":\"c-7\",\"name\":\"laion\",\"failed\":2,\"causes\":[]}",
         "https://d.example",
         "2 parts of laion c-7 failed\r\n\r\n\r\n\r\ndrover failures c-7\r\n"
         "https://d.example/c/7\r\n"},
        {"failed", "{\"campaign\":\"c-7\",\"name\":\"laion\",\"failed\":2,\"causes\":[]}", "",
         "2 parts of laion c-7 failed\r\n\r\n\r\n\r\ndrover failures c-7\r\n"},
        {"test", "{}", "https://d.example",
         "a test of this webhook\r\n\r\nIt works: drover's notices arrive here.\r\n\r\n"
         "drover webhook\r\nhttps://d.example/webhooks\r\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = ERR_INIT;
        struct mail_addresses to;
        AUTO_BUF struct buf b = BUF_INIT(4096);
        AUTO_BUF struct buf again = BUF_INIT(4096);
        assert_true(mail_addresses_read("mailto:a@b", &to, &err));
        const struct message_envelope envelope = {
            .id = "x", .from = "a@b", .to = &to, .public_url = rows[i].url};
        const struct message m = {
            .kind = rows[i].kind, .facts_json = rows[i].facts, .mail = &envelope};
        assert_true(message_write(&m, "email", &b, &err));
        assert_true(message_write(&m, "email", &again, &err));
        assert_string_equal(buf_cstr(&b), buf_cstr(&again));
        assert_string_equal(strstr(buf_cstr(&b), "\r\n\r\n") + 4, rows[i].want);
    }
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mail__has_its_headers),
        cmocka_unit_test(test_mail__a_subject_is_one_header),
        cmocka_unit_test(test_mail__lines_of_a_text_are_short_and_ascii),
        cmocka_unit_test(test_mail__addresses_are_plain_ones),
        cmocka_unit_test(test_mail__says_what_the_others_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
