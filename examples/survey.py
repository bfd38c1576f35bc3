"""A survey from its opening to its results: 500 respondents whose noise is drawn by the page's own script, in Node."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import threading
import time
import webbrowser
from contextlib import suppress
from pathlib import Path

import uvicorn

import rankdp_web
from rankdp_web.survey_app import server_config
from rankdp_web.survey_database import SurveyDatabase
from rankdp_web.survey_results import survey_results
from rankdp_web.surveys import collected, create_survey

RESPONDENTS = 500
ITEMS = ("a cycle path", "a park", "a library", "a swimming pool", "more buses", "a car park", "a shopping centre")

node = shutil.which("node")
if node is None:
    print("This example needs Node, which runs the script of the page without a browser.")
    sys.exit()
with tempfile.TemporaryDirectory() as directory:
    database = SurveyDatabase(Path(directory, "survey.db"), create=True)
    survey = create_survey(database, "What does the town need first?", ITEMS, epsilon=2)
    server = uvicorn.Server(server_config(database, tickets_per_minute=10 * RESPONDENTS))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        address = f"http://127.0.0.1:{port}/s/{survey.id}"
        began = time.perf_counter()
        sampler = Path(rankdp_web.__file__).with_name("static") / "sampler.js"
        respondents = Path(__file__).with_name("respondents.mjs")
        subprocess.run([node, respondents, address, str(RESPONDENTS), sampler], check=True)
        print(
            f"{RESPONDENTS} respondents in {time.perf_counter() - began:.1f} s; the results, while the survey is open:"
        )
        report = survey_results(survey, collected(database, survey)).report
        for record in report.records:
            print(f"  {record['rank']}  {record['item']:18} {record['low']:5.2f} … {record['high']:5.2f}")
        print(report.words[0])
        print(report.headline)
        if "--open" in sys.argv:
            print(f"The page: {address}\nIts results: {address}/results\nStop with Ctrl-C.")
            webbrowser.open(f"{address}/results")
            with suppress(KeyboardInterrupt):
                thread.join()
    finally:
        server.should_exit = True
        thread.join()
