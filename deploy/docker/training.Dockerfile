# An image of your own for training: your base, your program, and an entry point that speaks SageMaker's contract
# (deploy/docker/training/train says which). A campaign file names it as image:.
#   docker build -f deploy/docker/training.Dockerfile --build-arg BASE=ACCOUNT.dkr.ecr.REGION.amazonaws.com/colossalai:0.2 \
#     --build-arg PROGRAM=my/program -t my-training .
# BASE needs python3; with Debian's own it is installed here.
ARG BASE=debian:12-slim
FROM $BASE
RUN command -v python3 || { apt-get update && apt-get install -y --no-install-recommends python3 && rm -rf /var/lib/apt/lists/*; }
COPY deploy/docker/training/train /usr/local/bin/train
ARG PROGRAM=deploy/docker/training/program
COPY $PROGRAM/ /opt/program/
ENV PYTHONUNBUFFERED=1
ENTRYPOINT ["python3", "/usr/local/bin/train"]
