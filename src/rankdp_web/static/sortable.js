// A list that people put in order: by mouse, by touch, by keyboard, and with a screen reader.
//
// It is a listbox whose options have places. Arrow keys go through the list; the space bar takes the option, arrow keys
// then move it, the space bar puts it down and Escape puts it back. A tap or click takes an option for the buttons
// beside the list. "say" gets every change as words for the screen reader.

const KEYS = { ArrowUp: "up", ArrowDown: "down", Home: "top", End: "bottom" };

export function sortable(list, names, order, { changed, say }) {
  const options = new Map(order.map((item) => [item, option(item, names[item])]));
  list.replaceChildren(...options.values());
  let focused = list.firstElementChild;
  let before = null; // where an option stood that was taken with the keyboard
  focused.tabIndex = 0;

  const places = () => [...list.children];
  const placeOf = (row) => places().indexOf(row);
  const taken = () => list.querySelector("[aria-selected=true]");

  function tell(text, row) {
    say(text, { item: row.textContent, place: placeOf(row) + 1, count: list.children.length });
  }

  function focus(row) {
    focused.tabIndex = -1;
    focused = row;
    focused.tabIndex = 0;
    focused.focus({ preventScroll: true });
    focused.scrollIntoView({ block: "nearest" });
  }

  function take(row) {
    taken()?.setAttribute("aria-selected", "false");
    row?.setAttribute("aria-selected", "true");
  }

  function put(row, place) {
    const others = places().filter((other) => other !== row);
    list.insertBefore(row, others[place] ?? null);
    changed(places().map((each) => Number(each.dataset.item)));
  }

  function move(row, where) {
    const [place, last] = [placeOf(row), list.children.length - 1];
    const aims = { up: place - 1, down: place + 1, top: 0, bottom: last };
    put(row, Math.max(0, Math.min(last, aims[where])));
    focus(row);
    tell("moved", row);
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
    } else if (KEYS[event.key] && (isTaken || event.altKey)) {
      move(row, KEYS[event.key]);
    } else if (KEYS[event.key]) {
      const [place, last] = [placeOf(row), list.children.length - 1];
      const aims = { up: place - 1, down: place + 1, top: 0, bottom: last };
      focus(list.children[Math.max(0, Math.min(last, aims[KEYS[event.key]]))]);
    } else {
      return;
    }
    event.preventDefault();
  });

  // A mouse drags a whole row, a finger the handle only: elsewhere it scrolls the page.
  list.addEventListener("pointerdown", (event) => {
    const row = event.target.closest("[role=option]");
    const onHandle = event.target.classList.contains("handle");
    if (!row || event.button !== 0 || (event.pointerType !== "mouse" && !onHandle)) return;
    drag(row, event);
  });

  function drag(row, start) {
    let [moving, y, scrolling] = [false, start.clientY, 0];
    const follow = () => {
      const others = places().filter((other) => other !== row);
      const after = others.filter((other) => middle(other) < y).length;
      if (after !== placeOf(row)) put(row, after);
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
    const onMove = (event) => {
      y = event.clientY;
      if (!moving && Math.abs(y - start.clientY) < 4) return;
      if (!moving) {
        moving = true;
        row.classList.add("dragging");
        scrolling = requestAnimationFrame(scroll);
      }
      event.preventDefault();
      follow();
    };
    const onEnd = () => {
      cancelAnimationFrame(scrolling);
      row.classList.remove("dragging");
      for (const [name, act] of acts) removeEventListener(name, act);
      if (moving) {
        take(null);
        focus(row);
        tell("moved", row);
        list.addEventListener("click", (event) => event.stopImmediatePropagation(), { capture: true, once: true });
        setTimeout(() => list.dispatchEvent(new Event("click")), 0); // where no click follows, use the listener up
      }
    };
    const acts = [["pointermove", onMove], ["pointerup", onEnd], ["pointercancel", onEnd]];
    for (const [name, act] of acts) addEventListener(name, act, { passive: false });
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

  return { moveTaken: (where) => move(taken() ?? focused, where) };
}

function option(item, name) {
  const row = document.createElement("li");
  row.role = "option";
  row.tabIndex = -1;
  row.dataset.item = item;
  row.setAttribute("aria-selected", "false");
  const words = document.createElement("span");
  words.textContent = name;
  const handle = document.createElement("span");
  handle.className = "handle";
  handle.setAttribute("aria-hidden", "true");
  row.append(words, handle);
  return row;
}

function middle(row) {
  const box = row.getBoundingClientRect();
  return box.top + box.height / 2;
}
