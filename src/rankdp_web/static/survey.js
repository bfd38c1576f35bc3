// The respondent's page: check the link, rank, see what would be sent, send it.
//
// What is secret, the respondent's own ranking, is in "own" here and, while the page is open, in this tab's
// sessionStorage, so that reloading does not lose it. It is deleted as soon as the copy is sent. The copy is drawn once
// and kept in localStorage, for each survey and invitation: the same person gives the same answer again. The only
// things that are ever sent are the invitation, to learn whether it is known, and {token, ranking}, ranking being the
// copy, with its public offset where the survey's noise has one; see send().
//
// Nothing is drawn where the tables allow more than the epsilon that the page shows, nor on a page that came over plain
// HTTP, since anybody on the way could have changed it; see refusal().

import { check, draw, secureWords, shuffle } from "./sampler.js";
import { sortable } from "./sortable.js";

const { known, texts } = JSON.parse(document.getElementById("known").textContent);
const TOP = known.rank_top || known.items.length; // how many items an answer has
const LONG = 12; // items from which on they are tapped in order, not moved about
const PATIENCE = 500; // milliseconds for which a new button does not react: the second tap of two is not meant for it
const IDLE = 120_000; // milliseconds after which a kiosk starts again
const find = (id) => document.getElementById(id);
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const items = known.items.map((name, i) => ({
  name,
  description: known.descriptions[i],
  image: known.pictures[i] && pictureAt(`${known.id}/pictures/${known.pictures[i]}`),
}));

/** A picture that is loaded now and once, and shown when it is here: what is asked for, and when, follows no ranking. */
function pictureAt(address) {
  const image = new Image();
  image.alt = "";
  image.draggable = false;
  image.hidden = true; // browsers load first what they show
  image.addEventListener("load", () => (image.hidden = false));
  image.src = address;
  return image;
}

// -- memory: what this browser keeps, and what only this tab does ----------------------------------------------------

/** The invitation behind the # of the link, or the ticket that the page brought along. */
const token = known.ticket ?? location.hash.slice(1);
const KEY = `rankdp survey ${known.id}${known.invited ? ` ${token}` : ""}`;
const forgets = known.kiosk || known.preview;
const ANSWER = keeper("localStorage"); // the copy that is sent
const SECRET = keeper("sessionStorage"); // the respondent's own ranking

function keeper(where) {
  let here = null; // where the browser stores nothing
  return {
    get() {
      if (forgets) return here;
      try {
        return JSON.parse(globalThis[where].getItem(KEY)) ?? here;
      } catch {
        return here;
      }
    },
    set(value) {
      here = value;
      if (forgets) return;
      try {
        if (value === null) globalThis[where].removeItem(KEY);
        else globalThis[where].setItem(KEY, JSON.stringify(value));
      } catch {
        notice(texts.no_storage);
      }
    },
  };
}

// -- the steps -------------------------------------------------------------------------------------------------------

function notice(words) {
  find("notice").textContent = words;
  find("notice").hidden = !words;
}

function step(name) {
  for (const id of ["link", "used", "rank", "send", "sent"]) find(id).hidden = id !== name;
  document.body.dataset.step = name;
  if (name !== "rank") {
    scrollTo(0, 0);
    find(`${name}-title`).focus({ preventScroll: true });
  }
}

function say(text, values) {
  find("said").textContent = fill(texts[text], values);
}

function isRanking(list, length = items.length) {
  return Array.isArray(list) && list.length === length && list.every((i) => items[i]) && new Set(list).size === length;
}

/** The epsilon that the respondent can read, which is the one that counts. */
function shownEpsilon() {
  return find("epsilon").textContent.trim();
}

/** What that epsilon protects: "ranking", the whole answer, or "position", one item's place. */
function shownProtection() {
  return find("epsilon").dataset.protect;
}

/** Why this page draws no copy; empty where it does. */
function refusal() {
  if (!globalThis.isSecureContext) return texts.insecure;
  try {
    check(known.tables, shownEpsilon(), shownProtection());
    checkWords(shownEpsilon());
  } catch {
    return fill(texts.broken_promise, { epsilon: shownEpsilon() });
  }
  return "";
}

