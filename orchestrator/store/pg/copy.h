/* The data of COPY ... FROM STDIN, after store_plain has run that statement. The connection accepts
 * nothing else until the copy ends or is cancelled. Errors: those of query.h; a call
 * waits no longer than a statement does. */
#pragma once
#include "connection.h"

/* Send n bytes, borrowed for the call. The caller writes the format's header and trailer. */
bool store_copy_put(struct store *s, const void *p, size_t n, struct err *err) MUST_CHECK;
/* End the copy. False when the server refused a row. */
bool store_copy_end(struct store *s, struct err *err) MUST_CHECK;
/* Cancel the copy: the server fails the statement and thus the transaction. */
void store_copy_cancel(struct store *s);
