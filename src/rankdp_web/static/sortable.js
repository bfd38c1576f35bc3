// A list that people put in order: by mouse, by touch, by keyboard, and with a screen reader.
//
// The list is a listbox whose options have places. Arrow keys go through it; the space bar takes an option, arrow keys
// then move it, the space bar puts it down and Escape puts it back. A tap takes an option for the buttons next to the
// list. A mouse drags a whole row at once; a finger drags the handle at once, and the row after a long press, so that
// it can scroll. What is not ranked yet waits in the pool, a list of buttons: a tap puts an item at the end of the
// ranking. "say" gets every change as words for the screen reader.

const KEYS = { ArrowUp: "up", ArrowDown: "down", Home: "top", End: "bottom" };
const LONG_PRESS = 350; // milliseconds
const SLIP = 8; // pixels that a finger may move during a long press
const GLIDE = { duration: 170, easing: "cubic-bezier(0.2, 0, 0, 1)" };

/**
 * list, pool: the elements; items: [{name, description, image}]; ranked, rest: item numbers;
 * most: how many may be ranked; changed(ranked, rest): after every change; taken(row or null): what buttons would move.
 */
export function sortable(list, pool, items, { ranked, rest, most }, { changed, say, taken: onTaken }) {
  list.replaceChildren(...ranked.map((item) => option(item, items[item])));
  pool.replaceChildren(...rest.map((item) => poolRow(item, items[item])));
  let before = null; // where an option stood that was taken with the keyboard

  const places = () => [...list.children];
  const placeOf = (row) => places().indexOf(row);
  const taken = () => list.querySelector("[aria-selected=true]");
  const numbers = (element) => [...element.children].map((row) => Number(row.dataset.item));

  function rove() {
    for (const [element, part] of [[list, "[role=option]"], [pool, "button"]]) {
      const all = [...element.querySelectorAll(part)];
      if (all.length && !all.some((each) => each.tabIndex === 0)) all[0].tabIndex = 0;
    }
  }

  function tell(text, row) {
    say(text, { item: items[row.dataset.item].name, place: placeOf(row) + 1, count: list.children.length });
  }

  function focus(target) {
    const element = target.closest("ol, ul");
    for (const each of element.querySelectorAll('[tabindex="0"]')) each.tabIndex = -1;
    target.tabIndex = 0;
    target.focus({ preventScroll: true });
    target.scrollIntoView({ block: "nearest" });
  }

  function take(row) {
    taken()?.setAttribute("aria-selected", "false");
    row?.setAttribute("aria-selected", "true");
    onTaken(row);
  }

  /** Change the lists; rows glide from where they were. */
  function change(act, held = null) {
    const rows = [...list.children, ...pool.children].filter((row) => row !== held);
    const tops = rows.map((row) => row.getBoundingClientRect().top);
    act();
    full();
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches)
      rows.forEach((row, i) => {
        const step = tops[i] - row.getBoundingClientRect().top;
        if (step && row.isConnected) row.animate([{ transform: `translateY(${step}px)` }, { transform: "none" }], GLIDE);
      });
    changed(numbers(list), numbers(pool));
  }

  function full() {
    const closed = list.children.length >= most;
    for (const button of pool.querySelectorAll("button")) button.disabled = closed;
    rove();
  }

  function put(row, place, held = null) {
    const others = places().filter((other) => other !== row);
    change(() => list.insertBefore(row, others[place] ?? null), held);
  }

  function aim(place, last, where) {
    return Math.max(0, Math.min(last, { up: place - 1, down: place + 1, top: 0, bottom: last }[where]));
  }

  function move(row, where) {
    put(row, aim(placeOf(row), list.children.length - 1, where));
    focus(row);
    tell("moved", row);
  }

  function add(button) {
    const row = option(button.parentElement.dataset.item, items[button.parentElement.dataset.item]);
    const next = button.parentElement.nextElementSibling ?? button.parentElement.previousElementSibling;
    change(() => {
      button.parentElement.remove();
      list.append(row);
    });
    tell("added", row);
    const target = next?.querySelector("button:not(:disabled)");
    if (target) focus(target);
    else focus(row);
  }

  function remove(row) {
    const item = row.dataset.item;
    if (!pool.dataset.used || !row) return;
    const next = row.nextElementSibling ?? row.previousElementSibling;
    take(null);
    change(() => {
      row.remove();
      pool.prepend(poolRow(item, items[item]));
    });
    say("removed", { item: items[item].name });
    focus(next ?? pool.querySelector("button"));
  }

  list.addEventListener("keydown", (event) => {
    const row = event.target.closest("[role=option]");
    if (!row || event.ctrlKey || event.metaKey) return;
    const isTaken = row === taken();
    if (event.key === " " || event.key === "Enter") {
      take(isTaken ? null : row);
      before = isTaken ? null : placeOf(row);
      tell(isTaken ? "dropped" : "picked", row);
    } else if (event.key === "Escape" && isTaken) {
      if (before !== null) put(row, before);
      take(null);
      focus(row);
      tell("dropped", row);
    } else if ((event.key === "Delete" || event.key === "Backspace") && pool.dataset.used) {
      remove(row);
    } else if (KEYS[event.key] && (isTaken || event.altKey)) {
      move(row, KEYS[event.key]);
    } else if (KEYS[event.key]) {
      focus(list.children[aim(placeOf(row), list.children.length - 1, KEYS[event.key])]);
    } else {
      return;
    }
    event.preventDefault();
  });

  pool.addEventListener("keydown", (event) => {
    const row = event.target.closest("li");
    if (!row || !KEYS[event.key]) return;
    const rows = [...pool.children];
    focus(rows[aim(rows.indexOf(row), rows.length - 1, KEYS[event.key])].querySelector("button"));
    event.preventDefault();
  });

  pool.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button && !button.disabled) add(button);
  });

  // -- dragging --------------------------------------------------------------------------------------------------

  let pressing = null; // the timer of a long press
  let dragging = false;

  list.addEventListener("pointerdown", (event) => {
    const row = event.target.closest("[role=option]");
    if (!row || event.button !== 0 || dragging) return;
    if (event.pointerType === "mouse" || event.target.closest(".handle")) {
      drag(row, event, false);
      return;
    }
    const stop = () => {
      clearTimeout(pressing);
      for (const name of ["pointermove", "pointerup", "pointercancel"]) removeEventListener(name, look);
    };
    const look = (now) => {
      if (now.type !== "pointermove" || Math.hypot(now.clientX - event.clientX, now.clientY - event.clientY) > SLIP) stop();
    };
    for (const name of ["pointermove", "pointerup", "pointercancel"]) addEventListener(name, look);
    pressing = setTimeout(() => {
      stop();
      drag(row, event, true);
    }, LONG_PRESS);
  });
  list.addEventListener("contextmenu", (event) => {
    if (event.pointerType !== "mouse") event.preventDefault(); // a long press is ours
  });
  // the browser scrolls unless the first move is ours
  list.addEventListener("touchmove", (event) => dragging && event.cancelable && event.preventDefault(), { passive: false });

  function drag(row, start, atOnce) {
    let [y, scrolling] = [start.clientY, 0];
    const grip = start.clientY - row.getBoundingClientRect().top;
    const top = () => list.getBoundingClientRect().top;
    const follow = () => {
      const here = y - top();
      const others = places().filter((other) => other !== row);
      const after = others.filter((other) => other.offsetTop + other.offsetHeight / 2 < here).length;
      if (after !== placeOf(row)) put(row, after, row);
      row.style.transform = `translateY(${here - grip - row.offsetTop}px)`;
    };
    const scroll = () => {
      const edge = 70;
      const step = y < edge ? y - edge : Math.max(0, y - (innerHeight - 2 * edge));
      if (step) {
        scrollBy(0, step / 5);
        follow();
      }
      scrolling = requestAnimationFrame(scroll);
    };
    const begin = () => {
      dragging = true;
      row.classList.add("dragging");
      scrolling = requestAnimationFrame(scroll);
    };
    const onMove = (event) => {
      y = event.clientY;
      if (!dragging && Math.abs(y - start.clientY) < 4) return;
      if (!dragging) begin();
      event.preventDefault();
      follow();
    };
    const onEnd = () => {
      cancelAnimationFrame(scrolling);
      for (const [name, act] of acts) removeEventListener(name, act);
      if (!dragging) return;
      dragging = false;
      const from = row.getBoundingClientRect().top;
      row.classList.remove("dragging");
      row.style.transform = "";
      const step = from - row.getBoundingClientRect().top;
      if (step) row.animate([{ transform: `translateY(${step}px)` }, { transform: "none" }], GLIDE);
      take(null);
      focus(row);
      tell("moved", row);
      list.addEventListener("click", (event) => event.stopImmediatePropagation(), { capture: true, once: true });
      setTimeout(() => list.dispatchEvent(new Event("click")), 0); // where no click follows, use the listener up
    };
    const acts = [["pointermove", onMove], ["pointerup", onEnd], ["pointercancel", onEnd]];
    for (const [name, act] of acts) addEventListener(name, act, { passive: false });
    if (atOnce) begin();
  }

  list.addEventListener("click", (event) => {
    const row = event.target.closest?.("[role=option]");
    if (!row) return;
    const isTaken = row === taken();
    take(isTaken ? null : row);
    before = null;
    focus(row);
    tell(isTaken ? "dropped" : "picked", row);
  });

  if (rest.length || ranked.length < items.length) pool.dataset.used = "yes";
  full();
  return {
    moveTaken: (where) => taken() && (where === "out" ? remove(taken()) : move(taken(), where)),
    letGo: () => take(null),
  };
}

/** Name, description and picture of an item. The picture is the same element in every row: none is loaded again. */
function face({ name, description, image }) {
  const parts = [];
  if (image) {
    const frame = document.createElement("span");
    frame.className = "picture";
    frame.append(image);
    parts.push(frame);
  }
  const words = document.createElement("span");
  words.className = "words";
  const title = document.createElement("span");
  title.className = "name";
  title.dir = "auto";
  title.textContent = name;
  words.append(title);
  if (description) {
    const more = document.createElement("span");
    more.className = "more";
    more.dir = "auto";
    more.textContent = description;
    words.append(more);
  }
  parts.push(words);
  return parts;
}

function option(item, what) {
  const row = document.createElement("li");
  row.role = "option";
  row.tabIndex = -1;
  row.dataset.item = item;
  row.setAttribute("aria-selected", "false");
  const handle = document.createElement("span");
  handle.className = "handle";
  handle.setAttribute("aria-hidden", "true");
  row.append(...face(what), handle);
  return row;
}

function poolRow(item, what) {
  const row = document.createElement("li");
  row.dataset.item = item;
  const button = document.createElement("button");
  button.type = "button";
  button.tabIndex = -1;
  button.append(...face(what));
  row.append(button);
  return row;
}
