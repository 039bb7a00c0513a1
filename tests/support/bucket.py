"""An S3 server of this machine, which counts its requests and may be slow."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import pytest

from recbias.runner.store_url import open_url


@dataclass
class Bucket:
    """A bucket.

    Args:
        url: The URL of a folder in it.
        variables: The environment variables that other processes need for it.
        requests: The method and the path of each request.
        pause: The seconds before an answer.
        is_read_only: Whether what would write is refused.
    """

    url: str
    variables: dict[str, str]
    requests: list[tuple[str, str]] = field(default_factory=list)
    pause: float = 0.0
    is_read_only: bool = False

    def wrap(self, application: Any) -> Any:
        """Return an application of a server whose requests are noted."""

        def answer(server: Any, environ: Any, start_response: Any) -> Any:
            self.requests.append((environ["REQUEST_METHOD"], environ["PATH_INFO"]))
            time.sleep(self.pause)
            if self.is_read_only and environ["REQUEST_METHOD"] in {"POST", "PUT"}:
                start_response("403 Forbidden", [("Content-Type", "application/xml")])
                return [
                    b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
                ]
            return application(server, environ, start_response)

        return answer


@contextmanager
def serve_bucket() -> Iterator[Bucket]:
    """Start the server, and set its address and keys in the environment."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    variables = {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "planted-secret",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    # servers of one process share what they hold
    bucket = Bucket(f"s3://results/{uuid.uuid4().hex}", variables)
    call = bucket.wrap(DomainDispatcherApplication.__call__)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        open_url.cache_clear()
        try:
            files, _ = open_url("s3://results?allow_bucket_creation=true")
            files.create_dir("results")
            with mock.patch.object(DomainDispatcherApplication, "__call__", call):
                yield bucket
        finally:
            open_url.cache_clear()
            server.stop()
