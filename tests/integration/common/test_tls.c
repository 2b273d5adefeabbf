/* Aim: over TLS too nothing is sent to a server that is not the right one, and `sent` stays exact.
 * Method: a certificate made here, the hostile server behind it, trusted and not. */
#include "common/aws.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "tests/kit/hostile.h"
#include <arpa/inet.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct hostile server;
static char folder[64];
static char *cert_path, *other_path;

/* A certificate for 127.0.0.1 and aws.test, with its key, into one PEM file. */
static void make_certificate(const char *path)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    assert_non_null(key);
    assert_non_null(x);
    assert_int_equal(X509_set_version(x, X509_VERSION_3), 1);
    assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(x), 1), 1);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(x), -3600));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(x), 86400));
    assert_int_equal(X509_set_pubkey(x, key), 1);
    X509_NAME *name = X509_get_subject_name(x);
    assert_int_equal(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                                (const unsigned char *)"127.0.0.1", -1, -1, 0),
                     1);
    assert_int_equal(X509_set_issuer_name(x, name), 1);
    X509_EXTENSION *san =
        X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "IP:127.0.0.1,DNS:aws.test");
    assert_int_equal(X509_add_ext(x, san, -1), 1);
    assert_true(X509_sign(x, key, EVP_sha256()) > 0);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL), 1);
    assert_int_equal(PEM_write_X509(f, x), 1);
    assert_int_equal(fclose(f), 0);
    X509_EXTENSION_free(san);
    X509_free(x);
    EVP_PKEY_free(key);
}

struct got {
    int n;
    bool ok, sent;
    int status;
    enum err_code code;
};

static void on_reply(void *ctx, const struct http_reply *r)
{
    struct got *g = ctx;
    *g = (struct got){g->n + 1, r->ok, r->sent, r->status, r->err.code};
}

/* Ask so many times over one client that trusts the file; NULL: what the profile says. */
static void ask(const char *url, const char *trusted, int times, struct got *g)
{
    struct loop *l = NULL;
    struct http *h = NULL;
    if (trusted != NULL) {
        (void)setenv("AWS_CA_BUNDLE", trusted, 1);
    } else {
        (void)unsetenv("AWS_CA_BUNDLE");
    }
    assert_true(loop_new(&l, NULL));
    assert_true(http_new(l, &h, NULL));
    struct http_request q = {.method = "POST",
                             .url = url,
                             .body = STR("secret"),
                             .reply_max = 1000,
                             .timeout_us = 5 * USEC_PER_SEC};
    *g = (struct got){.n = 0};
    for (int i = 0; i < times; i++) {
        (void)http_send(h, &q, on_reply, g);
        int64_t deadline_us = clock_mono_us() + 10 * USEC_PER_SEC;
        while (g->n <= i) {
            assert_true(clock_mono_us() < deadline_us);
            loop_run_once(l, 100 * USEC_PER_MSEC);
        }
    }
    http_free(h);
    loop_free(l);
}

static void test_tls__a_trusted_server_is_asked(void **state)
{
    (void)state;
    AUTO_FREE char *url = xasprintf("https://127.0.0.1:%d/trusted", server.port);
    struct got g;
    ask(url, cert_path, 3, &g);
    assert_true(g.ok && g.sent);
    assert_int_equal(g.status, 200);
}

static void test_tls__an_untrusted_server_gets_nothing(void **state)
{
    (void)state;
    AUTO_FREE char *url = xasprintf("https://127.0.0.1:%d/untrusted", server.port);
    struct got g;
    ask(url, other_path, 1, &g);
    assert_true(!g.ok && !g.sent);
    assert_int_equal(g.code, ERR_NETWORK);
}

static void test_tls__a_certificate_for_another_name_gets_nothing(void **state)
{
    (void)state;
    AUTO_FREE char *url = xasprintf("https://localhost:%d/misnamed", server.port);
    struct got g;
    ask(url, cert_path, 1, &g);
    assert_true(!g.ok && !g.sent);
}

static void test_tls__plain_http_to_it_is_unknown_at_most(void **state)
{
    (void)state;
    AUTO_FREE char *url = xasprintf("http://127.0.0.1:%d/plain", server.port);
    struct got g;
    ask(url, cert_path, 1, &g);
    assert_true(!g.ok && g.sent); /* our bytes went there, whatever it made of them */
}

static void test_tls__a_peer_that_closes_does_not_end_the_process(void **state)
{
    (void)state;
    struct got g;
    AUTO_FREE char *url = xasprintf("https://127.0.0.1:%d/reset-before", server.port);
    ask(url, cert_path, 1, &g);
    assert_true(!g.ok && g.sent);
    assert_int_equal(raise(SIGPIPE), 0); /* what OpenSSL's write(2) would meet */
}

