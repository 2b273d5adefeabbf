/* Aim: an image's digest is what ECR told, none only when ECR says so, and never read from a broken
 * answer; the caller's identity is that of STS. Method: build/bin/drover-local. */
#include "aws/identity.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "orchestrator/aws/images.c" /* NOLINT(bugprone-suspicious-include): its statics */
#include "tests/kit/local.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define ACCOUNT "111122223333"

static struct local local;
static struct loop *l;
static struct aws_client *c;

struct got {
    int n;
    bool failed, none;
    struct aws_failure failure;
    char digest[IMAGE_DIGEST_N];
    struct aws_identity who;
};

static void keep(struct got *g, const struct aws_failure *f)
{
    g->n++;
    g->failed = f != NULL;
    if (f != NULL) {
        g->failure = *f;
    }
}

static void on_digest(void *ctx, const char *digest, const struct aws_failure *f)
{
    struct got *g = ctx;
    keep(g, f);
    g->none = digest == NULL && f == NULL;
    (void)snprintf(g->digest, sizeof g->digest, "%s", digest != NULL ? digest : "");
}

static void on_identity(void *ctx, const struct aws_identity *who, const struct aws_failure *f)
{
    struct got *g = ctx;
    keep(g, f);
    if (who != NULL) {
        g->who = *who;
    }
}

static void run_until_answered(const struct got *g)
{
    int64_t deadline_us = clock_mono_us() + 60 * USEC_PER_SEC;
    while (g->n == 0) {
        assert_true(clock_mono_us() < deadline_us);
        loop_run_once(l, 200 * USEC_PER_MSEC);
    }
    assert_int_equal(g->n, 1);
}

static struct got ask(const char *repository, const char *tag)
{
    struct got g = {.n = 0};
    image_digest(c, ACCOUNT, repository, tag, on_digest, &g);
    run_until_answered(&g);
    return g;
}

static void test_image__a_tag_has_a_digest(void **state)
{
    (void)state;
    struct got one = ask("team/train", "1"), again = ask("team/train", "1");
    struct got two = ask("team/train", "2"), latest = ask("bare", "latest");
    assert_false(one.failed || two.failed || latest.failed);
    assert_int_equal(strlen(one.digest), IMAGE_DIGEST_N - 1);
    assert_string_equal(one.digest, again.digest);
    assert_string_not_equal(one.digest, two.digest);
    assert_int_equal(strncmp(latest.digest, "sha256:", 7), 0);
}

static void test_image__none_is_an_answer(void **state)
{
    (void)state;
    struct got tag = ask("team/train", "3"), repository = ask("team/none", "1");
    assert_true(tag.none && repository.none);
}

static void test_image__failures_are_none_of_these(void **state)
{
    (void)state;
    struct got throttled = ask("team/throttled", "1"), broken = ask("team/broken", "1");
    assert_true(throttled.failed && throttled.failure.outcome == AWS_THROTTLED);
    assert_true(broken.failed && broken.failure.outcome != AWS_OK);
    struct got wrong = ask("x", "1"); /* a name of one letter */
    assert_true(wrong.failed && wrong.failure.outcome == AWS_REFUSED);
}

static void test_image__an_answer_is_read_whole_or_not(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}",
        "{\"images\":[]}",
        "{\"images\":[{\"imageId\":{}}]}",
        "{\"images\":[{\"imageId\":{\"imageDigest\":\"sha256:12\"}}]}",
        "{\"images\":[{\"imageId\":{\"imageDigest\":7}}]}",
        "{\"failures\":[{\"failureCode\":\"KmsError\",\"failureReason\":\"no key\"}]}"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct got g = {.n = 0};
        AUTO_JSON json_t *o = NULL;
        struct image_call *call = xcalloc(1, sizeof *call);
        *call = (struct image_call){on_digest, &g};
        assert_true(json_parse(str_of(texts[i]), 4096, &o, NULL));
        on_images(call, o, NULL);
        assert_true(g.n == 1 && g.failed && g.digest[0] == '\0');
    }
}

static void test_identity__is_the_callers(void **state)
{
    (void)state;
    struct got g = {.n = 0};
    identity_get(c, on_identity, &g);
    run_until_answered(&g);
    assert_false(g.failed);
    assert_string_equal(g.who.account, ACCOUNT);
    assert_string_equal(g.who.arn, "arn:aws:iam::" ACCOUNT ":user/drover");
}

static const char config[] =
    "{\"account\":\"" ACCOUNT "\",\"images\":{"
    "\"" ACCOUNT ".dkr.ecr.us-east-1.amazonaws.com/team/train:1\":[\"/bin/true\"],"
    "\"" ACCOUNT ".dkr.ecr.us-east-1.amazonaws.com/team/train:2\":[\"/bin/true\"],"
    "\"" ACCOUNT ".dkr.ecr.us-east-1.amazonaws.com/bare\":[\"/bin/true\"]},\"faults\":["
    "{\"kind\":\"throttle\",\"operation\":\"BatchGetImage\",\"name_contains\":\"throttled\"},"
    "{\"kind\":\"html_error\",\"operation\":\"BatchGetImage\",\"name_contains\":\"broken\"}]}";

static int setup(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    local_start(&local, config);
    const struct aws_config cfg = {.user_agent = "test/1"};
    ASSERT(loop_new(&l, &err) && aws_client_new(l, &cfg, &c, &err));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    aws_client_free(c);
    loop_free(l);
    local_stop(&local);
    return 0;
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_image__a_tag_has_a_digest),
        cmocka_unit_test(test_image__none_is_an_answer),
        cmocka_unit_test(test_image__failures_are_none_of_these),
        cmocka_unit_test(test_image__an_answer_is_read_whole_or_not),
        cmocka_unit_test(test_identity__is_the_callers),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
