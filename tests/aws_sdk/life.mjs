// The AWS SDK's clients live the life of each thing at drover-local, and every answer is held against what the client made of it.
// One JSON object on standard output: {"operations": {name: answers}, "errors": n, "losses": [...], "wrong": [...]}.
// usage: PACKAGES=folder/ node life.mjs URL KEY SECRET ROLE
import { createRequire } from 'node:module';
import { errorLosses, losses, Recorder } from './wire.mjs';

const [url, key, secret, role] = process.argv.slice(2);
const require = createRequire(process.env.PACKAGES);
const { NodeHttpHandler } = require('@smithy/node-http-handler');
const found = { operations: {}, errors: 0, losses: [], wrong: [] };

function client(name, type, more = {}) {
  const sdk = require(`@aws-sdk/client-${name}`);
  const recorder = new Recorder(new NodeHttpHandler({ requestTimeout: 60_000 }));
  const c = new sdk[type]({ endpoint: url, region: 'us-east-1', maxAttempts: 1, credentials: { accessKeyId: key, secretAccessKey: secret }, requestHandler: recorder, ...more });
  const told = (operation, lost) => found.losses.push(...lost.map((what) => `${operation}: ${what}`));
  return {
    // The output of an operation that must succeed.
    async ask(operation, input = {}) {
      const output = await c.send(new sdk[`${operation}Command`](input));
      found.operations[operation] = (found.operations[operation] ?? 0) + 1;
      told(operation, losses(recorder.last, output));
      return output;
    },
    // An operation that must be refused with this name.
    async refused(operation, input, code) {
      try {
        await c.send(new sdk[`${operation}Command`](input));
        found.wrong.push(`${operation} was not refused`);
      } catch (e) {
        found.errors += 1;
        same(`${operation} is refused`, e.name, code);
        told(operation, errorLosses(recorder.last, e));
      }
    },
  };
}

function same(what, got, want) {
  if (JSON.stringify(got) !== JSON.stringify(want)) {
    found.wrong.push(`${what}: ${JSON.stringify(got)}, not ${JSON.stringify(want)}`);
  }
}

