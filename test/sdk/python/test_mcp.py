"""The Python `mcp` package, unmodified: every tool, in both eras of the protocol."""

import unittest

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from running import Gateway

TOOLS = ["chat", "generate-image", "generate-nano-banana", "list-models", "list-image-models"]

CALLS = [
    ("chat", {"model": "sandbox-paid", "messages": [{"role": "user", "content": "Hello"}]}),
    ("generate-image", {"prompt": "a red fox", "size": "64x32"}),
    ("generate-nano-banana", {"prompt": "a banana"}),
    ("list-models", {"family": "sandbox"}),
    ("list-image-models", {}),
]


class Mcp(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.gateway = Gateway()
        cls.addClassCleanup(cls.gateway.stop)

    async def ask(self, **options: str) -> None:
        url = self.gateway.base_url.removesuffix("/v1") + "/mcp"
        async with httpx2.AsyncClient(headers={"x-api-key": self.gateway.key}) as http:
            async with Client(streamable_http_client(url, http_client=http), **options) as client:
                listed = await client.list_tools()
                self.assertEqual([tool.name for tool in listed.tools], TOOLS)
                kinds = []
                for name, arguments in CALLS:
                    result = await client.call_tool(name, arguments)
                    self.assertFalse(result.is_error, result)
                    kinds.append(result.content[0].type)
                self.assertEqual(kinds, ["text", "image", "image", "text", "text"])
                refused = await client.call_tool("chat", {"model": "none", "messages": CALLS[0][1]["messages"]})
                self.assertTrue(refused.is_error)
                self.assertEqual(refused.content[0].text, "The model `none` does not exist.")

    async def test_the_newest_revision(self) -> None:
        await self.ask()

    async def test_a_revision_with_handshake(self) -> None:
        await self.ask(mode="legacy")


if __name__ == "__main__":
    unittest.main()
