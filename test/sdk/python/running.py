"""The product as `npm start` runs it, on free ports and an empty data directory, with nothing of the tester's environment."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[3]


class Gateway:
    def __init__(self) -> None:
        self._data_dir = tempfile.mkdtemp(prefix="portcullis-python-")
        self._process = subprocess.Popen(
            ["node", "scripts/portcullis.js", "serve"],
            cwd=ROOT,
            env={
                "PATH": os.environ["PATH"],
                "DATA_DIR": self._data_dir,
                "PORT": "0",
                "MANAGEMENT_PORT": "0",
                "ACCESS_LOG": "off",
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        said = self._first_run()
        self.base_url = _field(said, "gateway") + "/v1"
        self.key = _field(said, "gateway key")
        self._management = _field(said, "management")
        self._master_key = _field(said, "master key")

    def _first_run(self) -> str:
        """All that it prints before the command to try."""
        said = ""
        for line in self._process.stdout:
            said += line
            if line.startswith("Try it:"):
                return said
        raise RuntimeError(f"the gateway did not start: {said}")

    def manage(self, method: str, path: str, body: object = None) -> dict:
        """One call of the master API."""
        request = urllib.request.Request(
            self._management + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"authorization": f"Bearer {self._master_key}", "content-type": "application/json"},
        )
        with urllib.request.urlopen(request) as response:
            return json.load(response)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=60)
        self._process.stdout.close()
        shutil.rmtree(self._data_dir)


def _field(said: str, name: str) -> str:
    found = re.search(rf"^  {name} {{2,}}(\S+)$", said, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"no {name} in {said}")
    return found[1]
