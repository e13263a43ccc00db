"""The Python `openai` package as its users have it, with nothing changed but the address."""

import asyncio
import base64
import struct
import unittest
from typing import Literal

import openai
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

from running import Gateway

HELLO = {"model": "sandbox-paid", "messages": [{"role": "user", "content": "Hello"}]}
WEATHER = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]

gateway: Gateway
client: OpenAI


def setUpModule() -> None:
    global gateway, client
    gateway = Gateway()
    client = OpenAI(api_key=gateway.key, base_url=gateway.base_url)


def tearDownModule() -> None:
    client.close()
    gateway.stop()


def faulty(fault: str) -> dict:
    return {"model": "sandbox-faulty", "messages": [{"role": "user", "content": f"fail:{fault}"}]}


def png_size(image: str) -> tuple[int, int]:
    data = base64.b64decode(image)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", data[16:24])


class Completion(unittest.TestCase):
    def test_is_read_whole_with_its_usage_and_request_id(self) -> None:
        completion = client.chat.completions.create(**HELLO)

        self.assertEqual(completion.choices[0].message.content, "You said: Hello")
        self.assertEqual(completion.choices[0].finish_reason, "stop")
        self.assertEqual(completion.usage.total_tokens, 6)
        self.assertRegex(completion._request_id, r"^req_[0-9a-f]{32}$")

    def test_has_the_fields_of_the_gateway_too(self) -> None:
        completion = client.chat.completions.create(**HELLO, extra_headers={"x-no-cache": "true"})

        self.assertEqual(completion.usage.cost, 0.000018)
        self.assertEqual(completion.metadata["used_provider"], "sandbox")

    def test_is_awaited(self) -> None:
        async def ask() -> str | None:
            async with AsyncOpenAI(api_key=gateway.key, base_url=gateway.base_url) as asynchronous:
                completion = await asynchronous.chat.completions.create(**HELLO)
                return completion.choices[0].message.content

        self.assertEqual(asyncio.run(ask()), "You said: Hello")

    def test_takes_an_image(self) -> None:
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
        content = [{"type": "text", "text": "What is this?"}, image]

        completion = client.chat.completions.create(
            model="sandbox-paid", messages=[{"role": "user", "content": content}]
        )

        self.assertEqual(completion.usage.prompt_tokens, 4 + 85)


class Stream(unittest.TestCase):
    def test_is_read_chunk_by_chunk(self) -> None:
        chunks = list(client.chat.completions.create(**HELLO, stream=True))

        self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in chunks), "You said: Hello")
        self.assertEqual(len({chunk.id for chunk in chunks}), 1)
        self.assertEqual(chunks[-1].choices[0].finish_reason, "stop")

    def test_has_its_usage_in_a_last_chunk(self) -> None:
        chunks = list(client.chat.completions.create(**HELLO, stream=True, stream_options={"include_usage": True}))

        self.assertEqual((chunks[-1].choices, chunks[-1].usage.total_tokens), ([], 6))
        self.assertTrue(all(chunk.usage is None for chunk in chunks[:-1]))

    def test_is_awaited(self) -> None:
        async def ask() -> str:
            async with AsyncOpenAI(api_key=gateway.key, base_url=gateway.base_url) as asynchronous:
                stream = await asynchronous.chat.completions.create(**HELLO, stream=True)
                return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

        self.assertEqual(asyncio.run(ask()), "You said: Hello")

    def test_is_gathered_by_the_helper(self) -> None:
        with client.chat.completions.stream(**HELLO) as stream:
            kinds = {event.type for event in stream}
            completion = stream.get_final_completion()

        self.assertIn("content.delta", kinds)
        self.assertEqual(completion.choices[0].message.content, "You said: Hello")

    def test_can_be_left(self) -> None:
        slow = {**HELLO, "model": "sandbox-slow"}
        with client.chat.completions.create(**slow, stream=True) as stream:
            next(iter(stream))

        self.assertEqual(client.chat.completions.create(**HELLO).choices[0].message.content, "You said: Hello")

    def test_that_breaks_in_the_middle_raises(self) -> None:
        said = ""
        with self.assertRaises(openai.APIError) as raised:
            for chunk in client.chat.completions.create(**faulty("cut"), stream=True):
                said += chunk.choices[0].delta.content or ""

        self.assertEqual((said, raised.exception.code), ("So f", "upstream_error"))


