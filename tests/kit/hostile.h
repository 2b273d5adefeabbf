/* Starts tests/kit/programs/hostile_server.py for a test program; run from the root of the tree. */
#pragma once
#include "common/base.h"

struct hostile {
    int pid;
    int stdin_fd; /* closing it ends the server; so does our own end */
    int port;
};
/* Start a helper that prints "port N" on its standard output; aborts when it does not. */
void hostile_start(struct hostile *h);
void hostile_stop(struct hostile *h);
/* "http://127.0.0.1:PORT" and path; caller frees. */
char *hostile_url(const struct hostile *h, const char *path);
/* How often the server received "METHOD /path". */
int hostile_count(const struct hostile *h, const char *method_and_path);
/* A port nobody listens on. */
int hostile_closed_port(void);
