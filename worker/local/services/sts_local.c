/* STS: GetCallerIdentity. See services.h. */
#include "local/app.h"
#include "services.h"

void sts_handle(struct request *r)
{
    const char *account = r->app->set.account;
    buf_addf(&r->reply.body,
             "<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"
             "<GetCallerIdentityResult><Arn>arn:aws:iam::%s:user/drover</Arn>"
             "<UserId>AIDALOCAL</UserId><Account>%s</Account></GetCallerIdentityResult>"
             "<ResponseMetadata><RequestId>%016llx</RequestId></ResponseMetadata>"
             "</GetCallerIdentityResponse>",
             account, account, (unsigned long long)r->id);
    reply_xml(r);
}
