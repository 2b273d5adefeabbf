/* Aim: no address inside somebody's network passes, however it is written; public ones do.
 * Method: first and last address of each refused range and its neighbours outside; host forms the
 * C library understands; rules; URLs. */
#include "common/addr.h"
#include "download/fetch/url.h"
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct net_addr addr(const char *text)
{
    struct net_addr a = {.family = strchr(text, ':') != NULL ? AF_INET6 : AF_INET};
    assert_int_equal(inet_pton(a.family, text, a.b), 1);
    return a;
}

static const char *const inside[] = {"0.0.0.0",
                                     "0.255.255.255",
                                     "10.0.0.0",
                                     "10.255.255.255",
                                     "100.64.0.0",
                                     "100.127.255.255",
                                     "127.0.0.0",
                                     "127.255.255.255",
                                     "169.254.0.0",
                                     "169.254.255.255",
                                     "172.16.0.0",
                                     "172.31.255.255",
                                     "192.0.0.0",
                                     "192.0.0.255",
                                     "192.0.2.0",
                                     "192.0.2.255",
                                     "192.88.99.0",
                                     "192.88.99.255",
                                     "192.168.0.0",
                                     "192.168.255.255",
                                     "198.18.0.0",
                                     "198.19.255.255",
                                     "198.51.100.0",
                                     "198.51.100.255",
                                     "203.0.113.0",
                                     "203.0.113.255",
                                     "224.0.0.0",
                                     "239.255.255.255",
                                     "240.0.0.0",
                                     "255.255.255.255",
                                     "::",
                                     "::1",
                                     "::ffff:8.8.8.8",
                                     "::8.8.8.8",
                                     "64:ff9b::808:808",
                                     "64:ff9b:1::1",
                                     "100::1",
                                     "2001::",
                                     "2001:1ff:ffff::",
                                     "2001:db8::",
                                     "2001:db8:ffff::1",
                                     "2002::",
                                     "2002:808:808::1",
                                     "fc00::",
                                     "fdff::1",
                                     "fd00:ec2::254",
                                     "fe80::",
                                     "febf::1",
                                     "fec0::1",
                                     "ff00::",
                                     "ff02::1"};
static const char *const outside[] = {
    "1.0.0.0",           "9.255.255.255",   "11.0.0.0",        "100.63.255.255", "100.128.0.0",
    "126.255.255.255",   "128.0.0.0",       "169.253.255.255", "169.255.0.0",    "172.15.255.255",
    "172.32.0.0",        "191.255.255.255", "192.0.1.0",       "192.0.3.0",      "192.88.98.255",
    "192.88.100.0",      "192.167.255.255", "192.169.0.0",     "198.17.255.255", "198.20.0.0",
    "198.51.99.255",     "198.51.101.0",    "203.0.112.255",   "203.0.114.0",    "223.255.255.255",
    "2001:200::1",       "2001:db7::1",     "2001:db9::1",     "2003::1",        "2600::1",
    "2a00:1450:4001::1", "2606:4700::1111"};

