/* Figures that nobody wrote, secrets, rates and what AWS has shown. Part of deep.h. */
#pragma once
struct buf;
struct proc;

void figures_start(void);
void figures_calm(void);
void figures_end(void);
bool figures_keep(int64_t campaign_id); /* a row of it, or that all share; 0: of anyone */
bool figures_kept(int64_t campaign_id); /* or until lately */
bool figures_spoil(int64_t campaign_id);
bool figures_of_lease(void);
void figures_archive(void); /* of what is being archived: maybe one is spoiled */

/* Of a stage, in its campaign's file. vars: its parts may bring some. */
void secrets_job(struct buf *b, bool vars);
const char *secrets_vars_word(void);               /* behind `from: api` */
void secrets_vars(struct buf *b);                  /* what a part brings; nothing */
void secrets_in_reason(char *reason, size_t size); /* of a job that failed, as AWS' side tells it */
void secrets_start(void);
void secrets_judge(void);
void secrets_end(void);

void rates_draw(void);
void rates_asked(const struct proc *p); /* it asks for a Create: I14 */
void shown_start(void);
void judge_shown(bool ended); /* I15: of live attempts, or of ended ones, too */
