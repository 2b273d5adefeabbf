/* libcurl calls SSL_CTX_new by name, and the dynamic linker prefers the program's function of that
 * name. libcurl sets the same options each time; they apply to later connections. Where the name is
 * bound otherwise, each connection has its own context as usual. */
#include "tls_context.h"
#include "common/base.h"
#include <openssl/ssl.h>

static _Thread_local bool shares;
static _Thread_local SSL_CTX *shared;

void tls_context_begin(void)
{
    shares = true;
}

void tls_context_end(void)
{
    shares = false;
    SSL_CTX_free(shared);
    shared = NULL;
}

SSL_CTX *SSL_CTX_new(const SSL_METHOD *method)
{
    if (!shares || (shared != NULL && SSL_CTX_get_ssl_method(shared) != method)) {
        return SSL_CTX_new_ex(NULL, NULL, method);
    }
    if (shared == NULL) {
        shared = SSL_CTX_new_ex(NULL, NULL, method);
    }
    if (shared != NULL && SSL_CTX_up_ref(shared) != 1) {
        return NULL;
    }
    return shared;
}
