# droverd, with the command line: the controller, beside a PostgreSQL.
#   docker build -f deploy/docker/droverd.Dockerfile -t droverd .
#   docker run -e DROVER_DATABASE_URL=postgresql://... -e AWS_REGION=us-east-1 -v drover:/var/lib/drover -p 127.0.0.1:8080:8080 droverd
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
RUN sh /usr/share/drover/deps.sh droverd && rm -rf /var/lib/apt/lists/* /build
RUN useradd --system --uid 10001 --home-dir /var/lib/drover --create-home --shell /usr/sbin/nologin drover
COPY --from=build /out/usr/bin/droverd /out/usr/bin/drover /usr/bin/
COPY --from=build /out/usr/share/doc/drover/ /usr/share/doc/drover/
USER 10001:10001
WORKDIR /var/lib/drover
VOLUME /var/lib/drover
# Inside a container every address is the container's own: what may reach the port is said where it is
# published. The token of the first admin is in the volume.
ENV DROVER_LISTEN=0.0.0.0:8080 DROVER_PLAIN_HTTP=true DROVER_TOKEN_FILE=/var/lib/drover/token
EXPOSE 8080
ENTRYPOINT ["/usr/bin/droverd"]
