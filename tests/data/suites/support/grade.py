"""Several assertions on one answer: the total is right, and some words do not occur."""
import json
import sys

answer = json.loads(next(each["content"] for each in json.load(sys.stdin)["agent_events"] if each["type"] == "ANSWER"))
if abs(answer["total"] - 59.7) > 0.001:
    sys.exit(f"the total is {answer['total']}")
if any(word in answer["reply"].lower() for word in ("as an ai", "refund")):
    sys.exit("the reply has a word that must not occur")
