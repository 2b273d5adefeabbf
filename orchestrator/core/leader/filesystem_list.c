/* See filesystem_list.h. */
#include "filesystem_list.h"
#include "budget_state.h"
#include "parking.h"
#include <stdlib.h>

struct live_filesystem *leader_filesystem(const struct leader_state *s, int64_t id)
{
    for (size_t i = 0; i < s->filesystems_n; i++) {
        if (s->filesystems[i]->row.id == id) {
            return s->filesystems[i];
        }
    }
    return NULL;
}

static struct live_filesystem *add(struct leader_state *s, const struct filesystem_row *row)
{
    struct live_filesystem *f = xcalloc(1, sizeof *f);
    f->row = *row;
    bool ended = filesystem_state_terminal(row->state);
    f->account = (struct ledger_account_of_attempt){
        .reserved_musd = ended ? 0 : row->reserved_musd, .reserved = true, .closed = ended};
    s->filesystems =
        xrealloc(s->filesystems, (s->filesystems_n + 1) * sizeof(struct live_filesystem *));
    s->filesystems[s->filesystems_n++] = f;
    s->act = true;
    return f;
}

bool leader_take_filesystems(struct leader_state *s, const struct filesystem_row *rows, size_t n,
                             int64_t boot_us)
{
    bool asked = false;
    for (size_t i = 0; i < n; i++) {
        struct live_filesystem *f = leader_filesystem(s, rows[i].id);
        if (f == NULL) {
            f = add(s, &rows[i]);
            f->signed_us = MAX(1, boot_us); /* a create of an earlier leader, perhaps */
            f->unsure = f->row.aws_id[0] == '\0';
        } else if (rows[i].delete_asked && !f->row.delete_asked) {
            f->row.delete_asked = asked = s->act = true;
        }
    }
    return asked;
}

struct live_filesystem *leader_apply_filesystem_intent(struct leader_state *s,
                                                       const struct filesystem_row *row)
{
    struct live_filesystem *f = add(s, row);
    budget_state_move_of(s, row->project_id, row->campaign_id, row->stage_id, row->reserved_musd,
                         0);
    return f;
}

void leader_filesystems_forget(struct leader_state *s)
{
    for (size_t i = s->filesystems_n; i-- > 0;) {
        struct live_filesystem *f = s->filesystems[i];
        if (f->io == NULL && filesystem_state_terminal(f->row.state) &&
            !parking_stage_open(s, f->row.campaign_id, f->row.stage_id)) {
            s->filesystems[i] = s->filesystems[--s->filesystems_n];
            free(f);
        }
    }
}
