/* Limits of projects and of the installation. */
#pragma once
#include "core/model.h"
#include "store/pg/connection.h"

struct apidb_limits_patch {
    int64_t weight; /* of a project; -1: unchanged */
    bool set_parts;
    int64_t parts; /* -1: no limit */
    bool set_budget;
    musd_t budget_musd; /* -1: no budget */
};
/* Append a JSON array of the projects with their limits and money. */
bool apidb_projects(struct store *s, const char *projects, struct buf *ret_json,
                    struct err *err) MUST_CHECK;
/* Change a project; ERR_NOT_FOUND. */
bool apidb_project_patch(struct store *s, const char *name, const struct apidb_limits_patch *l,
                         struct err *err) MUST_CHECK;
/* Append the limits of the installation as JSON. */
bool apidb_limits(struct store *s, struct buf *ret_json, struct err *err) MUST_CHECK;
/* Change the limits of the installation. */
bool apidb_limits_patch(struct store *s, const struct apidb_limits_patch *l,
                        struct err *err) MUST_CHECK;
/* Until the transaction ends nobody else changes limits, or those of a project. */
bool apidb_limits_lock(struct store *s, struct err *err) MUST_CHECK;
/* A text that changes exactly when a limit does, not with what is spent. */
bool apidb_limits_tag(struct store *s, struct buf *ret_text, struct err *err) MUST_CHECK;
bool apidb_projects_tag(struct store *s, struct buf *ret_text, struct err *err) MUST_CHECK;
