/* A month of operation, one day after the other (DAYS=30). Part of deep.h. */
#pragma once
struct world;

/* A month of operation: sets what a seed draws, days > 0. */
void days_draw(struct world *w);
/* The clock of PostgreSQL is the world's from now on; before the cluster is started. */
void days_clock(const char *preload);
void days_clock_now(void);
void days_start(void); /* samples at the end of each day */
void days_judge(void); /* at the end: what must be flat is */
