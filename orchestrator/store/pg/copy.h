/* The bytes of COPY ... FROM STDIN, once store_plain has run that statement. Until the copy ends or
 * is cancelled the connection takes nothing else. Errors: those of query.h. */
#pragma once
#include "connection.h"

/* Send n bytes, lent for the call. The caller makes the format's header and trailer. */
bool store_copy_put(struct store *s, const void *p, size_t n, struct err *err) MUST_CHECK;
/* End the copy; false when the server refused any of its rows. */
bool store_copy_end(struct store *s, struct err *err) MUST_CHECK;
/* Give the copy up: the server fails the statement, and with it the transaction. */
void store_copy_cancel(struct store *s);
