/* Aim: what is said of a mistake names it, and the hint says what to write. Method: one mistake
 * each in a file that is right, against words of both texts. */
#include "spec_text.h"

#define FILE_WITH(version, bucket, before_type, type)                                              \
    "version: " version "\nname: c1\nvars: {bucket: \"" bucket                                     \
    "\"}\nstages:\n  - name: download\n"                                                           \
    "    worker: download\n    fan_out: {from: \"{bucket}/meta/*.parquet\"}\n" before_type         \
    "instance_type: " type                                                                         \
    "\n    max_runtime: 4h\n    hyperparameters:\n      url_list: \"{uri}\"\n"                     \
    "      output_folder: \"{bucket}/img/{part:05d}/\"\n"
#define PLACE(bucket) FILE_WITH("1", bucket, "    ", "ml.c5.18xlarge")

static void test_spec_hints__a_fault_says_the_next_step(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message, *hint;
    } rows[] = {
        {FILE_WITH("2", "s3://acme", "    ", "ml.c5.18xlarge"), "2 is out of range", "write 1"},
        {PLACE("s3://Acme-laion"), "no bucket's name has 'A'", "lower-case"},
        {PLACE("s3://acme_laion"), "no bucket's name has '_'", "lower-case"},
        {PLACE("s3://ab"), "3 to 63 characters", "s3://bucket/prefix/"},
        {FILE_WITH("1", "s3://acme", "\t", "ml.c5.18xlarge"), "a tab", "indent with spaces"},
        {FILE_WITH("1", "s3://acme", "    ", "[ml.c5.xlarge, ml.c5.xlarge]"), "is listed twice",
         ""},
        {"", "nothing in it", "drover init"},
        {"# nothing yet\n", "nothing in it", "drover init"},
    };
    struct parsed *p = parse(PLACE("s3://acme"));
    assert_true(p->good);
    parsed_free(p);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        p = parse(rows[i].text);
        show(&p->faults);
        assert_true(p->faults.n > 0);
        assert_non_null(strstr(p->faults.at[0].message, rows[i].message));
        assert_non_null(strstr(p->faults.at[0].hint, rows[i].hint));
        parsed_free(p);
    }
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec_hints__a_fault_says_the_next_step),
    };
    return cmocka_run_group_tests_name("spec_hints", tests, NULL, NULL);
}
