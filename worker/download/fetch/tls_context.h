/* One OpenSSL context for all TLS connections of a thread. libcurl makes a new one for each
 * connection, which is a sixth of the connection's cost: OpenSSL 3 looks up all its ciphers, groups
 * and signatures. Only for threads whose connections all have the same settings. */
#pragma once

/* Share one context among this thread's connections from now on. */
void tls_context_begin(void);
/* Stop sharing. Open connections keep their own reference. */
void tls_context_end(void);
