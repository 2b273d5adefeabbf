/* EC2: DescribeSubnets over the configuration's subnets, {"subnet-0a": {"zone": ..., "free": ...}};
 * without any, every subnet is there. See services.h. */
#include "common/xml.h"
#include "local/app.h"
#include "services.h"
#include <stdio.h>

#define FREE_USUAL 250
#define ASKED_MAX  200

static bool add_subnet(struct request *r, const char *id)
{
    const json_t *all = r->app->set.subnets;
    const json_t *one = json_object_get(all, id);
    const char *zone = json_string_value(json_object_get(one, "zone"));
    const json_t *free_n = json_object_get(one, "free");
    if (strncmp(id, "subnet-", strlen("subnet-")) != 0 || (all != NULL && one == NULL)) {
        reply_error(r, 400, "InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id);
        return false;
    }
    buf_add_cstr(&r->reply.body, "<item><subnetId>");
    xml_escape(&r->reply.body, str_of(id));
    buf_addf(&r->reply.body,
             "</subnetId><state>available</state><vpcId>vpc-local</vpcId>"
             "<availableIpAddressCount>%lld</availableIpAddressCount>"
             "<availabilityZone>%s%s</availabilityZone><tagSet><item><key>subnetId</key>"
             "<value>x</value></item></tagSet></item>",
             (long long)(free_n != NULL ? json_integer_value(free_n) : FREE_USUAL),
             zone != NULL ? zone : r->app->set.region, zone != NULL ? "" : "a");
    return true;
}

void ec2_describe_subnets(struct request *r)
{
    buf_addf(&r->reply.body,
             "<DescribeSubnetsResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">"
             "<requestId>%016llx</requestId><subnetSet>",
             (unsigned long long)r->id);
    for (int i = 1; i <= ASKED_MAX; i++) {
        char key[32];
        AUTO_BUF struct buf id = BUF_INIT(256);
        (void)snprintf(key, sizeof key, "SubnetId.%d", i);
        if (!request_form(r, key, &id)) {
            break;
        }
        if (!add_subnet(r, buf_cstr(&id))) {
            return;
        }
    }
    buf_add_cstr(&r->reply.body, "</subnetSet></DescribeSubnetsResponse>");
    reply_xml(r);
}
