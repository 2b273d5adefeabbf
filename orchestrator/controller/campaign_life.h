/* Writes what core/leader/campaign_life.h decides for every campaign. */
#pragma once
#include "common/base.h"

struct controller;

/* Ended campaigns leave the view. False: leadership lost. */
bool campaign_life_tick(struct controller *c);
