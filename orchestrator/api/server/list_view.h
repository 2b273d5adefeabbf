/* `fields` and `order_by` of lists: some members of the rows, and the rows by one of them. A route
 * that names these parameters in routes.def has them; its handler knows nothing of it. */
#pragma once
#include "request.h"

struct route;
/* True when they are members of the rows; else ERR_MALFORMED names those there are. */
bool list_view_check(const struct api_req *r, struct err *err) MUST_CHECK;
/* Change the answer of the handler, if it is one of 200. */
void list_view_apply(struct api_req *r);
/* The schema of a route's answer: `name`, or with fields the name of one whose rows need no member,
 * which list_view_schemas has added to the schemas. */
#define LIST_VIEW_NAME_MAX 64
void list_view_name(const struct route *t, struct str name, char ret[static LIST_VIEW_NAME_MAX]);
void list_view_schemas(json_t *schemas);