static void test_tls__a_profile_may_name_who_is_trusted(void **state)
{
    (void)state;
    AUTO_FREE char *url = xasprintf("https://127.0.0.1:%d/profile", server.port);
    AUTO_FREE char *config = xasprintf("%s/config", folder);
    struct got g;
    FILE *f = fopen(config, "we");
    assert_non_null(f);
    (void)fprintf(f, "[default]\nca_bundle = %s\n[profile other]\nca_bundle = %s\n", cert_path,
                  other_path);
    assert_int_equal(fclose(f), 0);
    ask(url, NULL, 1, &g);
    assert_true(!g.ok && !g.sent); /* the system trusts nobody here */
    (void)setenv("AWS_CONFIG_FILE", config, 1);
    ask(url, NULL, 1, &g);
    assert_true(g.ok && g.status == 200);
    (void)setenv("AWS_PROFILE", "other", 1);
    ask(url, NULL, 1, &g);
    assert_true(!g.ok && !g.sent);
    ask(url, cert_path, 1, &g); /* the variable comes first */
    assert_true(g.ok);
    (void)unsetenv("AWS_PROFILE");
    (void)setenv("AWS_CONFIG_FILE", "/dev/null", 1);
    (void)unlink(config);
}

/* A proxy that knows where aws.test is: one tunnel a process. */
static int make_proxy(int *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, n), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

static bool carry(int from, int to)
{
    char bytes[4096];
    ssize_t n = read(from, bytes, sizeof bytes);
    return n > 0 && write(to, bytes, (size_t)n) == n;
}

static void tunnel(int client)
{
    char head[2048] = "";
    size_t n = 0;
    while (n < sizeof head - 1 && strstr(head, "\r\n\r\n") == NULL &&
           read(client, head + n, 1) == 1) {
        n++;
    }
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)server.port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    static const char yes[] = "HTTP/1.1 200 OK\r\n\r\n";
    if (strncmp(head, "CONNECT aws.test:", 17) != 0 || strstr(head, "secret") != NULL ||
        connect(fd, (struct sockaddr *)&at, sizeof at) != 0 ||
        write(client, yes, sizeof yes - 1) != (ssize_t)sizeof yes - 1) {
        _exit(1);
    }
    struct pollfd p[] = {{client, POLLIN, 0}, {fd, POLLIN, 0}};
    while (poll(p, 2, -1) > 0) {
        for (int i = 0; i < 2; i++) {
            if (p[i].revents != 0 && !carry(p[i].fd, p[1 - i].fd)) {
                _exit(0);
            }
        }
    }
    _exit(0);
}

static void test_tls__a_proxy_carries_what_it_cannot_read(void **state)
{
    (void)state;
    int port;
    int fd = make_proxy(&port);
    pid_t pid = fork();
    if (pid == 0) {
        tunnel(accept(fd, NULL, NULL));
    }
    AUTO_FREE char *proxy = xasprintf("http://127.0.0.1:%d", port);
    AUTO_FREE char *url = xasprintf("https://aws.test:%d/proxied", server.port);
    struct got g;
    (void)setenv("https_proxy", proxy, 1);
    (void)setenv("no_proxy", "example.com,aws.test", 1);
    ask(url, cert_path, 1, &g);
    assert_true(!g.ok && !g.sent); /* no proxy, and nobody else knows the name */
    (void)setenv("no_proxy", "example.com", 1);
    ask(url, cert_path, 1, &g);
    assert_true(g.ok && g.status == 200);
    (void)unsetenv("https_proxy");
    (void)unsetenv("no_proxy");
    int status = 1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(close(fd), 0);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    (void)snprintf(folder, sizeof folder, "/tmp/drover-test-tls-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    cert_path = xasprintf("%s/cert.pem", folder);
    other_path = xasprintf("%s/other.pem", folder);
    make_certificate(cert_path);
    make_certificate(other_path);
    (void)setenv("HOSTILE_TLS", cert_path, 1);
    (void)setenv("AWS_CONFIG_FILE", "/dev/null", 1);
    (void)setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null", 1);
    hostile_start(&server);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tls__a_trusted_server_is_asked),
        cmocka_unit_test(test_tls__an_untrusted_server_gets_nothing),
        cmocka_unit_test(test_tls__a_certificate_for_another_name_gets_nothing),
        cmocka_unit_test(test_tls__a_peer_that_closes_does_not_end_the_process),
        cmocka_unit_test(test_tls__a_profile_may_name_who_is_trusted),
        cmocka_unit_test(test_tls__a_proxy_carries_what_it_cannot_read),
        cmocka_unit_test(test_tls__plain_http_to_it_is_unknown_at_most),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hostile_stop(&server);
    (void)unlink(cert_path);
    (void)unlink(other_path);
    (void)rmdir(folder);
    free(cert_path);
    free(other_path);
    return failed;
}
