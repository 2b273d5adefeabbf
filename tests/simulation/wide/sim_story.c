/* The story of a seed in words, recorded only when asked for. At the end it prints the lines
 * about the broken promise. */
#include "sim_world.h"
#include <stdarg.h>
#include <stdio.h>

const char *task_name(const struct world *w, int task, char out[static 48])
{
    if (task < 0 || (size_t)task >= w->tasks_n) {
        (void)snprintf(out, 48, "-");
        return out;
    }
    const struct db_task *rows = (const struct db_task *)(const void *)w->db.t[T_TASK].rows;
    const struct db_stage *stages = (const struct db_stage *)(const void *)w->db.t[T_STAGE].rows;
    int stage = rows[task].stage;
    (void)snprintf(out, 48, "campaign %d %s part %d", stages[stage].campaign, w->stage[stage].name,
                   task - stages[stage].task0);
    return out;
}

void tell(struct world *w, int task, const char *fmt, ...)
{
    if (!w->cfg.tell) {
        return;
    }
    if (w->story == NULL) {
        w->story = xcalloc(STORY_LINES, sizeof *w->story);
    }
    struct told *t = &w->story[w->story_n++ % STORY_LINES];
    t->at_us = w->now_us;
    t->task = task;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(t->text, sizeof t->text, fmt, args);
    va_end(args);
}

/* Prints the last lines about the part of the broken promise, and about no part. */
void story_print(const struct world *w, int max)
{
    size_t kept = MIN(w->story_n, (size_t)STORY_LINES);
    size_t *lines = xcalloc(kept + 1, sizeof *lines);
    size_t n = 0;
    char name[48];
    for (size_t i = 0; i < kept; i++) {
        size_t at = (w->story_n - kept + i) % STORY_LINES;
        int task = w->story[at].task;
        if (w->judge.about < 0 || task < 0 || task == w->judge.about) {
            lines[n++] = at;
        }
    }
    for (size_t i = n > (size_t)max ? n - (size_t)max : 0; i < n; i++) {
        const struct told *t = &w->story[lines[i]];
        int64_t s = t->at_us / SEC;
        printf("#   %lld:%02d:%02d.%03d  %s%s%s\n", (long long)(s / 3600), (int)(s / 60 % 60),
               (int)(s % 60), (int)(t->at_us / 1000 % 1000),
               t->task >= 0 ? task_name(w, t->task, name) : "", t->task >= 0 ? ": " : "", t->text);
    }
    free(lines);
}
