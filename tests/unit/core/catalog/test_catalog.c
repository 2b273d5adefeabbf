/* Aim: image URIs are those of the SageMaker Python SDK, instance types are known or guessed.
 * Method: tables of URIs as the SDK prints them, of what does not exist, and of mistyped types. */
#include "common/cleanup.h"
#include "core/catalog/catalog.h"
#include "core/catalog/image_ref.h"
#include <setjmp.h>
#include <stdarg.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <string.h>

#define PT(v) .framework = "pytorch", .version = v
#define HF(v) .framework = "huggingface", .version = v

static const struct {
    struct image_wish wish;
    const char *region, *uri;
} uris[] = {
    {{PT("1.8"), .python = "py36"},
     "us-east-1",
     "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:1.8-cpu-py36"},
    {{PT("1.8.1"), .python = "py3", .gpu = true},
     "eu-west-1",
     "763104351884.dkr.ecr.eu-west-1.amazonaws.com/pytorch-training:1.8.1-gpu-py3"},
    {{PT("1.9"), .gpu = true},
     "us-west-2",
     "763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:1.9-gpu-py38"},
    {{PT("1.11"), .gpu = true},
     "us-east-1",
     "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:1.11-gpu-py38"},
    {{PT("1.12.0"), .gpu = true},
     "ap-northeast-3",
     "364406365360.dkr.ecr.ap-northeast-3.amazonaws.com/pytorch-training:1.12.0-gpu-py38"},
    {{PT("1.6.0"), .python = "py36", .gpu = true, .smdistributed = true},
     "us-east-1",
     "763104351884.dkr.ecr.us-east-1.amazonaws.com/"
     "pytorch-training:1.6.0-gpu-py36-cu110-ubuntu18.04"},
    {{PT("1.6"), .gpu = true},
     "us-east-1",
     "763104351884.dkr.ecr.us-east-1.amazonaws.com/"
     "pytorch-training:1.6-gpu-py36-cu110-ubuntu18.04-v3"},
    {{PT("2.8.0"), .gpu = true},
     "cn-north-1",
     "727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn/pytorch-training:2.8.0-gpu-py312"},
    {{PT("2.6.0"), .inference = true},
     "us-gov-west-1",
     "442386744353.dkr.ecr.us-gov-west-1.amazonaws.com/pytorch-inference:2.6.0-cpu-py312"},
    {{PT("1.13.1"), .gpu = true, .compiler = true},
     "us-east-1",
     "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-trcomp-training:1.13.1-gpu-py39"},
    {{HF("4.21"), .pytorch = "1.11", .gpu = true, .compiler = true},
     "us-east-1",
     "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-trcomp-training:"
     "1.11-transformers4.21-gpu-py38-cu113-ubuntu20.04"},
    {{HF("4.56.2"), .gpu = true},
     "us-east-1",
     "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-training:"
     "2.8.0-transformers4.56.2-gpu-py312-cu129-ubuntu22.04"},
    {{HF("4.12.3"), .pytorch = "1.9.1", .python = "py38", .gpu = true, .inference = true},
     "us-east-1",
     "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-inference:"
     "1.9.1-transformers4.12.3-gpu-py38-cu111-ubuntu20.04"},
    {{HF("4.12.3"), .inference = true},
     "us-iso-east-1",
     "886529160074.dkr.ecr.us-iso-east-1.c2s.ic.gov/huggingface-pytorch-inference:"
     "1.9.1-transformers4.12.3-cpu-py38-ubuntu20.04"},
    {{HF("4.37"), .pytorch = "2.1", .inference = true},
     "us-east-1",
     "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-inference:"
     "2.1-transformers4.37-cpu-py310-ubuntu22.04"},
    {{PT("1.12"), .gpu = true, .inference = true},
     "us-east-1",
     "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-inference:1.12-gpu-py38"},
};

