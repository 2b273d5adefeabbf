/* Memory of libraries; see memory.h. */
#include "common/memory.h"
#include <curl/curl.h>
#include <jansson.h>
#include <openssl/crypto.h>

static void *crypto_malloc(size_t n, const char *file, int line)
{
    (void)file;
    (void)line;
    return n == 0 ? NULL : xmalloc(n);
}

static void *crypto_realloc(void *p, size_t n, const char *file, int line)
{
    if (n == 0) {
        free(p);
        return NULL;
    }
    (void)file;
    (void)line;
    return xrealloc(p, n);
}

static void crypto_free(void *p, const char *file, int line)
{
    (void)file;
    (void)line;
    free(p);
}

void memory_of_libraries(void)
{
    json_set_alloc_funcs(xmalloc, free);
    /* Before curl, which begins with OpenSSL's own beginning. */
    int ok = CRYPTO_set_mem_functions(crypto_malloc, crypto_realloc, crypto_free);
    CURLcode rc =
        curl_global_init_mem(CURL_GLOBAL_DEFAULT, xmalloc, free, xrealloc, xstrdup, xcalloc);
    ASSERT(ok == 1 && rc == CURLE_OK);
}
