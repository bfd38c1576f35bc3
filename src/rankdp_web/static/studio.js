// The cards, the slider, progress, buttons that copy, and buttons that are pressed once. Without it every form still works.

const part = (id) => document.getElementById(id);
const known = part("curves") && JSON.parse(part("curves").textContent);

// The value of a curve between the two nearest of its points, which lie evenly in the logarithm of epsilon.
export function read(curve, epsilon, { least, most }) {
  const place = (Math.log(epsilon / least) / Math.log(most / least)) * (curve.length - 1);
  const at = Math.min(Math.max(place, 0), curve.length - 1);
  const left = Math.min(Math.floor(at), curve.length - 2);
  return curve[left] + (at - left) * (curve[left + 1] - curve[left]);
}

function shown(value, share) {
  if (!share) return `±${Number(value.toPrecision(3))}`;
  if (value < 0.0005) return "below 0.1%";
  return value >= 0.9995 ? "above 99.9%" : `${(100 * value).toFixed(1)}%`;
}

const LARGEST = 14; // above it someone can become all but certain

// As certainty() in rankdp/privacy/guarantee.py: rounded up, so that it is never less than the truth.
function certainty(epsilon) {
  const doubt = (100 / (1 + Math.exp(epsilon))) * (1 - 1e-12);
  const digits = Math.max(1, 1 - Math.floor(Math.log10(doubt)));
  const sure = 100 - Math.floor(doubt * 10 ** digits) / 10 ** digits;
  return epsilon > LARGEST ? "can become all but certain" : `can become at most ${sure.toFixed(digits)}% sure`;
}

function follow(epsilon) {
  part("meaning").textContent = `A snooper who was 50:50 ${certainty(epsilon)}.`;
  for (const cell of document.querySelectorAll("[data-curve]")) {
    cell.textContent = shown(read(known.curves[cell.dataset.curve], epsilon, known), known.share);
  }
  const inside = Math.min(Math.max(epsilon, known.least), known.most);
  const x = known.left + (known.width * Math.log(inside / known.least)) / Math.log(known.most / known.least);
  for (const end of ["x1", "x2"]) part("marker").setAttribute(end, x);
}

if (known) {
  const [slider, field] = [part("slider"), part("epsilon")];
  const place = (epsilon) => (1000 * Math.log(epsilon / known.least)) / Math.log(known.most / known.least);
  const own = () => (part("own").checked = true);
  for (const card of document.querySelectorAll("[name=card]:not(#own)")) {
    card.addEventListener("change", () => {
      field.value = card.value;
      typed();
    });
  }
  slider.addEventListener("input", () => {
    own();
    const epsilon = known.least * (known.most / known.least) ** (slider.value / 1000);
    field.value = Number(epsilon.toPrecision(epsilon < 1 ? 2 : 3));
    follow(Number(field.value));
  });
  const typed = () => {
    const epsilon = Number(field.value);
    if (!(epsilon > 0)) return;
    slider.value = place(epsilon);
    slider.setAttribute("aria-valuetext", `epsilon ${field.value}`);
    follow(epsilon);
  };
  field.addEventListener("input", own);
  field.addEventListener("input", typed);
  slider.addEventListener("input", () => slider.setAttribute("aria-valuetext", `epsilon ${field.value}`));
  typed();
}

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(part(button.dataset.copy).textContent);
    button.textContent = "Copied";
  });
}

const buttons = document.querySelectorAll("form button:not([type=button])");
for (const form of document.querySelectorAll("form")) {
  // after the form has been read, so that the button's own value is sent
  form.addEventListener("submit", () => setTimeout(() => buttons.forEach((one) => (one.disabled = true))));
  form.addEventListener("submit", watch);
}

// Says how far the work is while the server's answer is awaited.
function watch() {
  const look = async () => {
    const { words } = await (await fetch("/progress")).json();
    part("progress").hidden = !words;
    part("progress").textContent = words;
  };
  setInterval(() => look().catch(() => {}), 1000);
}
addEventListener("pageshow", () => buttons.forEach((one) => (one.disabled = false)));
