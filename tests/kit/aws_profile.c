/* See aws_profile.h. */
#include "aws_profile.h"
#include "common/cleanup.h"
#include "common/str.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

char credentials_path[96];
char config_path[96];
static char folder[64];

bool aws_profile_begin(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/drover-test-profile-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return false;
    }
    (void)snprintf(credentials_path, sizeof credentials_path, "%s/credentials", folder);
    (void)snprintf(config_path, sizeof config_path, "%s/config", folder);
    return true;
}

int aws_profile_fresh(void **state)
{
    (void)state;
    for (char **e = environ; *e != NULL;) {
        struct str rest = str_of(*e);
        AUTO_FREE char *name = str_dup(str_split(&rest, '='));
        if (str_starts(str_of(name), "AWS_")) {
            unsetenv(name);
        } else {
            e++;
        }
    }
    put_env("AWS_SHARED_CREDENTIALS_FILE", credentials_path);
    put_env("AWS_CONFIG_FILE", config_path);
    put_env("AWS_EC2_METADATA_DISABLED", "true");
    (void)unlink(credentials_path);
    (void)unlink(config_path);
    return 0;
}

void aws_profile_end(void)
{
    (void)unlink(credentials_path);
    (void)unlink(config_path);
    (void)rmdir(folder);
}

void put_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

void put_env(const char *name, const char *value)
{
    assert_int_equal(setenv(name, value, 1), 0);
}
