/* Limits of projects and of the installation. */
#pragma once
#include "core/model.h"
#include "store/pg/connection.h"

struct apidb_limits_patch {
    int64_t weight; /* of a project; -1 as it is */
    bool set_parts;
    int64_t parts; /* -1: no limit */
    bool set_budget;
    musd_t budget_musd; /* -1: none */
};
bool apidb_projects(struct store *s, struct buf *ret_json, struct err *err) MUST_CHECK;
bool apidb_project_patch(struct store *s, const char *name, const struct apidb_limits_patch *l,
                         struct err *err) MUST_CHECK;
bool apidb_limits(struct store *s, struct buf *ret_json, struct err *err) MUST_CHECK;
bool apidb_limits_patch(struct store *s, const struct apidb_limits_patch *l,
                        struct err *err) MUST_CHECK;
