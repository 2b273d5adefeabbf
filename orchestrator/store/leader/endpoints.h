/* Endpoints as rows: tries of stages of kind endpoint. For the leader. */
#pragma once
#include "core/rows.h"
#include "store/pg/connection.h"

/* Those that are open, and all tries of stages that are. Malloc'd. */
bool view_endpoints(struct store *s, struct endpoint_row **ret, size_t *ret_n,
                    struct err *err) MUST_CHECK;
/* The id of the next one; its requests contain it. */
bool store_endpoint_id(struct store *s, int64_t *ret, struct err *err) MUST_CHECK;
struct endpoint_texts { /* of CreateModel, CreateEndpointConfig, CreateEndpoint */
    struct str model, config, endpoint;
};
/* Inserts the intent, with its money reserved. until_us: its delete_after. ret_refused: "" or what
 * said no (campaign, money); nothing is written then. */
bool store_endpoint_intend(struct store *s, const struct endpoint_row *row, usec_t until_us,
                           const struct endpoint_texts *texts, char ret_refused[static 12],
                           struct err *err) MUST_CHECK;
/* Its row as it is now, but for what people write of it. ERR_CONFLICT: it is not in `from`, or is
 * to be deleted while people want a later end than its row knows of. */
bool store_endpoint_move(struct store *s, const struct endpoint_row *row, enum endpoint_state from,
                         usec_t until_us, struct err *err) MUST_CHECK;
/* Answers the wish row->extend_seen_us with the row's ttl and reservation. until_us: its
 * delete_after then. ret_refused: "", or what said no: money, and the wish is answered so; state,
 * and nothing is written. */
bool store_endpoint_extend(struct store *s, const struct endpoint_row *row, usec_t until_us,
                           char ret_refused[static 12], struct err *err) MUST_CHECK;
/* Its end and what it cost. ERR_CONFLICT: it is not being deleted. */
bool store_endpoint_end(struct store *s, const struct endpoint_row *row,
                        const struct endpoint_end *e, struct err *err) MUST_CHECK;
/* The exact bytes of the request of one of its three things, appended to ret. */
bool store_endpoint_request(struct store *s, int64_t id, int thing, struct buf *ret,
                            struct err *err) MUST_CHECK;
/* The job whose model a stage has made; "": it has none. */
bool view_endpoint_model_job(struct store *s, int64_t stage_id, struct job_name *ret,
                             struct err *err) MUST_CHECK;
