/* The applied limits of SageMaker training as Service Quotas lists them. Values; the arrays belong
 * to the one that read them. Source: Service Quotas API reference, ListServiceQuotas. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct quota_value {
    char instance_type[33];
    int64_t limit;
};
struct quota_reading {
    struct quota_value *training; /* [training_n] "<type> for training job usage" */
    size_t training_n;
    struct quota_value *warm; /* [warm_n] "<type> for training warm pool usage": instances kept */
    size_t warm_n;
    struct quota_value *spot; /* [spot_n] "<type> for spot training job usage" */
    size_t spot_n;
    int64_t total;          /* across all training jobs; -1: not listed, as for all below */
    int64_t spot_total;     /* across all spot training jobs */
    int64_t instances_max;  /* "Maximum number of instances per training job" */
    int64_t runtime_max_s;  /* "Longest run time for a training job" */
    int64_t keep_alive_s;   /* "Keep alive period for cluster reuse" */
    int64_t volume_max_gib; /* "Size of EBS volume for a training job instance" */
    bool whole;         /* all was read: what is not listed there is not; else it is not known */
    double create_rate; /* "Rate of CreateTrainingJob requests"; < 0: not listed */
};