static void test_worker_addr__edges_of_refused_ranges(void **state UNUSED)
{
    for (size_t i = 0; i < ARRAY_LEN(inside); i++) {
        struct net_addr a = addr(inside[i]);
        if (!addr_is_blocked(&a)) {
            fail_msg("%s passes", inside[i]);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(outside); i++) {
        struct net_addr a = addr(outside[i]);
        if (addr_is_blocked(&a)) {
            fail_msg("%s is refused", outside[i]);
        }
    }
}

static void test_worker_addr__hosts_in_every_form(void **state UNUSED)
{
    static const struct {
        const char *host, *is;
    } forms[] = {{"127.0.0.1", "127.0.0.1"},
                 {"2130706433", "127.0.0.1"},
                 {"0x7f000001", "127.0.0.1"},
                 {"017700000001", "127.0.0.1"},
                 {"0177.0.0.01", "127.0.0.1"},
                 {"0x7F.1", "127.0.0.1"},
                 {"127.1", "127.0.0.1"},
                 {"169.0xfe.43518", "169.254.169.254"},
                 {"0", "0.0.0.0"},
                 {"::1", "::1"},
                 {"[::1]", "::1"},
                 {"[::FFFF:127.0.0.1]", "::ffff:127.0.0.1"},
                 {"[fe80::1%25eth0]", "fe80::1"},
                 {"255.255.255.255", "255.255.255.255"}};
    static const char *const names[] = {"",          "a",    "localhost", "1.2.3.4.5",
                                        "256.1.1.1", "0x",   "1.2.3.x",   "[",
                                        "[]",        "[::1", "::g",       "127.0.0.1.example.com"};
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        struct net_addr a;
        char text[ADDR_TEXT_BYTES];
        assert_true(addr_parse_host(forms[i].host, &a));
        addr_format(&a, text);
        assert_string_equal(text, forms[i].is);
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct net_addr a;
        if (addr_parse_host(names[i], &a) && strcmp(names[i], "[::1") != 0) {
            fail_msg("'%s' is taken for an address", names[i]);
        }
    }
}

