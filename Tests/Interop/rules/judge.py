"""Hearth's judgement of cases, by the program hearth-judge."""

import json
import subprocess


class Judge:
    """One process of hearth-judge, asked line by line."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"hearth-judge ended at {json.dumps(question)[:2000]}")
        return json.loads(answer)

    def set_rules(self, text):
        """Sets the rules; returns the error's text, or None."""
        return self.ask({"rules": text}).get("error")
