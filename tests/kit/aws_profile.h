/* Profile files of AWS in a folder of their own, and an environment without the developer's. For
 * tests that look for region, endpoints or credentials. */
#pragma once
#include "common/base.h"

extern char credentials_path[96]; /* AWS_SHARED_CREDENTIALS_FILE */
extern char config_path[96];      /* AWS_CONFIG_FILE */
/* Makes the folder, once a program. False: it cannot be made. */
bool aws_profile_begin(void);
/* cmocka's setup of a test: no variable AWS_* but the paths of the two files, neither of which
 * exists; no instance metadata. */
int aws_profile_fresh(void **state);
/* Removes the folder. */
void aws_profile_end(void);
/* Writes a whole file. */
void put_file(const char *path, const char *text);
void put_env(const char *name, const char *value);