static void test_worker_addr__rules_open_what_they_say(void **state UNUSED)
{
    struct addr_rules r = {0};
    struct err err = ERR_INIT;
    assert_true(addr_parse_rule(STR("127.0.2.0/24:8080"), &r.at[0], &err));
    assert_true(addr_parse_rule(STR("[::1]:80"), &r.at[1], &err));
    assert_true(addr_parse_rule(STR("10.0.0.0/8:*"), &r.at[2], &err));
    r.n = 3;
    static const struct {
        const char *addr;
        int port;
        bool ok;
    } cases[] = {{"127.0.2.0", 8080, true},    {"127.0.2.255", 8080, true},
                 {"127.0.2.1", 8081, false},   {"127.0.3.0", 8080, false},
                 {"127.0.1.255", 8080, false}, {"::1", 80, true},
                 {"::1", 81, false},           {"::2", 80, false},
                 {"10.9.9.9", 22, true},       {"11.0.0.1", 80, true},
                 {"11.0.0.1", 22, false},      {"11.0.0.1", 0, false},
                 {"11.0.0.1", 8080, true},     {"::ffff:10.0.0.1", 80, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct net_addr a = addr(cases[i].addr);
        if (addr_is_allowed(&r, &a, cases[i].port) != cases[i].ok) {
            fail_msg("%s port %d", cases[i].addr, cases[i].port);
        }
    }
    static const char *const bad[] = {"",
                                      "x",
                                      "127.0.0.1",
                                      "127.0.0.1:",
                                      "127.0.0.1:0",
                                      "127.0.0.1:65536",
                                      "127.0.0.1/33:80",
                                      "127.0.0.1/-1:80",
                                      "::1/129:80",
                                      "host:80",
                                      "127.0.0.1/8/8:80",
                                      ":80"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (addr_parse_rule(str_of(bad[i]), &r.at[3], &err)) {
            fail_msg("'%s' is taken for a rule", bad[i]);
        }
    }
}

static void url_is(const char *raw, const char *text, const char *host, int port)
{
    struct url u;
    char why[URL_WHY_BYTES] = "";
    if (!url_parse(str_of(raw), &u, why)) {
        fail_msg("'%s': %s", raw, why);
    }
    assert_string_equal(u.text, text);
    assert_string_equal(u.host, host);
    assert_int_equal(u.port, port);
    url_done(&u);
}

static void test_worker_addr__urls_are_made_fit(void **state UNUSED)
{
    url_is("http://a.b/c d?e=\xc3\xa9#f", "http://a.b/c%20d?e=%C3%A9", "a.b", 80);
    url_is(" https://A.b:8443/%20 \n", "https://A.b:8443/%20", "A.b", 8443);
    url_is("HTTP://x", "http://x/", "x", 80);
    url_is("http://0x7f.1:81/x", "http://127.0.0.1:81/x", "127.0.0.1", 81);
    url_is("http://[::1]/x", "http://[::1]/x", "::1", 80);
    url_is("http://b\xc3\xbc"
           "cher.example/",
           "http://xn--bcher-kva.example/", "xn--bcher-kva.example", 80);
    url_is("http://a\tb/c\r\nd", "http://ab/cd", "ab", 80);
    url_is("http://a/b#\x01 tail", "http://a/b", "a", 80);
    url_is("http://a/[x]?q=<y>", "http://a/[x]?q=%3Cy%3E", "a", 80);
}

static void test_worker_addr__other_urls_are_refused_with_words(void **state UNUSED)
{
    static const struct {
        const char *raw, *why;
    } cases[] = {{"", "unknown url type: ''"},
                 {"no", "unknown url type: 'no'"},
                 {":x", "unknown url type: ':x'"},
                 {"ftp://h/", "<urlopen error unknown url type: ftp>"},
                 {"file:///etc/passwd", "<urlopen error unknown url type: file>"},
                 {"data:image/png;base64,x", "<urlopen error unknown url type: data>"},
                 {"http://u:p@h/", "<urlopen error user name in url not allowed>"},
                 {"http://u@h/", "<urlopen error user name in url not allowed>"},
                 {"//x:80/y", "unknown url type: '//x:80/y'"},
                 {"it's", "unknown url type: \"it's\""},
                 {"'\"\\\t\x01", "unknown url type: '\\'\"\\\\\\t\\x01'"},
                 {"Foo://x", "<urlopen error unknown url type: foo>"},
                 {"http:foo", "<urlopen error no host given>"},
                 {"https://", "<urlopen error no host given>"},
                 {"http:///x", "<urlopen error no host given>"},
                 {"httpx://h/", "<urlopen error unknown url type: httpx>"},
                 {"http://a/b\x01?q#\x02",
                  "URL can't contain control characters. '/b\\x01?q' (found at least '\\x01')"},
                 {"http://a/b \x7f",
                  "URL can't contain control characters. '/b \\x7f' (found at least ' ')"},
                 {"http://a\x01/b",
                  "URL can't contain control characters. 'a\\x01' (found at least '\\x01')"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct url got;
        char text[URL_WHY_BYTES] = "";
        assert_false(url_parse(str_of(cases[i].raw), &got, text));
        assert_string_equal(text, cases[i].why);
    }
    char longer[1000];
    char why[URL_WHY_BYTES] = "";
    struct url u;
    memset(longer, '\\', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_false(url_parse(str_of(longer), &u, why));
    assert_int_equal(strlen(why), URL_WHY_BYTES - 1);
    memcpy(longer, "http://a/\x01", 10);
    assert_false(url_parse(str_of(longer), &u, why));
    assert_int_equal(strlen(why), URL_WHY_BYTES - 1);
    static const char *const bad[] = {
        "http://",         "http:///",        "http://:80/",
        "http://h:0/",     "http://h:65536/", "http://h:x/",
        "http://a b/",     "http://[::1",     "http://?x",
        "http:/h",         "http://a%7fb/",   "http://a%2541.b/",
        "http://a%20b/",   "http://a%00b/",   "http://a%0ab/",
        "http://a%2fb/",   "http://a%40b/",   "http://127.0.0.1%23.b.c/",
        "http://\xff\xfe/"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        why[0] = '\0';
        if (url_parse(str_of(bad[i]), &u, why)) {
            fail_msg("'%s' is taken as %s", bad[i], u.text);
        }
        assert_true(why[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worker_addr__edges_of_refused_ranges),
        cmocka_unit_test(test_worker_addr__hosts_in_every_form),
        cmocka_unit_test(test_worker_addr__rules_open_what_they_say),
        cmocka_unit_test(test_worker_addr__urls_are_made_fit),
        cmocka_unit_test(test_worker_addr__other_urls_are_refused_with_words),
    };
    url_setup();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
