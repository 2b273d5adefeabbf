/* Attributes that free a local variable at the end of its scope. */
#pragma once
#include "base.h"
#include "buf.h"
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

static inline void free_p(void *p)
{
    void *v;
    memcpy(&v, p, sizeof v);
    free(v);
}
/* NOLINTNEXTLINE(readability-non-const-parameter): the cleanup attribute asks for int * */
static inline void fd_closep(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
    }
}
/* TAKE for a descriptor: the variable becomes -1, ownership moves to the receiver. */
static inline int fd_take(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}
static inline void file_closep(FILE **f)
{
    if (*f != NULL) {
        (void)fclose(*f);
    }
}
#define AUTO_FREE CLEANUP(free_p)
#define AUTO_FD   CLEANUP(fd_closep)
#define AUTO_FILE CLEANUP(file_closep)
#define AUTO_JSON CLEANUP(json_decrefp)
#define AUTO_BUF  CLEANUP(buf_done)