/** Throws unless the sentences about privacy say how sure this epsilon may make someone who was 50:50, or more. */
function checkWords(epsilon) {
  const [a, b = 1] = epsilon.split("/").map(Number);
  const least = 100 / (1 + Math.exp(-a / b)) - 1e-9;
  for (const element of document.querySelectorAll(".promised, .promises")) {
    const said = [...element.textContent.matchAll(/(\d+(?:[.,]\d+)?)\s*%/g)].map(([, sure]) => Number(sure.replace(",", ".")));
    if (!said.length || said.some((sure) => sure < least)) throw new Error(`${least} %`);
  }
}

// -- 1. is the invitation known? -------------------------------------------------------------------------------------

/** "fresh", "before", "unknown", "closed" or "failed". */
async function invitation(given) {
  try {
    const reply = await fetch(`${known.id}/invitation`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token: given }),
    });
    return (await reply.json()).outcome;
  } catch {
    return "failed";
  }
}

function showLink() {
  find("link-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const given = find("link-given").value.trim().replace(/^.*#/, "");
    const outcome = given ? await invitation(given) : "unknown";
    if (outcome === "fresh" || outcome === "before") location.hash = given; // see the listener
    else notice(outcome === "unknown" || outcome === "malformed" ? texts.link_unknown : texts[outcome] ?? texts.link_failed);
  });
  step("link");
}

// -- 2. rank ---------------------------------------------------------------------------------------------------------

const pooled = items.length > LONG || TOP < items.length;

function start() {
  const saved = SECRET.get();
  if (saved && isRanking([...saved.ranked, ...saved.rest])) return saved;
  const order = shuffle(items.map((_, i) => i));
  const fresh = { ranked: pooled ? [] : order, rest: pooled ? order : [], moved: false };
  SECRET.set(fresh); // the same order for the whole visit
  return fresh;
}

function showRanking() {
  let now = start();
  const show = () => {
    find("pool-part").hidden = !now.rest.length;
    find("pool-part").classList.toggle("full", now.ranked.length >= TOP);
    find("how-pool").hidden = !pooled;
    find("how").hidden = pooled;
    find("done").disabled = now.ranked.length < (known.rank_top || 1);
    find("count").hidden = !pooled;
    find("count").textContent = `${now.ranked.length} / ${TOP}`;
  };
  const changed = (ranked, rest) => {
    now = { ranked, rest, moved: true };
    SECRET.set(now);
    show();
  };
  const taken = (row) => (find("moves").hidden = !row);
  const list = sortable(find("list"), find("pool"), items, { ...now, most: TOP }, { changed, say, taken });
  for (const button of document.querySelectorAll("[data-move]")) {
    if (button.dataset.move === "out") button.hidden = !pooled;
    button.addEventListener("click", () => list.moveTaken(button.dataset.move));
  }
  find("done").addEventListener("click", async () => {
    const refused = refusal();
    if (refused) {
      notice(refused);
      return;
    }
    list.letGo();
    const doubt = now.rest.length && !known.rank_top
      ? fill(texts.not_all, { count: now.ranked.length, all: items.length })
      : now.moved ? "" : texts.not_moved;
    if (doubt && !(await sure(doubt))) return;
    const own = [...now.ranked, ...now.rest]; // behind a list of the best, the others in any order
    const answer = ANSWER.get() ?? {
      token,
      ...draw(known.tables, shownEpsilon(), own, secureWords(), shownProtection()),
      sent: false,
    };
    ANSWER.set(answer);
    SECRET.set({ ranked: own, rest: [], moved: true, drawn: true });
    find("list").replaceChildren();
    find("said").textContent = "";
    showCopy(answer);
  });
  show();
  step("rank");
}

/** A button that reacts in a moment. */
function waken(button) {
  button.disabled = true;
  setTimeout(() => (button.disabled = false), PATIENCE);
}

/** Ask before an order counts that nobody made. */
function sure(words) {
  const dialog = find("sure");
  find("sure-words").textContent = words;
  dialog.returnValue = "";
  waken(dialog.querySelector("[value=yes]"));
  dialog.showModal();
  return new Promise((resolve) =>
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }),
  );
}

// -- 3. see both, 4. send ----------------------------------------------------------------------------------------------

