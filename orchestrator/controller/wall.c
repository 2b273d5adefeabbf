/* See wall.h. */
#include "wall.h"
#include "common/aws.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/leader/wall_clock.h"

usec_t leader_now(struct controller *c)
{
    usec_t now_us = clock_wall_us();
    int64_t step_us = leader_wall_clock(&c->state, now_us, clock_boot_us(),
                                        aws_client_skew_us(c->aws), aws_client_answers(c->aws));
    if (step_us != 0 && log_allow("clock_stepped")) {
        log_event(LOG_WARN, "clock_stepped", LF_I("us", step_us));
    }
    return now_us;
}

usec_t leader_aws_now(struct controller *c)
{
    usec_t now_us = leader_now(c);
    return leader_wall_to_aws(&c->state, now_us);
}
