import os

import httpx
import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory

URLS = {agent: os.environ[f"{agent.upper()}_URL"] for agent in ("echo", "tck", "bench")}


@pytest.fixture
async def connect():
    """connect("echo", streaming=False, polling=True) -> an SDK client for that agent."""
    http = httpx.AsyncClient(timeout=20)

    async def make(agent, **config):
        card = await A2ACardResolver(http, URLS[agent]).get_agent_card()
        return ClientFactory(ClientConfig(httpx_client=http, **config)).create(card)

    yield make
    await http.aclose()
