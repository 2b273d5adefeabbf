# drover-worker, the image of stages with worker: copy, download or index. deploy/docker/push-images.sh brings it to ECR.
#   docker build -f deploy/docker/worker.Dockerfile -t drover-worker .
#   docker run --rm drover-worker download --help
FROM debian:12-slim AS build
WORKDIR /src
COPY deploy/deps.sh deploy/
COPY worker/deps/ worker/deps/
COPY orchestrator/web/package.json orchestrator/web/package-lock.json orchestrator/web/.npmrc orchestrator/web/
RUN sh deploy/deps.sh run
COPY . .
RUN make -j2 install DESTDIR=/out PREFIX=/usr

FROM debian:12-slim
COPY deploy/deps.sh /usr/share/drover/
RUN sh /usr/share/drover/deps.sh worker && rm -rf /var/lib/apt/lists/* /build
COPY --from=build /out/usr/bin/drover-worker /usr/bin/
COPY --from=build /out/usr/lib/drover/ /usr/lib/drover/
COPY --from=build /out/usr/share/doc/drover/NOTICE /usr/share/doc/drover/
# No USER: SageMaker makes /opt/ml for root and gives no other user the right to write there. Pictures are
# decoded in processes without rights (worker/download/decode).
ENTRYPOINT ["/usr/bin/drover-worker"]
