/* drover watch. */
#include "cli.h"
#include "interrupt.h"
#include "progress.h"
#include "ref.h"
#include <stdio.h>

int cmd_watch(struct cli *cli)
{
    int status;
    struct ref ref;
    interrupt_catch();
    if (!ref_read(cli, cli->args[0], &ref, &status)) {
        return status;
    }
    cli->for_readers = true;
    return progress_follow(cli, ref.campaign);
}
