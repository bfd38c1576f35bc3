"""A server killed at any moment: every answer that got its receipt is there, and none is there twice."""

from __future__ import annotations

import itertools
import random
import socket
import subprocess
import sys
import threading
import time

import httpx
import pytest

from rankdp_web.survey_database import SurveyDatabase
from rankdp_web.surveys import create_survey, new_ticket

SERVE = """
import sys, uvicorn
from rankdp_web.survey_app import server_config
from rankdp_web.survey_database import SurveyDatabase
uvicorn.Server(server_config(SurveyDatabase(sys.argv[1]), port=int(sys.argv[2]))).run()
"""
ITEMS = 8


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Respondents:
    """Threads that send one answer after the other, each until it has its receipt."""

    def __init__(self, url, secret, threads):
        self.url, self.secret, self.done = url, secret, threading.Event()
        self.unsent = iter(itertools.permutations(range(ITEMS)))  # every answer is another ranking
        self.lock, self.receipts, self.outcomes = threading.Lock(), [], []
        self.threads = [threading.Thread(target=self.send) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def send(self):
        with httpx.Client(timeout=20) as client:
            while not self.done.is_set():
                with self.lock:
                    ranking = next(self.unsent)
                token, reply = new_ticket(self.secret), None
                while reply is None and not self.done.is_set():
                    try:
                        reply = client.post(self.url, json={"token": token, "ranking": list(ranking)})
                    except httpx.TransportError:
                        time.sleep(0.01)
                if reply is not None and reply.status_code in (200, 201):
                    with self.lock:
                        self.receipts.append(bytes(ranking))
                        self.outcomes.append(reply.json()["outcome"])

    def stop(self):
        self.done.set()
        for thread in self.threads:
            thread.join()


def kill_again_and_again(address, kills):
    database = SurveyDatabase(address, create=True)
    survey = create_survey(database, "Kills", [str(item) for item in range(ITEMS)], 1, mechanism="reinsertion")
    port, chance = free_port(), random.Random(kills)
    command = [sys.executable, "-c", SERVE, address, str(port)]
    respondents = Respondents(f"http://127.0.0.1:{port}/s/{survey.id}/answers", database.find(survey.id)[1], 3)
    try:
        for _ in range(kills):
            server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            before = len(respondents.receipts)
            until = time.monotonic() + 60
            while len(respondents.receipts) < before + 5:
                assert time.monotonic() < until
                time.sleep(0.002)
            time.sleep(chance.uniform(0, 0.1))
            server.kill()
            server.wait()
    finally:
        respondents.stop()
    stored = database.answers(survey.id)
    database.close()
    assert len(stored) == len(set(stored))
    assert set(respondents.receipts) <= set(stored)
    assert len(stored) <= len(respondents.receipts) + 3  # those that were killed between the disk and the receipt
    assert respondents.outcomes.count("stored") >= 5 * kills - respondents.outcomes.count("before")
    return len(stored), respondents.outcomes.count("before")


@pytest.mark.slow
def test_killed_twice(tmp_path):
    kill_again_and_again(str(tmp_path / "survey.db"), 2)


@pytest.mark.long
@pytest.mark.xdist_group("postgres")
def test_killed_a_hundred_times(address):
    stored, before = kill_again_and_again(address, 100)
    print(stored, before)
    assert before  # some were stored without a receipt, and sent again
