# One image for web servers and workers; compose.yaml says what runs where. Nothing secret is in it.
FROM python:3.12-slim

RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap postgresql-client \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /srv/agentsite
COPY requirements.lock ./
RUN pip install --no-cache-dir --require-hashes -r requirements.lock
COPY manage.py pyproject.toml ./
COPY agentsite agentsite
COPY agents agents
COPY conversations conversations
COPY workflows workflows
COPY templates templates

RUN useradd --create-home agentsite && mkdir /data && chown agentsite /data
USER agentsite
ENV AGENTSITE_DATA=/data PYTHONUNBUFFERED=1
VOLUME /data
EXPOSE 8000
CMD ["python", "-m", "agentsite.web"]
