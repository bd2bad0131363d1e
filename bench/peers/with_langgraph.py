"""LangGraph's chat loop, as its documentation has it: a model bound to tools, a node of tools, a checkpointer.

The model is `ChatOpenAI` of langchain-openai, asked with `ainvoke`, which does not stream. The durability is the
default one. On PostgreSQL the saver has a pool of connections, as is recommended for servers.
"""

from __future__ import annotations

import argparse
import itertools
import time
from contextlib import AsyncExitStack
from typing import Any

from langchain_core.messages import SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from bench.peers.line import Figures, all_at_once, serve, timed
from bench.peers.size import stored_bytes
from bench.peers.task import ASK, SYSTEM, task

POOL = 20
"""Connections to PostgreSQL."""
STEPS_MOST = 10_000
"""LangGraph's own limit would end a turn after 25 steps."""

started: list[float] = []
"""When an approved tool started, by the monotonic clock."""


@tool
async def bench_echo(text: str) -> str:
    """Say it again."""
    return text


@tool
async def bench_ask(text: str) -> str:
    """Say it again, once somebody has approved it."""
    interrupt({"text": text})
    started.append(time.monotonic())
    return text


class LangGraph:
    """A graph with a checkpointer, in one process."""

    def __init__(self, base_url: str, database: str) -> None:
        self._base_url, self._database = base_url, database
        self._threads = itertools.count(1)
        self._graph: Any = None
        self._opened = AsyncExitStack()

    async def turn(self, rounds: int) -> Figures:
        """Run one turn, in a thread of its own. Returns how much more the database holds as well."""
        await self._open()
        before = stored_bytes(self._database)
        figures = await timed(lambda: self._turn(task(rounds)))
        return figures | {"bytes": stored_bytes(self._database) - before}

    async def many(self, turns: int, rounds: int, delay_ms: int) -> Figures:
        """Run so many turns at once, each in a thread of its own."""
        await self._open()
        return await all_at_once(lambda: self._turn(task(rounds, delay_ms=delay_ms)), turns)

    async def approvals(self, times: int) -> Figures:
        """Return the seconds from each decision until the tool starts."""
        await self._open()
        found = []
        for _ in range(times):
            config = await self._turn(task(1, ASK))
            started.clear()
            decided = time.monotonic()
            await self._graph.ainvoke(Command(resume=True), config)
            found.append(started[0] - decided)
        return {"seconds": found}

    async def close(self) -> None:
        """Close the connections to the database."""
        await self._opened.aclose()

    async def _turn(self, said: str) -> Any:
        config = {"configurable": {"thread_id": str(next(self._threads))}, "recursion_limit": STEPS_MOST}
        await self._graph.ainvoke({"messages": [{"role": "user", "content": said}]}, config)
        return config

    async def _open(self) -> None:
        if self._graph is None:
            saver = await (self._on_postgres() if self._database.startswith("postgres") else self._on_sqlite())
            await saver.setup()
            self._graph = _graph(self._base_url, saver)

    async def _on_sqlite(self) -> Any:
        return await self._opened.enter_async_context(AsyncSqliteSaver.from_conn_string(self._database))

    async def _on_postgres(self) -> Any:
        options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        pool = AsyncConnectionPool(self._database, max_size=POOL, kwargs=options, open=False)
        return AsyncPostgresSaver(await self._opened.enter_async_context(pool))  # type: ignore[arg-type]


def _graph(base_url: str, saver: Any) -> Any:
    tools = [bench_echo, bench_ask]
    model = ChatOpenAI(model="bench", base_url=base_url, api_key="bench", max_retries=0).bind_tools(tools)
    system = SystemMessage(SYSTEM["content"])

    async def ask(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke([system, *state["messages"]])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", ask)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=saver)


def main() -> None:
    """Do what the run asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base_url")
    parser.add_argument("database", help="the path of a SQLite file, or a PostgreSQL address")
    options = parser.parse_args()
    serve(LangGraph(options.base_url, options.database))


if __name__ == "__main__":
    main()