async function until(what, look) {
  for (let n = 0; n < 600; n += 1) {
    const got = await look();
    if (got) {
      return got;
    }
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error(`${what} did not come`);
}

async function identity() {
  const sts = client('sts', 'STSClient');
  const who = await sts.ask('GetCallerIdentity');
  same('the account', /^\d{12}$/.test(who.Account), true);
  const assumed = await sts.ask('AssumeRole', { RoleArn: role, RoleSessionName: 'life', DurationSeconds: 900 });
  same('keys of a role end later', assumed.Credentials.Expiration > new Date(), true);
  const web = await sts.ask('AssumeRoleWithWebIdentity', { RoleArn: role, RoleSessionName: 'life', WebIdentityToken: 'web-token' });
  same('so do those of a token', [web.Credentials.Expiration > new Date(), web.AssumedRoleUser.Arn.endsWith('/life')], [true, true]);
  await sts.refused('AssumeRoleWithWebIdentity', { RoleArn: role, RoleSessionName: 'life', WebIdentityToken: 'another' }, 'InvalidIdentityTokenException');
}

async function text(output) {
  return Buffer.from(await output.Body.transformToByteArray()).toString();
}

async function objects() {
  const s3 = client('s3', 'S3Client', { forcePathStyle: true });
  const Bucket = 'life';
  await s3.ask('CreateBucket', { Bucket });
  await s3.ask('HeadBucket', { Bucket });
  await s3.ask('GetBucketLocation', { Bucket });
  for (const Key of ['plain', 'a folder/ä=+&%?#.bin', '日本/x <y> "z"']) {
    await s3.ask('PutObject', { Bucket, Key, Body: 'some words', ContentType: 'text/plain', Metadata: { run: 'one' } });
    same('an object', await text(await s3.ask('GetObject', { Bucket, Key })), 'some words');
    same('a range', await text(await s3.ask('GetObject', { Bucket, Key, Range: 'bytes=5-9' })), 'words');
    const head = await s3.ask('HeadObject', { Bucket, Key });
    same('its head', [head.ContentLength, head.ContentType, head.Metadata], [10, 'text/plain', { run: 'one' }]);
  }
  await s3.refused('PutObject', { Bucket, Key: 'plain', Body: 'x', IfNoneMatch: '*' }, 'PreconditionFailed');
  await s3.refused('GetObject', { Bucket, Key: 'none' }, 'NoSuchKey');
  await s3.refused('HeadObject', { Bucket, Key: 'none' }, 'NotFound');
  await s3.refused('ListObjectsV2', { Bucket: 'nobody' }, 'NoSuchBucket');
  await s3.ask('CopyObject', { Bucket, Key: 'copy', CopySource: `/${Bucket}/plain` });
  const page = await s3.ask('ListObjectsV2', { Bucket, MaxKeys: 2 });
  await s3.ask('ListObjectsV2', { Bucket, ContinuationToken: page.NextContinuationToken });
  same('folders', (await s3.ask('ListObjectsV2', { Bucket, Delimiter: '/' })).CommonPrefixes.map((p) => p.Prefix), ['a folder/', '日本/']);
  await s3.ask('ListObjects', { Bucket, Prefix: 'p' });
  await parts(s3, Bucket);
  const all = (await s3.ask('ListObjectsV2', { Bucket })).Contents.map((o) => ({ Key: o.Key }));
  await s3.ask('DeleteObject', { Bucket, Key: all.pop().Key });
  same('many go at once', (await s3.ask('DeleteObjects', { Bucket, Delete: { Objects: all } })).Deleted.length, all.length);
  await s3.ask('DeleteBucket', { Bucket });
  await s3.ask('ListBuckets');
}

async function parts(s3, Bucket) {
  const Key = 'in/parts';
  const { UploadId } = await s3.ask('CreateMultipartUpload', { Bucket, Key, ContentType: 'text/plain' });
  const one = await s3.ask('UploadPart', { Bucket, Key, UploadId, PartNumber: 1, Body: Buffer.alloc(5 << 20, 'x') });
  const two = await s3.ask('UploadPartCopy', { Bucket, Key, UploadId, PartNumber: 2, CopySource: `/${Bucket}/plain` });
  await s3.ask('ListMultipartUploads', { Bucket });
  await s3.ask('ListParts', { Bucket, Key, UploadId });
  await s3.ask('CompleteMultipartUpload', { Bucket, Key, UploadId, MultipartUpload: { Parts: [{ PartNumber: 1, ETag: one.ETag }, { PartNumber: 2, ETag: two.CopyPartResult.ETag }] } });
  same('the parts are one', (await s3.ask('HeadObject', { Bucket, Key })).ContentLength, (5 << 20) + 10);
  const left = await s3.ask('CreateMultipartUpload', { Bucket, Key: 'left' });
  await s3.ask('AbortMultipartUpload', { Bucket, Key: 'left', UploadId: left.UploadId });
}

function job(name, command, more = {}) {
  return {
    TrainingJobName: name, RoleArn: role,
    AlgorithmSpecification: { TrainingImage: 'sh', TrainingInputMode: 'File', ContainerArguments: [command], MetricDefinitions: [{ Name: 'loss', Regex: 'loss=([0-9.]+)' }] },
    ResourceConfig: { InstanceType: 'ml.m5.large', InstanceCount: 1, VolumeSizeInGB: 1 }, OutputDataConfig: { S3OutputPath: 's3://bkt/out', CompressionType: 'NONE' },
    StoppingCondition: { MaxRuntimeInSeconds: 600 }, ...more,
  };
}

async function jobs() {
  await client('s3', 'S3Client', { forcePathStyle: true }).ask('PutObject', { Bucket: 'bkt', Key: 'in/data', Body: 'data' });
  const sm = client('sagemaker', 'SageMakerClient');
  const logs = client('cloudwatch-logs', 'CloudWatchLogsClient');
  const ended = (TrainingJobName) => until(`the end of ${TrainingJobName}`, async () => {
    const d = await sm.ask('DescribeTrainingJob', { TrainingJobName });
    return ['Completed', 'Failed', 'Stopped'].includes(d.TrainingJobStatus) && d;
  });
  const { TrainingJobArn } = await sm.ask('CreateTrainingJob', job('one', 'echo loss=0.5; echo done', {
    HyperParameters: { a: '1' }, Environment: { A: 'b' }, Tags: [{ Key: 'run', Value: 'life' }], RetryStrategy: { MaximumRetryAttempts: 2 }, EnableNetworkIsolation: true,
    InfraCheckConfig: { EnableInfraCheck: true }, RemoteDebugConfig: { EnableRemoteDebug: false }, SessionChainingConfig: { EnableSessionTagChaining: true },
    InputDataConfig: [{ ChannelName: 'in', DataSource: { S3DataSource: { S3DataType: 'S3Prefix', S3Uri: 's3://bkt/in/', S3DataDistributionType: 'FullyReplicated' } } }],
    CheckpointConfig: { S3Uri: 's3://bkt/checkpoints' }, EnableManagedSpotTraining: true, StoppingCondition: { MaxRuntimeInSeconds: 600, MaxWaitTimeInSeconds: 900 },
  }));
  const done = await ended('one');
  same('the job', [done.TrainingJobStatus, done.FinalMetricDataList?.[0].Value, done.RetryStrategy, done.InfraCheckConfig], ['Completed', 0.5, { MaximumRetryAttempts: 2 }, { EnableInfraCheck: true }]);
  await sm.ask('CreateTrainingJob', job('bad', 'exit 3'));
  same('a failure', (await ended('bad')).FailureReason, 'AlgorithmError: , exit code: 3');
  await sm.ask('CreateTrainingJob', job('long', 'sleep 60', { ResourceConfig: { InstanceType: 'ml.m5.large', InstanceCount: 1, VolumeSizeInGB: 1, KeepAlivePeriodInSeconds: 60 } }));
  await until('its training', async () => (await sm.ask('DescribeTrainingJob', { TrainingJobName: 'long' })).SecondaryStatus === 'Training');
  await sm.ask('StopTrainingJob', { TrainingJobName: 'long' });
  same('a stopped job', (await ended('long')).TrainingJobStatus, 'Stopped');
  await sm.ask('CreateTrainingJob', job('kept', 'true', { ResourceConfig: { InstanceType: 'ml.m5.large', InstanceCount: 1, VolumeSizeInGB: 1, KeepAlivePeriodInSeconds: 60 } }));
  await ended('kept');
  await until('its warm pool', async () => (await sm.ask('DescribeTrainingJob', { TrainingJobName: 'kept' })).WarmPoolStatus?.Status === 'Available');
  await sm.ask('UpdateTrainingJob', { TrainingJobName: 'kept', ResourceConfig: { KeepAlivePeriodInSeconds: 0 } });
  await sm.ask('AddTags', { ResourceArn: TrainingJobArn, Tags: [{ Key: 'more', Value: '' }] });
  await sm.ask('DeleteTags', { ResourceArn: TrainingJobArn, TagKeys: ['run'] });
  same('tags', (await sm.ask('ListTags', { ResourceArn: TrainingJobArn })).Tags, [{ Key: 'more', Value: '' }]);
  const page = await sm.ask('ListTrainingJobs', { MaxResults: 2, SortBy: 'CreationTime', SortOrder: 'Ascending' });
  same('a page of jobs', (await sm.ask('ListTrainingJobs', { MaxResults: 2, SortBy: 'CreationTime', SortOrder: 'Ascending', NextToken: page.NextToken })).TrainingJobSummaries.length, 2);
  same('a search', (await sm.ask('Search', { Resource: 'TrainingJob', SearchExpression: { Filters: [{ Name: 'Tags.more', Operator: 'Exists' }] } })).Results.length, 1);
  await sm.refused('DescribeTrainingJob', { TrainingJobName: 'nobody' }, 'ValidationException');
  await sm.refused('CreateTrainingJob', job('one', 'true'), 'ResourceInUse');
  await sm.refused('CreateTrainingJob', job('many', 'true', { ResourceConfig: { InstanceType: 'ml.m5.large', InstanceCount: 9, VolumeSizeInGB: 1 } }), 'ResourceLimitExceeded');
  await lines(logs);
}

async function lines(logs) {
  const logGroupName = '/aws/sagemaker/TrainingJobs';
  await logs.ask('DescribeLogGroups', { logGroupNamePrefix: '/aws/sagemaker' });
  const { logStreams } = await logs.ask('DescribeLogStreams', { logGroupName, logStreamNamePrefix: 'one/' });
  const { logStreamName } = logStreams[0];
  const first = await logs.ask('GetLogEvents', { logGroupName, logStreamName, startFromHead: true, limit: 1 });
  const second = await logs.ask('GetLogEvents', { logGroupName, logStreamName, startFromHead: true, nextToken: first.nextForwardToken });
  same('lines', [first, second].map((p) => p.events.map((e) => e.message)), [['loss=0.5'], ['done']]);
  same('filtered', (await logs.ask('FilterLogEvents', { logGroupName, filterPattern: 'loss' })).events.map((e) => e.message), ['loss=0.5']);
  await logs.refused('GetLogEvents', { logGroupName, logStreamName: 'nobody' }, 'ResourceNotFoundException');
}

async function hosting() {
  const sm = client('sagemaker', 'SageMakerClient');
  const runtime = client('sagemaker-runtime', 'SageMakerRuntimeClient');
  await sm.ask('CreateModel', { ModelName: 'm', ExecutionRoleArn: role, PrimaryContainer: { Image: 'server', Environment: { A: 'b' } } });
  const variant = (VariantName) => [{ VariantName, ModelName: 'm', InitialInstanceCount: 1, InstanceType: 'ml.g4dn.xlarge' }];
  await sm.ask('CreateEndpointConfig', { EndpointConfigName: 'c', ProductionVariants: variant('AllTraffic'), Tags: [{ Key: 'run', Value: 'life' }] });
  await sm.ask('CreateEndpointConfig', { EndpointConfigName: 'd', ProductionVariants: variant('Other') });
  await sm.ask('CreateEndpoint', { EndpointName: 'e', EndpointConfigName: 'c' });
  const inService = () => until('the endpoint', async () => (await sm.ask('DescribeEndpoint', { EndpointName: 'e' })).EndpointStatus === 'InService');
  await inService();
  const answer = await runtime.ask('InvokeEndpoint', { EndpointName: 'e', ContentType: 'text/plain', Body: 'a question' });
  same('an invocation', [Buffer.from(answer.Body).toString(), answer.InvokedProductionVariant], ['<a question>', 'AllTraffic']);
  await invocations();
  await sm.ask('UpdateEndpoint', { EndpointName: 'e', EndpointConfigName: 'd' });
  await inService();
  for (const [kind, name] of [['Endpoint', 'e'], ['EndpointConfig', 'c'], ['EndpointConfig', 'd'], ['Model', 'm']]) {
    await sm.ask(`Describe${kind}`, { [`${kind}Name`]: name });
    same(`a list of ${kind}`, (await sm.ask(`List${kind}s`, { NameContains: name }))[`${kind}s`].length, 1);
    await sm.ask(`Delete${kind}`, { [`${kind}Name`]: name });
  }
  await runtime.refused('InvokeEndpoint', { EndpointName: 'nobody', Body: 'x' }, 'ValidationError');
}

async function invocations() {
  const { AwsQueryProtocol } = require('@aws-sdk/core/protocols');
  const ask = { Namespace: 'AWS/SageMaker', MetricName: 'Invocations', StartTime: new Date(Date.now() - 600_000), EndTime: new Date(Date.now() + 60_000), Period: 60, Statistics: ['Sum'],
    Dimensions: [{ Name: 'EndpointName', Value: 'e' }, { Name: 'VariantName', Value: 'AllTraffic' }] };
  for (const more of [{}, { protocol: AwsQueryProtocol }]) {
    const points = (await client('cloudwatch', 'CloudWatchClient', more).ask('GetMetricStatistics', ask)).Datapoints;
    same('invocations', points.map((p) => p.Sum), [1]);
  }
}

async function lustre() {
  const fsx = client('fsx', 'FSxClient');
  const { FileSystem } = await fsx.ask('CreateFileSystem', { ClientRequestToken: 'life', FileSystemType: 'LUSTRE', StorageCapacity: 1200, SubnetIds: ['subnet-0123456789abcdef0'],
    LustreConfiguration: { DeploymentType: 'PERSISTENT_2', PerUnitStorageThroughput: 125 }, Tags: [{ Key: 'run', Value: 'life' }] });
  const { FileSystemId, ResourceARN } = FileSystem;
  const state = (operation, list, want) => until(`${list} ${want}`, async () => (await fsx.ask(operation))[list].some((x) => x.Lifecycle === want));
  await state('DescribeFileSystems', 'FileSystems', 'AVAILABLE');
  await fsx.ask('TagResource', { ResourceARN, Tags: [{ Key: 'more', Value: 'x' }] });
  same('tags', (await fsx.ask('ListTagsForResource', { ResourceARN })).Tags.length, 2);
  const { Association } = await fsx.ask('CreateDataRepositoryAssociation', { FileSystemId, FileSystemPath: '/ns', DataRepositoryPath: 's3://bkt/lustre', BatchImportMetaDataOnCreate: true,
    S3: { AutoImportPolicy: { Events: ['NEW', 'CHANGED', 'DELETED'] } } });
  await state('DescribeDataRepositoryAssociations', 'Associations', 'AVAILABLE');
  const tasks = (want) => until(`tasks ${want}`, async () => (await fsx.ask('DescribeDataRepositoryTasks')).DataRepositoryTasks.map((x) => x.Lifecycle).sort().join() === want);
  await tasks('SUCCEEDED'); // the import of the association
  const task = await fsx.ask('CreateDataRepositoryTask', { FileSystemId, Type: 'IMPORT_METADATA_FROM_REPOSITORY', Report: { Enabled: false } });
  await fsx.ask('CancelDataRepositoryTask', { TaskId: task.DataRepositoryTask.TaskId });
  await tasks('CANCELED,SUCCEEDED');
  await fsx.ask('UpdateFileSystem', { FileSystemId, StorageCapacity: 2400 });
  await fsx.ask('CreateDataRepositoryTask', { FileSystemId, Type: 'EXPORT_TO_REPOSITORY', Report: { Enabled: false } });
  await tasks('CANCELED,SUCCEEDED,SUCCEEDED');
  await fsx.ask('DeleteDataRepositoryAssociation', { AssociationId: Association.AssociationId });
  await fsx.ask('DeleteFileSystem', { FileSystemId });
  await fsx.refused('DescribeFileSystems', { FileSystemIds: ['fs-00000000000000000'] }, 'FileSystemNotFound');
}

async function account() {
  const quotas = client('service-quotas', 'ServiceQuotasClient');
  const ServiceCode = 'sagemaker';
  await quotas.ask('ListServiceQuotas', { ServiceCode });
  const { QuotaCode } = (await quotas.ask('ListAWSDefaultServiceQuotas', { ServiceCode })).Quotas.find((q) => q.QuotaName === 'ml.m5.large for training job usage');
  await quotas.ask('GetServiceQuota', { ServiceCode, QuotaCode });
  await quotas.ask('GetAWSDefaultServiceQuota', { ServiceCode, QuotaCode });
  await quotas.ask('RequestServiceQuotaIncrease', { ServiceCode, QuotaCode, DesiredValue: 77 });
  await quotas.refused('RequestServiceQuotaIncrease', { ServiceCode, QuotaCode, DesiredValue: 78 }, 'ResourceAlreadyExistsException');
  await quotas.ask('ListRequestedServiceQuotaChangeHistory', { ServiceCode });
  const filters = { instanceName: 'ml.m5.large', platoinstancetype: 'Training' };
  const { PriceList } = await client('pricing', 'PricingClient').ask('GetProducts', { ServiceCode: 'AmazonSageMaker', FormatVersion: 'aws_v1',
    Filters: Object.entries(filters).map(([Field, Value]) => ({ Type: 'TERM_MATCH', Field, Value })) });
  same('a price', /"USD":\s*"0\.115/.test(String(PriceList[0])), true);
  const image = await client('ecr', 'ECRClient').ask('BatchGetImage', { registryId: '123456789012', repositoryName: 'team/train', imageIds: [{ imageTag: '1' }, { imageTag: 'none' }] });
  same('an image and a failure', [image.images.length, image.failures.length], [1, 1]);
}

async function queue() {
  const sqs = client('sqs', 'SQSClient');
  const { QueueUrl } = await sqs.ask('GetQueueUrl', { QueueName: 'plain' });
  await sqs.refused('GetQueueUrl', { QueueName: 'nobody' }, 'QueueDoesNotExist');
  for (const MessageBody of ['one', 'two ä', 'three']) {
    await sqs.ask('SendMessage', { QueueUrl, MessageBody });
  }
  await sqs.ask('GetQueueAttributes', { QueueUrl, AttributeNames: ['All'] });
  const { Messages } = await sqs.ask('ReceiveMessage', { QueueUrl, MaxNumberOfMessages: 10, AttributeNames: ['All'], VisibilityTimeout: 60 });
  same('the messages', Messages.map((m) => m.Body).sort(), ['one', 'three', 'two ä']);
  await sqs.ask('DeleteMessage', { QueueUrl, ReceiptHandle: Messages[0].ReceiptHandle });
  await sqs.ask('DeleteMessageBatch', { QueueUrl, Entries: Messages.slice(1).map((m, i) => ({ Id: String(i), ReceiptHandle: m.ReceiptHandle })) });
  await sqs.ask('ReceiveMessage', { QueueUrl });
  const events = (await sqs.ask('GetQueueUrl', { QueueName: 'events' })).QueueUrl;
  const told = JSON.parse((await sqs.ask('ReceiveMessage', { QueueUrl: events })).Messages[0].Body);
  same('an event', told['detail-type'], 'SageMaker Training Job State Change');
}

for (const step of [identity, objects, jobs, hosting, lustre, account, queue]) {
  try {
    await step();
  } catch (e) {
    found.wrong.push(`${step.name}: ${e.stack}`);
  }
}
process.stdout.write(`${JSON.stringify(found)}\n`);
process.exit(0);
