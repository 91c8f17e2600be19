#!/usr/bin/env python3
"""A client of Reprise: one message, its answer as it comes, approvals at the terminal.

  python3 turn.py http://127.0.0.1:8000 CHAT MESSAGE
"""
import http.client
import json
import os
import sys
import urllib.error
import urllib.request


def request(server, path, body=None, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None:
        headers["Content-Type"] = "application/json"
        body = json.dumps(body).encode()
    if token := os.environ.get("REPRISE_TOKEN"):
        headers["Authorization"] = f"Bearer {token}"
    try:
        return urllib.request.urlopen(urllib.request.Request(server + path, body, headers))
    except urllib.error.HTTPError as refused:
        error = json.load(refused)["error"]
        sys.exit(f"{error['code']}: {error['message']}")


def events_of(response):
    """The events of a stream. Frames without an id (stream_open, stream_live) are about the stream itself."""
    has_id = False
    for line in response:
        if line.startswith(b"id: "):
            has_id = True
        elif line == b"\n":
            has_id = False
        elif line.startswith(b"data: ") and has_id:
            yield json.loads(line[len(b"data: "):])


def say(server, chat, message):
    """All events of one interaction, also where the connection is lost on the way."""
    response = request(server, f"/chats/{chat}/interactions", {"user_message": message, "on_disconnect": "continue"})
    path, seen = response.headers["Content-Location"], 0
    while True:
        try:
            for event in events_of(response):
                seen = event["seq"]
                yield event
                if event["type"] == "INTERACTION_COMPLETE":
                    return
        except (OSError, http.client.HTTPException):
            pass
        response = request(server, path, Accept="text/event-stream", Last_Event_ID=str(seen))


def main(server, chat, message):
    for event in say(server, chat, message):
        if event["type"] == "TEXT_DELTA":
            print(event["content"], end="", flush=True)
        elif event["type"] == "TOOL_CALL":
            print(f"[{event['tool_name']} {event['tool_input']}]")
        elif event["type"] == "APPROVAL_REQUIRED":
            answer = input(f"May {event['tool_name']} run with {event['tool_input']}? (y/n) ")
            body = {"approved": answer == "y", "arguments_digest": event["arguments_digest"]}
            request(server, f"/approvals/{event['approval_id']}", body).close()
        elif event["type"] == "ERROR":
            print(f"{event['code']}: {event['message']}", file=sys.stderr)
        elif event["type"] == "INTERACTION_COMPLETE":
            print(f"\n{event['status']}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
