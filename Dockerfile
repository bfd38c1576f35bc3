# One image for surveys and the studio: non-root, nothing written outside /data.
#   docker build -t rankdp .
#   docker run --read-only --tmpfs /tmp -v surveys:/data -p 8000:8000 rankdp
#   docker run --read-only --tmpfs /tmp -v "$PWD:/data" --network host --user "$(id -u)" rankdp \
#     studio --no-browser --port 8000
FROM python:3.11-slim AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE locks/dev.txt ./
COPY src src
# The versions of the lock, for the packages that the image needs.
RUN grep -oE '^[A-Za-z0-9._-]+==[^ ]+' dev.txt > pins.txt && python -m venv /usr/local/rankdp \
    && /usr/local/rankdp/bin/pip install --no-cache-dir -c pins.txt '.[web,plots]'

FROM python:3.11-slim
RUN useradd --uid 10001 --no-create-home --home-dir /data rankdp && install -d -o rankdp -g rankdp /data
COPY --from=build /usr/local/rankdp /usr/local/rankdp
ENV PATH=/usr/local/rankdp/bin:$PATH HOME=/data MPLCONFIGDIR=/tmp NUMBA_CACHE_DIR=/tmp PYTHONUNBUFFERED=1
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import socket; socket.create_connection(('127.0.0.1', 8000), 4).close()"]
ENTRYPOINT ["rankdp"]
CMD ["survey", "serve", "/data/surveys.db", "--host", "0.0.0.0"]
