/* Aim: a notice says what happened in every form, names from outside stay text in each, the same
 * notice gives the same bytes, and a signature is that of Standard Webhooks' example.
 * Method: facts as the database gives them; the bodies are read back as JSON. */
#include "common/json.h"
#include "notices/message.h"
#include "notices/signature.h"
#include "tests/unit/unit.h"

#define NAME "<!channel> & [x](http://evil) *b* \\u202e"

static json_t *body_of(const char *kind, const char *format, const char *facts)
{
    struct err err = ERR_INIT;
    json_t *v = NULL;
    AUTO_BUF struct buf b = BUF_INIT(4 * MESSAGE_BYTES_MAX);
    AUTO_BUF struct buf again = BUF_INIT(4 * MESSAGE_BYTES_MAX);
    const struct message m = {
        .kind = kind, .at_us = INT64_C(1700000000000000), .facts_json = facts};
    assert_true(message_write(&m, format, &b, &err));
    assert_true(message_write(&m, format, &again, &err));
    assert_true(str_eq(buf_str(&b), buf_str(&again)));
    assert_true(json_parse(buf_str(&b), b.n, &v, &err));
    return v;
}

static const char *of(const json_t *v, const char *key, const char *key2)
{
    const char *s = json_string_value(json_object_get(json_object_get(v, key), key2));
    return s != NULL ? s : "";
}

static void test_message__says_what_happened(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *facts, *type, *title, *text, *command;
    } rows[] = {
        {"failed",
         "{\"campaign\":\"c-7\",\"name\":\"laion\",\"failed\":7,\"causes\":[{\"cause\":\"disk_"
         "full\","
         "\"parts\":4},{\"cause\":\"\",\"parts\":3}]}",
         "parts.failed", "7 parts of laion c-7 failed", "disk_full: 4, unknown: 3",
         "drover failures c-7"},
        {"failed", "{\"campaign\":\"c-7\",\"name\":\"laion\",\"failed\":1,\"causes\":[]}",
         "parts.failed", "1 part of laion c-7 failed", "", "drover failures c-7"},
        {"done",
         "{\"campaign\":\"c-7\",\"name\":\"laion\",\"state\":\"cancelled\",\"parts\":{\"done\":2,"
         "\"failed\":1,\"cancelled\":5},\"spent_micro_usd\":1995000}",
         "campaign.done", "laion c-7 was cancelled",
         "2 parts done, 1 failed, 5 cancelled; 2.00 USD "
         "spent.",
         "drover get c-7"},
        {"done",
         "{\"campaign\":\"c-7\",\"name\":\"laion\",\"state\":\"failed\",\"parts\":{\"failed\":1},"
         "\"kept\":[{\"name\":\"d-7-volume\",\"until\":\"T\"}]}",
         "campaign.done", "laion c-7 failed",
         "0 parts done, 1 failed; 0.00 USD spent.\nFile system d-7-volume costs money until T, for "
         "a retry; drover filesystems delete d-7-volume ends it.",
         "drover get c-7"},
        {"held",
         "{\"campaign\":\"c-7\",\"name\":\"laion\",\"guidance\":[{\"title\":\"held: the budget is "
         "used up\",\"text\":\"Nothing starts.\",\"evidence\":\"9.00 USD\",\"steps\":[{\"command\":"
         "\"drover budget c-7 USD --resume\"}]}]}",
         "campaign.held", "laion c-7: held: the budget is used up", "Nothing starts.\n9.00 USD",
         "drover budget c-7 USD --resume"},
        {"held", "{\"campaign\":\"c-7\",\"name\":\"laion\",\"state\":\"running\",\"guidance\":[]}",
         "campaign.held", "laion c-7 was held", "It is running by now.", "drover get c-7"},
        {"stuck",
         "{\"campaign\":\"c-7\",\"name\":\"laion\",\"since\":\"T\",\"guidance\":[{\"title\":"
         "\"waits: "
         "quota 0\",\"text\":\"x\",\"steps\":[]}]}",
         "campaign.stuck", "laion c-7: waits: quota 0", "x\nNothing of it has run since T.", ""},
        {"stuck",
         "{\"campaign\":\"c-7\",\"name\":\"laion\",\"late_since\":\"T\",\"guidance\":[{\"title\":"
         "\"waits: quota 0\",\"text\":\"x\",\"steps\":[]}]}",
         "campaign.stuck", "laion c-7 is late: its deadline was T",
         "Nothing is stopped by a deadline: it goes on.", "drover deadline c-7"},
        {"budget",
         "{\"campaign\":\"c-7\",\"name\":\"laion\",\"budget\":{\"of\":\"campaign\",\"percent\":80,"
         "\"limit_micro_usd\":900000000,\"spent_micro_usd\":720500000}}",
         "budget.reached", "80 % of the budget of laion c-7 are spent",
         "720.50 of 900.00 USD are spent.", "drover cost c-7"},
        {"budget",
         "{\"project\":\"p\",\"budget\":{\"of\":\"project\",\"percent\":100,\"limit_micro_usd\":1,"
         "\"spent_micro_usd\":1}}",
         "budget.reached", "the budget of project p is used up", "0.00 of 0.00 USD are spent.",
         "drover api GET /v1/projects"},
        {"lost", "{\"lost\":2,\"texts\":[\"a\",\"b\"]}", "jobs.lost",
         "2 strays that no campaign knows", "a\nb", "drover strays"},
        {"test", "{}", "test", "a test of this webhook", "It works: drover's notices arrive here.",
         "drover webhook"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_JSON json_t *v = body_of(rows[i].kind, "json", rows[i].facts);
        assert_string_equal(json_string_value(json_object_get(v, "type")), rows[i].type);
        assert_string_equal(json_string_value(json_object_get(v, "timestamp")),
                            "2023-11-14T22:13:20Z");
        assert_string_equal(of(v, "data", "title"), rows[i].title);
        assert_string_equal(of(v, "data", "text"), rows[i].text);
        assert_string_equal(of(v, "data", "command"), rows[i].command);
    }
}

