"""A shop on loopback that recommends, with known discrimination, noise, drift and faults."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from zlib import crc32

from support.loopback import answer_in_thread

CATALOGUE = 200


@dataclass
class Shop:
    """What the shop does.

    Args:
        markup: The factor by which prices are higher, by job.
        swapped: The items of ten that are others, by job.
        noise: The items of ten that are others by chance.
        drift: The factor by which prices rise with each request of the same customer.
        price_noise: The standard deviation of the logarithm of a price.
        empty: The job for which nothing is recommended.
        faults: What the next requests get instead: a status with a body.
        always: What every request gets.
        asked: The customers that were asked about.
    """

    markup: dict[str, float] = field(default_factory=dict)
    swapped: dict[str, int] = field(default_factory=dict)
    noise: int = 0
    drift: float = 0.0
    price_noise: float = 0.0
    empty: str = ""
    faults: list[tuple[int, str]] = field(default_factory=list)
    always: tuple[int, str] | None = None
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""
    chance: random.Random = field(default_factory=lambda: random.Random(1))

    def recommend(self, customer: dict[str, Any], n_before: int) -> list[dict[str, Any]]:
        job = str(customer.get("job"))
        if job == self.empty:
            return []
        taste = random.Random(crc32(repr(sorted(set(customer.items()) - {("job", job)})).encode()))
        items = taste.sample(range(CATALOGUE), 10)
        for n, chance in (
            (self.swapped.get(job, 0), random.Random(job)),
            (self.noise, self.chance),
        ):
            for at in chance.sample(range(10), n):
                items[at] = chance.randrange(CATALOGUE, 2 * CATALOGUE)
        factor = self.markup.get(job, 1.0) * (1 + self.drift) ** n_before
        return [
            {
                "sku": f"i{item}",
                "price": {"amount": (5 + item % 40) * factor * self._shake()},
                "sales": 1 + item * 7 % 100,
                "ad": item % 5 == 0,
            }
            for item in items
        ]

    def _shake(self) -> float:
        return float(2.718281828 ** self.chance.gauss(0, self.price_noise))


@contextmanager
def open_shop(shop: Shop) -> Iterator[Shop]:
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            customer = json.loads(self.rfile.read(length))["customer"]
            with lock:
                status, text = self.answer(customer)
            self.send_response(status)
            content = text.encode()
            self.send_header("Content-Length", str(len(content)))
            if status == 429:
                self.send_header("Retry-After", "0.01")
            self.end_headers()
            self.wfile.write(content)

        def answer(self, customer: dict[str, Any]) -> tuple[int, str]:
            fault = shop.faults.pop(0) if shop.faults else shop.always
            if fault:
                return fault
            shop.headers.append(dict(self.headers))
            n_before = shop.asked.count(customer)
            shop.asked.append(customer)
            return 200, json.dumps({"results": shop.recommend(customer, n_before)})

        def log_message(self, *_arguments: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    shop.url = f"http://127.0.0.1:{server.server_port}/recommend"
    with answer_in_thread(server):
        yield shop
