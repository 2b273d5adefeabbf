/* Aim: only a trusted proxy's X-Forwarded-For names the client. Method: a table of lists, peers and
 * headers with the address that counts. */
#include "api/server/proxies.h"
#include "tests/unit/unit.h"
#include <arpa/inet.h>

static void test_proxies__the_last_address_that_is_no_proxy_is_the_client(void **state)
{
    (void)state;
    static const struct {
        const char *list, *peer, *forwarded, *client;
        bool loopback;
    } rows[] = {
        {"", "127.0.0.1", "9.9.9.9", "127.0.0.1", true},
        {"", "192.0.2.1", "9.9.9.9", "192.0.2.1", false},
        {"127.0.0.1", "127.0.0.1", "9.9.9.9", "9.9.9.9", false},
        {"127.0.0.1", "127.0.0.1", "", "127.0.0.1", true},
        {"127.0.0.1", "127.0.0.2", "9.9.9.9", "127.0.0.2", true},
        {"10.0.0.0/8", "10.1.2.3", "6.6.6.6, 9.9.9.9", "9.9.9.9", false},
        {"10.0.0.0/8", "10.1.2.3", "6.6.6.6, 9.9.9.9,10.200.0.1", "9.9.9.9", false},
        {"10.0.0.0/8", "10.1.2.3", "10.0.0.9", "10.0.0.9", false},
        {"10.0.0.0/8", "10.1.2.3", "6.6.6.6, rubbish", "10.1.2.3", false},
        {"10.0.0.0/8", "10.1.2.3", "6.6.6.6,", "10.1.2.3", false},
        {"10.0.0.0/9", "10.128.0.1", "9.9.9.9", "10.128.0.1", false},
        {"10.0.0.0/9", "10.127.0.1", "9.9.9.9", "9.9.9.9", false},
        {"10.0.0.0/9", "10.127.0.1", "127.0.0.1", "127.0.0.1", true},
        {"fd00::/8 , 192.0.2.7", "192.0.2.7", "fd12::1, fd00::2", "fd12::1", false},
        {"fd00::/8", "fd00::2", "2001:db8::5", "2001:db8::5", false},
        {"0.0.0.0/0", "8.8.8.8", "9.9.9.9, 2001:db8::5", "2001:db8::5", false},
        {"10.0.0.0/8", "::ffff:10.0.0.1", "9.9.9.9", "9.9.9.9", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct proxies *p;
        struct err err = ERR_INIT;
        struct sockaddr_in in = {.sin_family = AF_INET};
        struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
        bool v4 = inet_pton(AF_INET, rows[i].peer, &in.sin_addr) == 1;
        assert_true(v4 || inet_pton(AF_INET6, rows[i].peer, &in6.sin6_addr) == 1);
        char got[ADDRESS_TEXT_MAX];
        bool loopback;
        assert_true(proxies_new(rows[i].list, &p, &err));
        proxies_client(p, v4 ? (struct sockaddr *)&in : (struct sockaddr *)&in6, rows[i].forwarded,
                       got, &loopback);
        assert_string_equal(got, rows[i].client);
        assert_int_equal(loopback, rows[i].loopback);
        proxies_free(p);
    }
}

static void test_proxies__a_wrong_list_is_refused(void **state)
{
    (void)state;
    static const char *const lists[] = {"x",          "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1",
                                        "::1/129",    "10.0.0.1,,",  "10.0.0",    "10.0.0.0/8/8",
                                        "10.0.0.0/x", "a.example"};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        struct proxies *p;
        struct err err = ERR_INIT;
        assert_false(proxies_new(lists[i], &p, &err));
        assert_int_equal(err.code, ERR_INVALID);
    }
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proxies__the_last_address_that_is_no_proxy_is_the_client),
        cmocka_unit_test(test_proxies__a_wrong_list_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
