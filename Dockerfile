# One stage builds the executable, the other contains it alone.
FROM debian:12-slim AS build
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends ca-certificates git nodejs npm && rm -rf /var/lib/apt/lists/*
RUN npm install --global bun@1.4.5
WORKDIR /src
# Dependencies have a layer of their own, which is cached while only the sources change.
COPY package.json bun.lock bunfig.toml ./
RUN bun install --frozen-lockfile
# With .git, because the version names the commit.
COPY . .
RUN bun scripts/build.ts

FROM debian:12-slim
RUN install --directory --owner=10001 --group=10001 --mode=700 /data
COPY --from=build /src/dist/hostline /usr/local/bin/hostline
# Numeric, because Kubernetes' runAsNonRoot cannot check a name.
USER 10001:10001
# Temporary files too, such as those of a restore, because the root may be read-only.
ENV DATA_DIR=/data TMPDIR=/data
VOLUME /data
EXPOSE 3000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=6s --start-period=10s CMD ["hostline", "health"]
CMD ["hostline", "serve"]
