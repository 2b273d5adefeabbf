/* Answers what API handlers ask of AWS, in every droverd, leader or not. */
#pragma once
#include "shell.h"

/* From now on questions are taken from c->bridge. stop: calls under way end with the AWS client. */
bool bridge_answers_start(struct controller *c, struct err *err) MUST_CHECK;
void bridge_answers_stop(struct controller *c);