static void test_message__names_stay_text(void **state)
{
    (void)state;
    static const char facts[] =
        "{\"campaign\":\"c-7\",\"name\":\"" NAME "\",\"failed\":2,\"causes\":[]}";
    AUTO_JSON json_t *slack = body_of("failed", "slack", facts);
    const char *text = json_string_value(json_object_get(slack, "text"));
    assert_non_null(strstr(text, "&lt;!channel&gt; &amp; ["));
    assert_null(strchr(text, '<'));
    assert_true(json_is_false(json_object_get(slack, "mrkdwn")));
    AUTO_JSON json_t *teams = body_of("failed", "teams", facts);
    json_t *content =
        json_object_get(json_array_get(json_object_get(teams, "attachments"), 0), "content");
    json_t *block = json_array_get(json_object_get(content, "body"), 0);
    json_t *run = json_array_get(json_object_get(block, "inlines"), 0);
    assert_string_equal(json_string_value(json_object_get(block, "type")), "RichTextBlock");
    assert_string_equal(json_string_value(json_object_get(run, "type")), "TextRun");
    assert_non_null(strstr(json_string_value(json_object_get(run, "text")), "[x](http://evil)"));
}

static void test_message__a_long_name_is_cut_between_characters(void **state)
{
    (void)state;
    AUTO_BUF struct buf facts = BUF_INIT(MESSAGE_BYTES_MAX);
    buf_add_cstr(&facts, "{\"campaign\":\"c-7\",\"failed\":2,\"name\":\"x");
    for (int i = 0; i < 5000; i++) {
        buf_add_cstr(&facts, "\xc3\xa4");
    }
    buf_add_cstr(&facts, "\"}");
    AUTO_JSON json_t *v = body_of("failed", "json", buf_cstr(&facts));
    const char *title = of(v, "data", "title");
    assert_true(str_is_utf8(str_of(title)));
    assert_true(strlen(title) < 160);
    assert_non_null(strstr(title, "\xc3\xa4 c-7 failed"));
}

static void test_message__facts_that_are_no_json_are_an_error(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    AUTO_BUF struct buf b = BUF_INIT(MESSAGE_BYTES_MAX);
    const struct message m = {.kind = "done", .facts_json = "{"};
    assert_false(message_write(&m, "json", &b, &err));
}

/* https://github.com/standard-webhooks/standard-webhooks: the example of its libraries' tests. */
static void test_signature__is_that_of_standard_webhooks(void **state)
{
    (void)state;
    static const uint8_t key[] = {0x31, 0xf2, 0x90, 0xf6, 0xbf, 0x06, 0x29, 0x8a,
                                  0xab, 0x4f, 0x08, 0xd4, 0x3c, 0x3f, 0x08, 0x2c,
                                  0xf6, 0x48, 0xa3, 0x62, 0xda, 0x2d, 0xa4, 0xb0};
    AUTO_BUF struct buf b = BUF_INIT(128);
    signature_make((struct str){(const char *)key, sizeof key}, "msg_p5jXN8AQM9LWM0D4loKWxJek",
                   1614265330, STR("{\"test\": 2432232314}"), &b);
    assert_string_equal(buf_cstr(&b), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_message__says_what_happened),
        cmocka_unit_test(test_message__names_stay_text),
        cmocka_unit_test(test_message__a_long_name_is_cut_between_characters),
        cmocka_unit_test(test_message__facts_that_are_no_json_are_an_error),
        cmocka_unit_test(test_signature__is_that_of_standard_webhooks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
