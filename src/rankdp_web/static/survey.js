// The respondent's page: rank, see the private copy, send it.
//
// What is secret, the respondent's own ranking, is in "order" here and, while the page is open, in this tab's
// sessionStorage, so that reloading does not lose it. It is gone as soon as the copy is drawn. The copy is drawn once
// and kept in localStorage: the same person gives the same answer again. The only thing that is ever sent is
// {token, ranking}, ranking being the copy, with its public offset where the survey's noise has one; see send().
//
// Nothing is drawn where the tables allow more than the epsilon that the page shows, nor on a page that came over plain
// HTTP, since anybody on the way could have changed it; see refusal().

import { check, draw, secureWords, shuffle } from "./sampler.js";
import { sortable } from "./sortable.js";

const { known, texts } = JSON.parse(document.getElementById("known").textContent);
const KEY = `rankdp survey ${known.survey}`;
const find = (id) => document.getElementById(id);
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

// -- memory: what this browser keeps, and what only this tab does ----------------------------------------------------

const ANSWER = keeper("localStorage"); // the copy that is sent
const SECRET = keeper("sessionStorage"); // the respondent's own ranking

function keeper(where) {
  let here = null; // where the browser stores nothing
  return {
    get() {
      try {
        return JSON.parse(globalThis[where].getItem(KEY)) ?? here;
      } catch {
        return here;
      }
    },
    set(value) {
      here = value;
      try {
        if (value === null) globalThis[where].removeItem(KEY);
        else globalThis[where].setItem(KEY, JSON.stringify(value));
      } catch {
        notice(texts.no_storage);
      }
    },
  };
}

// -- the three steps -------------------------------------------------------------------------------------------------

function notice(words) {
  find("notice").textContent = words;
  find("notice").hidden = !words;
}

function step(name) {
  for (const id of ["rank", "send", "sent"]) find(id).hidden = id !== name;
  if (name !== "rank") find(`${name}-title`).focus();
}

function say(text, values) {
  find("said").textContent = fill(texts[text], values);
}

function isRanking(list) {
  return Array.isArray(list) && [...list].sort((a, b) => a - b).join() === known.items.map((_, i) => i).join();
}

/** The epsilon that the respondent can read, which is the one that counts. */
function shownEpsilon() {
  return find("epsilon").textContent.trim();
}

/** What that epsilon is said to protect: "ranking", the whole answer, or "position", one item's place. */
function shownProtection() {
  return find("epsilon").dataset.protect;
}

/** Why this page draws no copy; empty where it does. */
function refusal() {
  if (!globalThis.isSecureContext) return texts.insecure;
  try {
    check(known.tables, shownEpsilon(), shownProtection());
  } catch {
    return fill(texts.broken_promise, { epsilon: shownEpsilon() });
  }
  return "";
}

function showRanking() {
  const saved = SECRET.get();
  let order = isRanking(saved) ? saved : shuffle(known.items.map((_, i) => i));
  const changed = (now) => {
    order = now;
    SECRET.set(now);
  };
  const list = sortable(find("list"), known.items, order, { changed, say });
  for (const button of document.querySelectorAll("[data-move]"))
    button.addEventListener("click", () => list.moveTaken(button.dataset.move));
  find("done").addEventListener("click", () => {
    const refused = refusal();
    if (refused) {
      notice(refused);
      return;
    }
    const answer = ANSWER.get() ?? {
      token: token(),
      ...draw(known.tables, shownEpsilon(), order, secureWords(), shownProtection()),
      sent: false,
    };
    ANSWER.set(answer);
    SECRET.set(null);
    order = null;
    find("list").replaceChildren();
    find("said").textContent = "";
    showCopy(answer);
  });
  step("rank");
}

function showCopy(answer) {
  for (const copy of document.querySelectorAll(".copy")) {
    copy.replaceChildren(
      ...answer.ranking.map((item) => {
        const row = document.createElement("li");
        row.textContent = known.items[item];
        return row;
      }),
    );
  }
  find("send-button").addEventListener("click", () => send(answer));
  step(answer.sent ? "sent" : "send");
}

async function send(answer) {
  const button = find("send-button");
  button.disabled = true;
  button.textContent = texts.sending;
  notice("");
  const { token, ranking, offset } = answer;
  try {
    const reply = await fetch(`${known.survey}/answers`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(known.tables.offsets ? { token, ranking, offset } : { token, ranking }),
    });
    const { outcome, words } = await reply.json();
    if (reply.ok) {
      ANSWER.set({ ...answer, sent: true });
      if (outcome === "before") find("sent-words").textContent = texts.before_1;
      step("sent");
    } else {
      notice(outcome === "busy" ? texts.failed : fill(texts.refused, { reason: texts[outcome] ?? words }));
    }
  } catch {
    notice(texts.failed);
  }
  button.disabled = false;
  button.textContent = texts.send;
}

/** The invitation behind the # of the link, or the ticket that the page brought along. */
function token() {
  return known.ticket ?? location.hash.slice(1);
}

for (const link of document.querySelectorAll(".language")) link.hash = location.hash; // an invitation stays with us

const answer = ANSWER.get();
if (answer && isRanking(answer.ranking)) showCopy(answer);
else if (refusal()) notice(refusal());
else if (!token()) notice(texts.no_token);
else showRanking();
