/* Aim: a thread that asks for it has one OpenSSL context for all its connections, no other has, and
 * libcurl takes it. Method: contexts made by hand and by curl, pointers compared; the server never
 * says a word, curl has made its context by then. */
#include "common/base.h"
#include "download/fetch/tls_context.h"
#include <arpa/inet.h>
#include <curl/curl.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static void *one_context(void *ret)
{
    SSL_CTX **at = ret;
    *at = SSL_CTX_new(TLS_client_method());
    return NULL;
}

static void test_worker_tls_context__shared_in_its_thread_only(void **state UNUSED)
{
    SSL_CTX *other = NULL;
    pthread_t thread;
    tls_context_begin();
    SSL_CTX *a = SSL_CTX_new(TLS_client_method());
    SSL_CTX *b = SSL_CTX_new(TLS_client_method());
    SSL_CTX *server = SSL_CTX_new(TLS_server_method());
    assert_int_equal(pthread_create(&thread, NULL, one_context, &other), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_non_null(a);
    assert_ptr_equal(a, b);
    assert_ptr_not_equal(a, server);
    assert_ptr_not_equal(a, other);
    tls_context_end();
    SSL_CTX *after = SSL_CTX_new(TLS_client_method());
    assert_ptr_not_equal(a, after);
    SSL_CTX_free(a);
    SSL_CTX_free(b);
    SSL_CTX_free(server);
    SSL_CTX_free(other);
    SSL_CTX_free(after);
}

static CURLcode on_context(CURL *easy UNUSED, void *context, void *ret)
{
    SSL_CTX **at = ret;
    *at = context;
    assert_int_equal(SSL_CTX_up_ref(context), 1);
    return CURLE_ABORTED_BY_CALLBACK; /* it has been made, and more is not asked */
}

/* What libcurl makes for a connection to `url`, which says nothing. */
static SSL_CTX *curls_context(const char *url)
{
    SSL_CTX *ret = NULL;
    CURL *e = curl_easy_init();
    assert_non_null(e);
    (void)curl_easy_setopt(e, CURLOPT_URL, url);
    (void)curl_easy_setopt(e, CURLOPT_PROXY, "");
    (void)curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, 60000L);
    (void)curl_easy_setopt(e, CURLOPT_CAPATH, NULL);
    (void)curl_easy_setopt(e, CURLOPT_SSL_CTX_FUNCTION, on_context);
    (void)curl_easy_setopt(e, CURLOPT_SSL_CTX_DATA, &ret);
    assert_int_equal(curl_easy_perform(e), CURLE_ABORTED_BY_CALLBACK);
    curl_easy_cleanup(e);
    return ret;
}

static void test_worker_tls_context__curl_takes_it(void **state UNUSED)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char url[64];
    assert_int_equal(bind(fd, (struct sockaddr *)(void *)&a, n), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)(void *)&a, &n), 0);
    (void)snprintf(url, sizeof url, "https://127.0.0.1:%d/", ntohs(a.sin_port));
    tls_context_begin();
    SSL_CTX *one = curls_context(url);
    SSL_CTX *two = curls_context(url);
    assert_non_null(one);
    assert_ptr_equal(one, two);
    tls_context_end();
    SSL_CTX *three = curls_context(url);
    assert_non_null(three);
    assert_ptr_not_equal(one, three);
    SSL_CTX_free(one);
    SSL_CTX_free(two);
    SSL_CTX_free(three);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worker_tls_context__shared_in_its_thread_only),
        cmocka_unit_test(test_worker_tls_context__curl_takes_it),
    };
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
