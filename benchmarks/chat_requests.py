"""Seconds for 5,000 requests to a server that answers at once, as a ratio to the plain SDK.

Both send 32 requests at a time from one process to a server in another. The plain SDK stores
nothing, counts nothing and repeats nothing.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path

from recbias.language.client import complete
from recbias.language.endpoints import ChatRequest, LanguageModel, Message

sys.path.append(str(Path(__file__).parents[1] / "tests"))

CONCURRENCY = 32
PROMPT = "I watched: " + ", ".join(f"Film {i} (19{i:02d})" for i in range(40)) + ". User "


def serve(connection: Connection) -> None:
    from support.chat.chat_server import serve_chat

    with serve_chat() as server:
        connection.send(server.base_url)
        connection.recv()


def time_sdk(requests: list[ChatRequest], base_url: str) -> float:
    import openai

    client = openai.OpenAI(api_key="none", base_url=base_url, max_retries=0)

    def ask(request: ChatRequest) -> str | None:
        reply = client.chat.completions.create(
            model=request.model,
            messages=[{"role": "user", "content": request.messages[0].content}],
            max_tokens=512,
            temperature=0.0,
        )
        return reply.choices[0].message.content

    start = time.perf_counter()
    with ThreadPoolExecutor(CONCURRENCY) as pool:
        texts = list(pool.map(ask, requests))
    assert all(texts)
    return time.perf_counter() - start


def time_complete(requests: list[ChatRequest], model: LanguageModel, folder: Path) -> float:
    start = time.perf_counter()
    replies = complete(requests, model, folder=folder)
    assert all(reply.answer for reply in replies)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=5000)
    n_requests = parser.parse_args().requests
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,))
    server.start()
    base_url = ours.recv()
    model = LanguageModel(model="small", base_url=base_url, concurrency=CONCURRENCY)
    requests = [model.build_request([Message("user", f"{PROMPT}{i}")]) for i in range(n_requests)]
    with tempfile.TemporaryDirectory() as folder:
        sdk = time_sdk(requests, base_url)
        first = time_complete(requests, model, Path(folder))
        again = time_complete(requests, model, Path(folder))
    ours.send("stop")
    server.join()
    print(f"{n_requests:,} requests, {CONCURRENCY} at a time")
    print(f"plain SDK in a thread pool  {sdk:7.2f} s")
    print(f"recbias                     {first:7.2f} s  ratio {first / sdk:.2f}")
    print(f"recbias again, all stored   {again:7.2f} s")


if __name__ == "__main__":
    main()
