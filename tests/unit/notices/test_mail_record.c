/* Aim: an address that a server refuses keeps the mail from no other, who has it gets no second
 * one, and what was said of one is not taken for another's.
 * Method: what servers say, written down by hand; records and problems that have to follow. */
#include "notices/mail_record.h"
#include "tests/unit/unit.h"

#define TO "mailto:a@x,b@x"

static const struct {
    const char *what, *to, *before, *said;
    int status;
    bool taken;
    const char *record, *problem; /* record NULL: nothing was answered for each */
} tries[] = {
    {"both have it", TO, "{}", "250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n250 taken\r\n", 250, true,
     "{\"a@x\":\"\",\"b@x\":\"\"}", ""},
    {"one is refused", TO, "{}", "250 ok\r\n550 no\r\n250 ok\r\n354 go\r\n250 taken\r\n", 250, true,
     "{\"a@x\":\"answered 550: no\",\"b@x\":\"\"}", "a@x answered 550: no"},
    {"an answer of several lines is one", TO, "{}",
     "250-ok\r\n250 ok\r\n250 ok\r\n550-no\r\n550 nobody\r\n354 go\r\n250 taken\r\n221 bye\r\n",
     250, true, "{\"a@x\":\"\",\"b@x\":\"answered 550: nobody\"}", "b@x answered 550: nobody"},
    {"one is not taken now", TO, "{}", "250 ok\r\n450 later\r\n250\r\n354 go\r\n250 taken\r\n", 250,
     true, "{\"b@x\":\"\"}", "a@x answered 450: later"},
    {"both are refused, one for now", TO, "{}", "250 ok\r\n450\r\n550 no\r\n221 bye\r\n", 550,
     false, "{\"b@x\":\"answered 550: no\"}", "a@x answered 450; b@x answered 550: no"},
    {"the mail is not taken now", TO, "{}", "250 ok\r\n250 ok\r\n550 no\r\n451 wait\r\n221 bye\r\n",
     451, false, "{\"b@x\":\"answered 550: no\"}", "a@x answered 451: wait; b@x answered 550: no"},
    {"the mail is refused", TO, "{}", "250 ok\r\n250 ok\r\n450 no\r\n354 go\r\n554 spam\r\n", 554,
     false, "{\"a@x\":\"answered 554: spam\"}", "b@x answered 450: no; a@x answered 554: spam"},
    {"the connection ends after the message", TO, "{}", "250 ok\r\n250 ok\r\n550 no\r\n354 go\r\n",
     354, false, "{\"b@x\":\"answered 550: no\"}",
     "a@x was taken, but the mail was not; b@x answered 550: no"},
    {"what was refused before is told again", "mailto:a@x", "{\"b@x\":\"answered 550: no\"}",
     "250 ok\r\n250 ok\r\n354 go\r\n250 taken\r\n", 250, true,
     "{\"a@x\":\"\",\"b@x\":\"answered 550: no\"}", "b@x answered 550: no"},
    {"the sender is refused", TO, "{}", "553 who\r\n221 bye\r\n", 553, false, NULL, ""},
    {"two answers of which one is the sender's", TO, "{}", "553 who\r\n553 who\r\n221 bye\r\n", 553,
     false, NULL, ""},
    {"the connection ends between addresses", TO, "{}", "250 ok\r\n550 no\r\n", 550, false, NULL,
     ""},
    {"nothing was said", TO, "{}", "", 0, false, NULL, ""},
};

static void test_mail_record__says_who_has_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
        struct err err = ERR_INIT;
        struct mail_addresses to;
        AUTO_BUF struct buf problem = BUF_INIT(4096);
        AUTO_JSON json_t *record = NULL;
        const struct mail_try t = {
            .said = str_of(tries[i].said), .status = tries[i].status, .taken = tries[i].taken};
        print_message("# %s\n", tries[i].what);
        assert_true(mail_addresses_read(tries[i].to, &to, &err));
        assert_true(json_parse(str_of(tries[i].before), 1000, &record, &err));
        assert_int_equal(mail_record_try(record, &to, &t, &problem), tries[i].record != NULL);
        AUTO_JSON json_t *want = NULL;
        const char *wanted = tries[i].record != NULL ? tries[i].record : tries[i].before;
        assert_true(json_parse(str_of(wanted), 1000, &want, &err));
        assert_true(json_equal(record, want));
        assert_string_equal(buf_cstr(&problem), tries[i].problem);
        assert_int_equal(mail_record_has(record), strstr(wanted, "\"\"") != NULL);
    }
}

static void test_mail_record__who_needs_it_yet(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct mail_addresses all, left;
    AUTO_JSON json_t *record = NULL;
    assert_true(mail_addresses_read("mailto:a@x,b@x,c@x", &all, &err));
    assert_true(json_parse(STR("{\"b@x\":\"\",\"gone@x\":\"\"}"), 1000, &record, &err));
    mail_addresses_left(&all, record, &left);
    assert_int_equal(left.n, 2);
    assert_string_equal(left.text[0], "a@x");
    assert_string_equal(left.text[1], "c@x");
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mail_record__says_who_has_it),
        cmocka_unit_test(test_mail_record__who_needs_it_yet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