static const struct {
    struct image_wish wish;
    const char *region, *word;
} refused[] = {
    {{PT("9.9")}, "us-east-1", "9.9"},
    {{PT("1")}, "us-east-1", "pytorch 1 "},
    {{PT("1.1")}, "us-east-1", "1.1"},
    {{PT("1.12"), .python = "py27"}, "us-east-1", "py27"},
    {{PT("1.12")}, "eu-moon-1", "eu-moon-1"},
    {{PT("2.0.0"), .gpu = true, .compiler = true}, "us-east-1", "Compiler"},
    {{PT("1.13.1"), .compiler = true}, "us-east-1", "GPUs"},
    {{HF("4.21"), .gpu = true, .compiler = true}, "cn-north-1", "cn-north-1"},
    {{HF("4.21"), .pytorch = "1.12", .gpu = true}, "us-east-1", "1.11.0"},
    {{HF("4.12.3"), .gpu = true, .compiler = true}, "us-east-1", "Compiler"},
    {{HF("4.21")}, "us-east-1", "GPUs"},
    {{HF("4.99")}, "us-east-1", "4.99"},
    {{HF("4.21"), .gpu = true, .inference = true}, "us-east-1", "serves"},
    {{HF("4.37"), .gpu = true}, "us-east-1", "4.37"},
    {{PT("2.8.0"), .gpu = true, .inference = true}, "us-east-1", "serves"},
};

static void test_catalog__uris_are_those_of_the_sdk(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(uris); i++) {
        AUTO_BUF struct buf got = BUF_INIT(512);
        struct err err = ERR_INIT;
        assert_true(catalog_image_uri(&uris[i].wish, uris[i].region, &got, &err));
        assert_string_equal(buf_cstr(&got), uris[i].uri);
    }
}

static void test_catalog__what_does_not_exist_is_said(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        AUTO_BUF struct buf got = BUF_INIT(512);
        struct err err = ERR_INIT;
        assert_false(catalog_image_uri(&refused[i].wish, refused[i].region, &got, &err));
        assert_int_equal(err.code, ERR_INVALID);
        if (strstr(err.message, refused[i].word) == NULL) {
            fail_msg("no '%s' in: %s", refused[i].word, err.message);
        }
    }
}

static void test_catalog__types_are_known_or_guessed(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"ml.p4dn.24xlarge", "ml.p4d.24xlarge"}, {"ml.c5.18xlage", "ml.c5.18xlarge"},
        {"ml.g5.2large", "ml.g5.2xlarge"},       {"ml.p3dn.24xlarg", "ml.p3dn.24xlarge"},
        {"ml.m5.xlarg", "ml.m5.xlarge"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *guess = catalog_type_guess(rows[i][0]);
        assert_non_null(guess);
        assert_string_equal(guess, rows[i][1]);
        assert_int_equal(catalog_gpus(rows[i][0]), -1);
        assert_int_equal(catalog_disk_gb(rows[i][0]), 0);
    }
    assert_null(catalog_type_guess("ml.quantum.9zlarge"));
    assert_int_equal(catalog_gpus("ml.p3.16xlarge"), 8);
    assert_int_equal(catalog_gpus("ml.g4dn.12xlarge"), 4);
    assert_int_equal(catalog_gpus("ml.c5.18xlarge"), 0);
    assert_int_equal(catalog_disk_gb("ml.p4d.24xlarge"), 8000);
    assert_int_equal(catalog_disk_gb("ml.p3.16xlarge"), 0);
}

static void test_catalog__types_that_serve_models(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        bool hosts, trains, disks, frameworks;
    } rows[] = {
        {"ml.g4dn.xlarge", true, true, true, true},
        {"ml.m5.large", true, true, false, true},
        {"ml.t2.medium", true, false, false, true},
        {"ml.m5d.large", true, false, true, true},
        {"ml.c6g.large", true, false, false, false},
        {"ml.inf1.xlarge", true, false, false, false},
        {"ml.c6gd.tiny", false, false, false, true},
        {"ml.c6.large", false, false, false, true},
        {"ml.inf1", false, false, false, true},
        {"ml.trn1.2xlarge", true, true, true, false},
        {"ml.inf9.xlarge", false, false, false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *type = rows[i].type;
        if (catalog_family_hosts(type) != rows[i].hosts ||
            catalog_family_known(type) != rows[i].trains ||
            catalog_has_disks(type) != rows[i].disks ||
            catalog_runs_frameworks(type) != rows[i].frameworks) {
            fail_msg("%s", type);
        }
    }
    assert_int_equal(catalog_family_gpus("ml.p3.16xlarge"), 8);
    assert_true(catalog_family_gpus("ml.p3.32xlarge") > 0); /* as others of its family have */
    assert_int_equal(catalog_family_gpus("ml.c5d.large"), 0);
    assert_int_equal(catalog_family_gpus("ml.p9.48xlarge"), -1);
}

