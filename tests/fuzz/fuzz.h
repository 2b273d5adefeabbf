/* The one entry point of every fuzzer: libFuzzer calls it, replay_main.c too. */
#pragma once
#include "common/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
