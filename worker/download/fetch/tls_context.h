/* One OpenSSL context for all TLS connections of a thread. libcurl makes a new one for each
 * connection, which is a sixth of the connection's cost: OpenSSL 3 looks up all its ciphers, groups
 * and signatures. Only for threads whose connections all have the same settings. */
#pragma once

/* From now on this thread's connections share one. */
void tls_context_begin(void);
/* No more; each connection that is still open keeps its own reference. */
void tls_context_end(void);
