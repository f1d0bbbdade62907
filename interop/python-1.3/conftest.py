import os

import httpx
import pytest
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver

URLS = {agent: os.environ[f"{agent.upper()}_URL"] for agent in ("echo", "tck", "bench")}


@pytest.fixture(params=["1.0", "0.3"])
def version(request):
    """The protocol the SDK is made to speak: its own, or 0.3 through its compatibility layer."""
    return request.param


@pytest.fixture
async def connect(version):
    """connect("echo", streaming=False, polling=True) -> an SDK client; the card decides what it speaks."""
    http = httpx.AsyncClient(timeout=20)

    async def make(agent, **config):
        card = await A2ACardResolver(http, URLS[agent]).get_agent_card(http_kwargs={"headers": {"A2A-Version": version}})
        return ClientFactory(ClientConfig(httpx_client=http, **config)).create(card)

    yield make
    await http.aclose()