function fillList(list, order, mark = () => null) {
  list.replaceChildren(
    ...order.map((item) => {
      const row = document.createElement("li");
      row.dataset.item = item;
      const words = document.createElement("span");
      words.className = "name";
      words.dir = "auto";
      words.textContent = items[item].name;
      row.append(words);
      const note = mark(item);
      if (note) row.append(note);
      return row;
    }),
  );
}

/** How far an item was moved up, if above 0, or down; null for one that is new. */
function markOf(step) {
  const note = document.createElement("span");
  note.className = "mark";
  const seen = document.createElement("span");
  seen.setAttribute("aria-hidden", "true");
  seen.textContent = step === null ? texts.new : `${step > 0 ? "↑" : "↓"}${Math.abs(step)}`;
  const heard = document.createElement("span");
  heard.className = "unseen";
  const words = step === null ? texts.moved_new : step > 0 ? texts.moved_up : texts.moved_down;
  heard.textContent = ` ${fill(words, { places: Math.abs(step) })}`;
  note.append(seen, heard);
  return note;
}

function showCopy(answer) {
  const saved = SECRET.get();
  const own = !answer.sent && saved && isRanking(saved.ranked) ? saved.ranked.slice(0, TOP) : null;
  const stepOf = (item) => (own.includes(item) ? own.indexOf(item) - answer.ranking.indexOf(item) : null);
  const moved = own ? answer.ranking.filter((item) => stepOf(item) !== 0) : [];
  for (const copy of document.querySelectorAll(".copy"))
    fillList(copy, answer.ranking, (item) => (moved.includes(item) ? markOf(stepOf(item)) : null));
  find("own-part").hidden = !own;
  if (own) fillList(find("own"), own);
  const count = { count: moved.length, all: TOP };
  find("moved-words").textContent = own ? fill(moved.length ? texts.moved_count : texts.moved_none, count) : texts.own_gone;
  const button = find("send-button");
  waken(button);
  button.addEventListener("click", () => send(answer));
  step(answer.sent ? "sent" : "send");
}

async function send(answer) {
  const button = find("send-button");
  if (known.preview) {
    notice(texts.preview_send);
    return;
  }
  button.disabled = true;
  button.textContent = texts.sending;
  notice("");
  const { token: with_, ranking, offset } = answer;
  try {
    const reply = await fetch(`${known.id}/answers`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(known.tables.offsets ? { token: with_, ranking, offset } : { token: with_, ranking }),
    });
    const { outcome, words } = await reply.json();
    if (reply.ok) {
      SECRET.set(null);
      ANSWER.set({ ...answer, sent: true });
      find("own").replaceChildren();
      if (outcome === "before") find("sent-words").textContent = texts.before_1;
      for (const copy of document.querySelectorAll(".copy")) fillList(copy, ranking);
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

// -- kiosks: many people, one device, nothing kept --------------------------------------------------------------------

function startAgain() {
  if (known.invited) history.replaceState(null, "", location.pathname + location.search);
  location.reload();
}

if (known.kiosk && !known.preview) {
  let timer = setTimeout(startAgain, IDLE);
  for (const name of ["pointerdown", "keydown"])
    addEventListener(name, () => {
      clearTimeout(timer);
      timer = setTimeout(startAgain, IDLE);
    });
  find("next").addEventListener("click", startAgain);
}

find("more").addEventListener("click", () => {
  find("privacy").focus({ preventScroll: true }); // not by a link: the # is the invitation's
  find("privacy").scrollIntoView();
});
addEventListener("hashchange", () => location.reload()); // another invitation in the same tab
addEventListener("storage", ({ key }) => key === KEY && location.reload()); // a copy was drawn or sent in another tab
for (const link of document.querySelectorAll(".language")) link.hash = location.hash; // an invitation stays with us

async function open() {
  const answer = ANSWER.get();
  if (answer && (answer.sent || !SECRET.get()?.drawn)) SECRET.set(null); // the copy is that of another tab's ranking
  if (answer && isRanking(answer.ranking, TOP)) return showCopy(answer);
  if (refusal()) return notice(refusal());
  if (known.preview || !known.invited) return showRanking();
  const outcome = token ? await invitation(token) : "unknown";
  if (outcome === "fresh") return showRanking();
  if (outcome === "before") return step("used");
  if (outcome === "unknown" || outcome === "malformed") return showLink();
  return notice(texts[outcome] ?? texts.link_failed);
}

open();
