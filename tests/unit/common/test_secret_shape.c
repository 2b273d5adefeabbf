/* Aim: keys are known by their shapes wherever they stand, and masked; other words stay. Method:
 * tables of texts. The keys are made of parts, so that no scanner takes this file for a leak. */
#include "common/secret_shape.h"
#include "common/units.h"
#include "tests/unit/unit.h"
#include <openssl/evp.h>
#include <openssl/pem.h>

#define X10 "aB3dE6gH9k"
#define U16                                                                                        \
    "ABCDEFGH2345"                                                                                 \
    "6789"
#define S40                                                                                        \
    "wJalrXUtnFEMI/K7MDENG/"                                                                       \
    "bPxRfiCYEXAMPLEKEY"
#define JWT                                                                                        \
    "ey"                                                                                           \
    "JhbGciOiJI.ey"                                                                                \
    "JzdWIiOiIx.c2ln-nature_1"

static const struct {
    const char *text, *masked; /* NULL: nothing is masked */
} texts[] = {
    {"", NULL},
    {"AlgorithmError: exit code 1", NULL},
    {"hf_model_name is no token, sk-learn neither", NULL},
    {"key AKIA" U16 ".", "key AKIA***."},
    {"AKIA" U16 " and ASIA" U16, "AKIA*** and ASIA***"},
    {"XAKIA" U16, NULL}, /* begins within a word */
    {"token=ghp_" X10 X10 X10 X10 ", hf_" X10 X10 X10, "token=ghp_***, hf_***"},
    {"glpat-" X10 X10 " xoxb-" X10 " npm_" X10 X10 X10 X10, "glpat-*** xoxb-*** npm_***"},
    {"Bearer " JWT " was refused", "Bearer eyJ*** was refused"},
    {"eyJ alone, eyJhbGciOi without a second part", NULL},
    {"git clone https://me:hunter2@host/x failed", "git clone https://me:***@host/x failed"},
    {"https://me@host/x, https://host:80/a@b, s3://b/c", NULL},
    {"a://u:p@h b://u:long-one@h", "a://u:*@h b://u:***@h"},
    {"-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
     "-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----"},
    {"-----BEGIN PRIVATE KEY-----\nabc that is cut", "-----BEGIN PRIVATE KEY-----***"},
    {"aws_secret_access_key = " S40 "\n", "aws_secret_access_key = ***\n"},
    {"model-" S40 ".bin", NULL}, /* nothing says that it is a secret */
    {"secret of da39a3ee5e6b4b0d3255bfef95601890afd80709", NULL},
};

static void test_secret_shape__keys_are_masked_and_words_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        char text[400], again[400];
        (void)snprintf(text, sizeof text, "%s", texts[i].text);
        secret_mask(text);
        assert_string_equal(text, texts[i].masked != NULL ? texts[i].masked : texts[i].text);
        (void)snprintf(again, sizeof again, "%s", text);
        secret_mask(again);
        assert_string_equal(again, text);
    }
}

static void test_secret_shape__what_a_value_looks_like(void **state)
{
    (void)state;
    assert_string_equal(secret_shape(STR("AKIA" U16)), "an AWS access key id");
    assert_string_equal(secret_shape(STR(" " S40 " ")), "an AWS secret access key");
    assert_string_equal(secret_shape(STR("x " JWT)), "a signed token (JWT)");
    assert_string_equal(secret_shape(STR("-----BEGIN PRIVATE KEY-----")), "a private key");
    assert_string_equal(secret_shape(STR("https://a:b@c")), "a URL with a password");
    assert_null(secret_shape(STR("a path/of/a/file.txt")));
    assert_null(secret_shape(STR("AKIA")));
    assert_non_null(secret_shape_named("HF_TOKEN", STR("correct-horse")));
    assert_null(secret_shape_named("HF_TOKEN", STR("arn:aws:secretsmanager:x")));
    assert_null(secret_shape_named("TOKENIZERS", STR("correct-horse")));
}

/* A key as OpenSSL writes it, in lines of a log that begin with `before`, from line `from` on. What
 * is left of it: its first and last line. */
static void page_of_key(EVP_PKEY *key, const char *before, int from, int *ret_masked)
{
    BIO *b = BIO_new(BIO_s_mem());
    char line[128], text[256];
    bool in_key = false;
    *ret_masked = 0;
    assert_int_equal(PEM_write_bio_PrivateKey(b, key, NULL, NULL, 0, NULL, NULL), 1);
    for (int i = 0; BIO_gets(b, line, sizeof line) > 0; i++) {
        if (i < from) {
            continue;
        }
        line[strcspn(line, "\n")] = '\0';
        (void)snprintf(text, sizeof text, "%s%s", before, line);
        secret_mask_line(text, &in_key);
        bool frame = str_starts(str_of(line), "-----");
        assert_int_equal(strstr(text, line) != NULL, frame);
        assert_true(str_starts(str_of(text), before));
        *ret_masked += frame ? 0 : 1;
    }
    assert_false(in_key);
    BIO_free(b);
}

static void test_secret_shape__a_private_key_in_lines_is_masked(void **state)
{
    (void)state;
    int n;
    EVP_PKEY *rsa = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048);
    EVP_PKEY *ec = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    page_of_key(rsa, "", 0, &n);
    assert_int_equal(n, 26);
    page_of_key(rsa, "2026-11-27 03:00:00 INFO ", 7, &n); /* a page that begins within the key */
    assert_int_equal(n, 20);
    page_of_key(ec, "[stderr] ", 0, &n);
    assert_int_equal(n, 3);
    EVP_PKEY_free(rsa);
    EVP_PKEY_free(ec);
    static const char *const plain[] = {
        "epoch 1 loss 2.31", "",
        "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "-----BEGIN CERTIFICATE-----", "done"};
    bool in_key = false;
    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "%s", plain[i]);
        secret_mask_line(text, &in_key);
        assert_string_equal(text, plain[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_secret_shape__keys_are_masked_and_words_stay),
        cmocka_unit_test(test_secret_shape__what_a_value_looks_like),
        cmocka_unit_test(test_secret_shape__a_private_key_in_lines_is_masked),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("secret shape", tests, NULL, NULL);
}
