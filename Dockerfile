# An image of longtake for a place that has Postgres and NATS of its own; see compose.yaml.
# The first stage builds from the locks and from this tree alone; the second has no compiler, no pip cache, no root.

FROM python:3.13-slim-bookworm AS build
WORKDIR /build
RUN python -m venv /opt/longtake
COPY requirements/ requirements/
RUN /opt/longtake/bin/pip install --no-cache-dir --require-hashes --only-binary :all: \
    -r requirements/run.txt -r requirements/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY migrations/ migrations/
COPY schemas/ schemas/
COPY service/ service/
RUN /opt/longtake/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.13-slim-bookworm
RUN useradd --system --uid 10001 --home-dir /var/lib/longtake --create-home longtake
COPY --from=build /opt/longtake /opt/longtake
ENV PATH=/opt/longtake/bin:$PATH PYTHONUNBUFFERED=1
USER longtake
WORKDIR /var/lib/longtake
VOLUME /var/lib/longtake
EXPOSE 8600
STOPSIGNAL SIGINT
ENTRYPOINT ["longtake"]
CMD ["up"]