static void test_catalog__versions_are_listed(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT(1024);
    catalog_versions("pytorch", false, &b);
    assert_non_null(strstr(buf_cstr(&b), "1.12.1, 1.13.1"));
    assert_non_null(strstr(buf_cstr(&b), "2.8.0"));
    buf_reset(&b);
    catalog_versions("huggingface", false, &b);
    assert_non_null(strstr(buf_cstr(&b), "4.21.1"));
    buf_reset(&b);
    catalog_versions("pytorch", true, &b);
    assert_true(str_ends(buf_str(&b), ", 2.6.0") && strncmp(buf_cstr(&b), "1.3.1, ", 7) == 0);
    buf_reset(&b);
    catalog_versions("huggingface", true, &b);
    assert_true(str_starts(buf_str(&b), "4.6.1, 4.10.2") && strstr(buf_cstr(&b), "4.21") == NULL);
}

static void test_image_ref__addresses_of_ecr(void **state)
{
    (void)state;
    static const struct {
        const char *uri, *region, *repository, *tag; /* region NULL: not of ECR */
        bool pinned;
    } rows[] = {
        {"111122223333.dkr.ecr.us-east-1.amazonaws.com/train:1", "us-east-1", "train", "1", false},
        {"111122223333.dkr.ecr.us-east-1.amazonaws.com/a/b/c", "us-east-1", "a/b/c", "latest",
         false},
        {"111122223333.dkr.ecr-fips.us-gov-west-1.amazonaws.com/t:x", "us-gov-west-1", "t", "x",
         false},
        {"111122223333.dkr.ecr.cn-north-1.amazonaws.com.cn/t:x", "cn-north-1", "t", "x", false},
        {"111122223333.dkr.ecr.us-east-1.amazonaws.com/t:x@sha256:12", "us-east-1", "t", "x", true},
        {"111122223333.dkr.ecr.us-east-1.amazonaws.com/t@sha256:12", "us-east-1", "t", "latest",
         true},
        {"drover/worker:test", NULL, NULL, NULL, false},
        {"localhost:5000/train:1", NULL, NULL, NULL, false},
        {"11112222333.dkr.ecr.us-east-1.amazonaws.com/train:1", NULL, NULL, NULL, false},
        {"1111222233334.dkr.ecr.us-east-1.amazonaws.com/train:1", NULL, NULL, NULL, false},
        {"111122223333.dkr.ecr.us-east-1/train:1", NULL, NULL, NULL, false},
        {"111122223333.dkr.ecr.us-east-1.amazonaws.com", NULL, NULL, NULL, false},
        {"111122223333.dkr.ecr.us-east-1.amazonaws.com/", NULL, NULL, NULL, false},
        {"111122223333.dkr.ecr.us-east-1.amazonaws.com/t:", NULL, NULL, NULL, false},
        {"", NULL, NULL, NULL, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct image_ref r;
        assert_int_equal(image_ref_parse(rows[i].uri, &r), rows[i].region != NULL);
        if (rows[i].region != NULL) {
            assert_string_equal(r.account, "111122223333");
            assert_string_equal(r.region, rows[i].region);
            assert_string_equal(r.repository, rows[i].repository);
            assert_string_equal(r.tag, rows[i].tag);
            assert_int_equal(r.pinned, rows[i].pinned);
        }
    }
    assert_int_equal(image_ref_name_n("localhost:5000/t:1@sha256:12"), strlen("localhost:5000/t"));
    assert_int_equal(image_ref_name_n("localhost:5000/t"), strlen("localhost:5000/t"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_catalog__uris_are_those_of_the_sdk),
        cmocka_unit_test(test_catalog__what_does_not_exist_is_said),
        cmocka_unit_test(test_catalog__types_are_known_or_guessed),
        cmocka_unit_test(test_catalog__types_that_serve_models),
        cmocka_unit_test(test_catalog__versions_are_listed),
        cmocka_unit_test(test_image_ref__addresses_of_ecr),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("catalog", tests, NULL, NULL);
}
