/* Aim: what drover-worker would refuse is refused before a job is paid, and nothing else. Method:
 * every row of the tables that the worker reads, in a campaign file: just inside and just outside
 * its bounds, each of its words and another, its name with a letter too few. */
#include "common/setting_value.h"
#include "spec_text.h"
#include "worker_protocol.h"

#define SETTING(name, flag, kind, dflt, min, max, field, words, help)                              \
    {#name, flag, SETTING_##kind, dflt, min, max, 0, words, NULL},
static const struct setting download[] = {
#include "worker_download.def"
};
static const struct setting index_[] = {
#include "worker_index.def"
};
static const struct setting copy[] = {
#include "worker_copy.def"
};

static const struct {
    const char *text; /* of a file that ends within `hyperparameters` */
    const struct setting *rows;
    size_t rows_n;
    const char *by_keys; /* settings that the stage's keys give */
} commands[] = {
    {"name: c1\nstages:\n  - name: s\n    worker: download\n    fan_out: {count: 2}\n"
     "    instance_type: ml.c5.18xlarge\n    hyperparameters:\n"
     "      url_list: \"{bucket}/meta/{part}.parquet\"\n"
     "      output_folder: \"{bucket}/img/{part}/\"\n",
     download, ARRAY_LEN(download), " url_list output_folder "},
    {"name: c1\nstages:\n  - name: s\n    worker: index\n    from: \"{bucket}/img/\"\n"
     "    output: \"{bucket}/index/\"\n    max_runtime: 2h\n"
     "    instance_type: ml.m5.12xlarge\n    hyperparameters:\n",
     index_, ARRAY_LEN(index_), " input output_folder "},
    {"name: c1\nstages:\n  - name: s\n    worker: copy\n    from: \"https://host/a.parquet\"\n"
     "    to: \"{bucket}/meta/{file_name}\"\n    max_runtime: 2h\n"
     "    instance_type: ml.m5.large\n    hyperparameters:\n",
     copy, ARRAY_LEN(copy), " from to output_folder "},
};

static int tried;

/* One fault of that code (NULL: none) at the value. */
static void expect(size_t command, const char *name, const char *value, const char *code)
{
    AUTO_FREE char *text = xasprintf("%s      %s: \"%s\"\n", commands[command].text, name, value);
    struct parsed *p = parse(text);
    bool good = code == NULL ? p->good
                             : p->faults.n == 1 && strcmp(p->faults.at[0].code, code) == 0 &&
                                   strstr(p->faults.at[0].message, value) != NULL &&
                                   p->faults.at[0].hint[0] != '\0';
    if (!good) {
        (void)printf("# expected %s for %s: %s\n", code != NULL ? code : "no fault", name, value);
        show(&p->faults);
        fail();
    }
    parsed_free(p);
    tried++;
}

static bool by_key(size_t command, const char *name)
{
    AUTO_FREE char *word = xasprintf(" %s ", name);
    return strstr(commands[command].by_keys, word) != NULL;
}

static void each_word(size_t command, const struct setting *r)
{
    struct str rest = str_of(r->words);
    while (rest.n > 0) {
        struct str word = str_trim(str_split(&rest, ','));
        AUTO_FREE char *value = xasprintf("%.*s", (int)word.n, word.p);
        expect(command, r->name, value, NULL);
    }
    expect(command, r->name, "a word of nobody", "value");
}

static void each_value(size_t command, const struct setting *r)
{
    AUTO_FREE char *least = xasprintf("%lld", (long long)r->min);
    AUTO_FREE char *most = xasprintf("%lld", (long long)r->max);
    AUTO_FREE char *below = xasprintf("%lld", (long long)r->min - 1);
    AUTO_FREE char *above = xasprintf("%lld", (long long)r->max + 1);
    switch (r->kind) {
    case SETTING_INT:
        expect(command, r->name, least, NULL);
        expect(command, r->name, most, NULL);
        expect(command, r->name, below, "value");
        expect(command, r->name, above, "value");
        expect(command, r->name, "{part}", NULL); /* known with the part */
        return;
    case SETTING_REAL:
        expect(command, r->name, "2.5", NULL);
        expect(command, r->name, "many", "value");
        return;
    case SETTING_FLAG:
        expect(command, r->name, "True", NULL);
        expect(command, r->name, "perhaps", "value");
        return;
    case SETTING_TEXT:
    case SETTING_OPTIONAL:
    case SETTING_WORDS:
    case SETTING_LIST:
        if (r->words != NULL) {
            each_word(command, r);
        }
        return;
    }
}

static void test_spec_settings__each_row_of_each_command(void **state)
{
    (void)state;
    for (size_t c = 0; c < ARRAY_LEN(commands); c++) {
        for (size_t i = 0; i < commands[c].rows_n; i++) {
            const struct setting *r = &commands[c].rows[i];
            if (by_key(c, r->name)) {
                continue;
            }
            each_value(c, r);
            AUTO_FREE char *typo = xasprintf("%sq", r->name);
            AUTO_FREE char *text = xasprintf("%s      %s: \"1\"\n", commands[c].text, typo);
            struct parsed *p = parse(text);
            assert_int_equal(p->faults.n, 1);
            assert_string_equal(p->faults.at[0].code, "unknown_key");
            assert_non_null(strstr(p->faults.at[0].hint, r->name));
            parsed_free(p);
        }
    }
    (void)printf("# %d values of %zu settings\n", tried,
                 ARRAY_LEN(download) + ARRAY_LEN(index_) + ARRAY_LEN(copy));
    assert_true(tried > 200);
}

static void test_spec_settings__names_of_others(void **state)
{
    (void)state;
    expect(0, "distributor", "multiprocessing", NULL);
    expect(0, "distributor", "pyspark", "value");
    expect(0, "max_shard_retry", "1", NULL);
    expect(0, "sagemaker_region", "us-east-1", NULL);
    expect(1, "fields", "path,size", NULL);
    expect(1, "fields", "imag", "value");
}

static void test_spec_settings__a_word_that_is_a_key_is_not_repeated(void **state)
{
    (void)state;
    AUTO_FREE char *text =
        xasprintf("%s      image_size: \"AKIA%s\"\n", commands[0].text, "IOSFODNN7ABCDEFG");
    struct parsed *p = parse(text);
    assert_false(p->good);
    for (int i = 0; i < p->faults.n; i++) {
        assert_null(strstr(p->faults.at[i].message, "IOSFODNN7"));
    }
    parsed_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec_settings__each_row_of_each_command),
        cmocka_unit_test(test_spec_settings__names_of_others),
        cmocka_unit_test(test_spec_settings__a_word_that_is_a_key_is_not_repeated),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
