/* Aim: no library's allocation fails quietly. Method: each is asked whose memory it uses; curl,
 * which does not tell, makes a list in a child without memory: it ends as xmalloc ends it. */
#include "common/memory.h"
#include "tests/unit/unit.h"
#include <curl/curl.h>
#include <jansson.h>
#include <openssl/crypto.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUT_OF_MEMORY 71 /* xmalloc's exit status */

static void test_memory__jansson_and_openssl_use_ours(void **state)
{
    (void)state;
    json_malloc_t of_json;
    json_free_t free_json;
    CRYPTO_malloc_fn before, of_crypto;
    CRYPTO_realloc_fn realloc_crypto;
    CRYPTO_free_fn free_crypto;
    CRYPTO_get_mem_functions(&before, &realloc_crypto, &free_crypto);
    memory_of_libraries();
    json_get_alloc_funcs(&of_json, &free_json);
    CRYPTO_get_mem_functions(&of_crypto, &realloc_crypto, &free_crypto);
    assert_true(of_json == xmalloc && free_json == free);
    assert_true(of_crypto != before);
}

static void test_memory__curl_ends_the_process(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    return; /* its own memory would be refused first */
#endif
    if (getenv("UNDER_VALGRIND") != NULL) {
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        const struct rlimit none = {0, 0};
        struct curl_slist *l = NULL;
        (void)setrlimit(RLIMIT_AS, &none);
        (void)close(STDERR_FILENO);
        do { /* until what malloc has already is used up */
            l = curl_slist_append(l, "name: value");
        } while (l != NULL);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), OUT_OF_MEMORY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory__jansson_and_openssl_use_ours),
        cmocka_unit_test(test_memory__curl_ends_the_process),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
