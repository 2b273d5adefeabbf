#!/bin/sh
# Build drover's images and push them to ECR, by digest; prints the settings that name them.
#
# usage: push-images.sh [--only NAME[,NAME]] [--tag TAG] [--dry-run]
#   NAME: worker (default: worker), droverd, training. TAG: what else names the digest (default: drover's version).
# Needs docker or podman (ENGINE=podman), awscli and its credentials; region as awscli finds it. Repositories
# drover-worker, droverd and drover-training are made when they are not there; a tag is never overwritten by other bytes.
set -eu
only=worker
tag=
dry=
while [ $# -gt 0 ]; do
    case $1 in
        --only) only=${2:?--only NAME} && shift ;;
        --tag) tag=${2:?--tag TAG} && shift ;;
        --dry-run) dry=yes ;;
        -h | --help)
            sed -n 's/^# \{0,1\}//; 2,7p' "$0"
            exit 0
            ;;
        *)
            echo "push-images.sh: unknown argument '$1'; see --help" >&2
            exit 2
            ;;
    esac
    shift
done
cd "$(dirname "$0")/../.."

die() { # MESSAGE NEXT
    echo "error: $1" >&2
    echo "  next: $2" >&2
    exit 1
}
run() {
    if [ -n "$dry" ]; then echo "+ $*" >&2; else "$@" >&2; fi
}

command -v aws >/dev/null || die "awscli is not installed" "apt-get install awscli"
engine=${ENGINE:-$(command -v docker || command -v podman || true)}
[ -n "$engine" ] || die "neither docker nor podman is installed" "apt-get install podman"
tag=${tag:-$(sed -n 's/.*DROVER_VERSION "\(.*\)"/\1/p' include/common/version.h)}
region=${AWS_REGION:-${AWS_DEFAULT_REGION:-$(aws configure get region || true)}}
[ -n "$region" ] || die "no region is set" "export AWS_REGION=us-east-1"
export AWS_REGION="$region" AWS_DEFAULT_REGION="$region"
account=$(aws sts get-caller-identity --query Account --output text) || die "AWS does not accept the credentials" "aws configure"
case $region in
    cn-*) suffix=amazonaws.com.cn ;;
    *) suffix=amazonaws.com ;;
esac
registry=$account.dkr.ecr.$region.$suffix

login() {
    if [ -n "$dry" ]; then
        echo "+ aws ecr get-login-password | $engine login --username AWS --password-stdin $registry" >&2
        return
    fi
    aws ecr get-login-password | "$engine" login --username AWS --password-stdin "$registry" >&2 ||
        die "ECR does not let us in" "allow ecr:GetAuthorizationToken and pushing to whom these credentials are of"
}
# The repository's name, Dockerfile and setting of an image: image NAME
image() {
    case $1 in
        worker) repository=drover-worker file=deploy/docker/worker.Dockerfile setting=DROVER_WORKER_IMAGE ;;
        droverd) repository=droverd file=deploy/docker/droverd.Dockerfile setting=DROVERD_IMAGE ;;
        training) repository=drover-training file=deploy/docker/training.Dockerfile setting=TRAINING_IMAGE ;;
        *) die "there is no image '$1'" "worker, droverd or training" ;;
    esac
}
make_repository() {
    aws ecr describe-repositories --repository-names "$repository" >/dev/null 2>&1 ||
        run aws ecr create-repository --repository-name "$repository" --image-tag-mutability IMMUTABLE ||
        die "the repository $repository cannot be made" "allow ecr:CreateRepository, or let an administrator make it"
}
# Docker with the plugin buildx, whose builds have provenance unless told not to: Debian 12's docker.io is without it, podman only has a word like it.
has_buildx() { "$engine" buildx version >/dev/null 2>&1 && ! "$engine" --version | grep -qi podman; }
digest_of() { aws ecr describe-images --repository-name "$repository" --image-ids "imageTag=$tag" --query 'imageDetails[0].imageDigest' --output text 2>/dev/null; }

push() {
    image "$1"
    make_repository
    # SageMaker reads one manifest, not an index with provenance beside it; its instances are amd64.
    provenance=
    if has_buildx; then provenance=--provenance=false; fi
    # shellcheck disable=SC2086
    run "$engine" build --platform linux/amd64 $provenance -f "$file" -t "$registry/$repository:$tag" .
    # A tag that is there is left: another build of the same version needs another --tag.
    digest=$(digest_of) || digest=
    if [ -z "$digest" ] || [ "$digest" = None ]; then
        run "$engine" push "$registry/$repository:$tag"
        if [ -n "$dry" ]; then
            digest=sha256:...
        else
            digest=$(digest_of) || die "ECR does not tell the digest of $repository:$tag" "allow ecr:DescribeImages"
        fi
    else
        echo "$repository:$tag is there already and stays; another build needs another --tag" >&2
    fi
    echo "$setting=$registry/$repository@$digest"
}

for name in $(echo "$only" | tr , ' '); do image "$name"; done
login
for name in $(echo "$only" | tr , ' '); do push "$name"; done
