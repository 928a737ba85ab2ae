# One stage builds the executable, the other holds nothing but it.
FROM debian:12-slim AS build
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends ca-certificates nodejs npm && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY package.json bun.lock bunfig.toml tsconfig.json ./
COPY src src
COPY drizzle drizzle
COPY scripts scripts
RUN npx -y bun@1.4.5 run build

FROM debian:12-slim
RUN useradd --system --home-dir /data --create-home hostline
COPY --from=build /src/dist/hostline /usr/local/bin/hostline
USER hostline
ENV DATA_DIR=/data
VOLUME /data
EXPOSE 3000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=6s --start-period=10s CMD ["hostline", "health"]
CMD ["hostline", "serve"]
