"""Logs of the server: a JSON object a line, with the number of the request that it is about.

Proved by tests/serve/test_server_abuse.py.
"""

import json
import logging
import sys
from typing import Any, TextIO

LOG = logging.getLogger("tiltrm.serve")
ACCESS = logging.getLogger("tiltrm.serve.access")  # every request, if --log asks for it
REQUEST = "request"  # of a record or of a line: the number of the request


class JsonLines(logging.Formatter):
    """A record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """The fields of an access record, or the sentence of any other, and its traceback."""
        said: dict[str, Any] = {"time": self.formatTime(record), "level": record.levelname.lower()}
        if isinstance(record.args, dict):
            said |= record.args
        else:
            said |= {"message": record.getMessage(), REQUEST: getattr(record, REQUEST, None)}
        if record.exc_info:
            said["traceback"] = self.formatException(record.exc_info)
        return json.dumps(said, default=str)


def write_json(stream: TextIO | None = None) -> None:
    """Log errors and every request of this process to the stream; stderr unless given."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    LOG.addHandler(handler)
    LOG.propagate = False
    ACCESS.setLevel(logging.INFO)