class Tools(unittest.TestCase):
    def test_are_called_and_their_results_taken(self) -> None:
        messages = [{"role": "user", "content": "weather"}]
        first = client.chat.completions.create(model="sandbox-paid", messages=messages, tools=WEATHER)
        message = first.choices[0].message
        call = message.tool_calls[0]

        result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
        second = client.chat.completions.create(
            model="sandbox-paid", messages=[*messages, message, result], tools=WEATHER
        )

        self.assertEqual(first.choices[0].finish_reason, "tool_calls")
        self.assertEqual((call.function.name, call.function.arguments), ("weather", '{"city":"sandbox"}'))
        self.assertEqual(second.choices[0].message.content, "The tool said: sunny")

    def test_are_put_together_from_a_stream_and_parsed(self) -> None:
        class Weather(BaseModel):
            city: str

        tool = openai.pydantic_function_tool(Weather, name="weather")
        messages = [{"role": "user", "content": "weather"}]
        with client.chat.completions.stream(model="sandbox-paid", messages=messages, tools=[tool]) as stream:
            completion = stream.get_final_completion()

        call = completion.choices[0].message.tool_calls[0]
        self.assertEqual(call.function.parsed_arguments, Weather(city="sandbox"))


class Pet(BaseModel):
    name: str
    age: int
    kind: Literal["cat", "dog"]


class StructuredOutput(unittest.TestCase):
    def test_is_parsed_by_its_model(self) -> None:
        completion = client.chat.completions.parse(**HELLO, response_format=Pet)

        self.assertIsInstance(completion.choices[0].message.parsed, Pet)

    def test_is_parsed_at_the_end_of_a_stream(self) -> None:
        with client.chat.completions.stream(**HELLO, response_format=Pet) as stream:
            completion = stream.get_final_completion()

        self.assertIsInstance(completion.choices[0].message.parsed, Pet)

    def test_that_was_cut_for_its_length_raises(self) -> None:
        with self.assertRaises(openai.LengthFinishReasonError):
            client.chat.completions.parse(**HELLO, response_format=Pet, max_tokens=1)


class Others(unittest.TestCase):
    def test_images_are_generated(self) -> None:
        answer = client.images.generate(model="sandbox-image-plus", prompt="a red fox", n=2, size="1024x1024")

        self.assertEqual([png_size(image.b64_json) for image in answer.data], [(1024, 1024), (1024, 1024)])

    def test_texts_are_moderated(self) -> None:
        answer = client.moderations.create(input=["Hello", "flag:violence"])

        self.assertEqual([result.flagged for result in answer.results], [False, True])

    def test_models_are_listed_and_found(self) -> None:
        self.assertIn("sandbox-paid", [model.id for model in client.models.list()])
        self.assertEqual(client.models.retrieve("sandbox-paid").owned_by, "sandbox")


class Errors(unittest.TestCase):
    def failure(self, kind: type[openai.APIStatusError], **request: object) -> openai.APIStatusError:
        with self.assertRaises(kind) as raised:
            client.chat.completions.create(**{**HELLO, **request})
        return raised.exception

    def test_400_names_the_place_of_the_fault(self) -> None:
        error = self.failure(openai.BadRequestError, temperature=3)

        self.assertEqual((error.code, error.param), ("invalid_request", "/temperature"))

    def test_401(self) -> None:
        stranger = OpenAI(api_key="nonsense", base_url=gateway.base_url)
        with self.assertRaises(openai.AuthenticationError) as raised:
            stranger.chat.completions.create(**HELLO)
        stranger.close()

        self.assertEqual(raised.exception.code, "invalid_api_key")
        self.assertRegex(raised.exception.request_id, r"^req_")

    def test_403_names_the_rule(self) -> None:
        keys = gateway.manage("GET", "/v1/master/keys")["keys"]
        path = f"/v1/master/keys/{keys[0]['id']}/iam"
        rule = gateway.manage(
            "POST", path, {"ruleType": "deny_models", "ruleValue": {"models": ["sandbox-free"]}}
        )["rule"]
        error = self.failure(openai.PermissionDeniedError, model="sandbox-free")
        gateway.manage("DELETE", f"{path}/{rule['id']}")

        self.assertEqual(error.code, "permission_denied")
        self.assertIn(rule["id"], error.message)

    def test_404(self) -> None:
        self.assertEqual(self.failure(openai.NotFoundError, model="no-such-model").code, "model_not_found")

    def test_502_is_not_tried_again(self) -> None:
        with self.assertLogs("openai._base_client", level="DEBUG") as log:
            error = self.failure(openai.InternalServerError, **faulty("500"))

        self.assertEqual((error.status_code, error.code), (502, "upstream_error"))
        self.assertEqual([line for line in log.output if "Retrying" in line], [])

    def test_a_call_that_takes_too_long_for_its_caller(self) -> None:
        impatient = client.with_options(timeout=0.3, max_retries=0)
        with self.assertRaises(openai.APITimeoutError):
            impatient.chat.completions.create(**faulty("hang"))


if __name__ == "__main__":
    unittest.main()
