/* Describes of an endpoint or a file system that AWS refuses or does not answer. After some in a
 * row people are told, and one that is to end is deleted without having been seen. Pure. */
#pragma once
#include "common/aws_outcome.h"
#include "leader_state.h"

#define DELETE_REFUSED "AWS refuses to delete it: "

/* Notes how one Describe was answered; f: why it was not, NULL: it was. After some failures in a
 * row the reason says so, and an answer takes that back. True: people are to be alerted of the
 * reason, once for each such row of failures. */
bool resource_sight_note(struct resource_sight *s, const struct aws_failure *f,
                         char reason[static 512]);
/* Some looks in a row were in vain, since the last deletion that was sent without one. */
bool resource_sight_lost(const struct resource_sight *s);
/* A deletion was answered. */
void resource_sight_tried(struct resource_sight *s);
/* What was noted was not written: it is told once more. */
void resource_sight_not_written(struct resource_sight *s);
/* The mark and the failure behind the rest of the reason, instead of what the mark said before. The
 * rest is cut so that what another mark says stays, and the same said again changes nothing.
 * NULL: it says nothing any more. */
void resource_sight_remark(char reason[static 512], const char *mark, const struct aws_failure *f);
