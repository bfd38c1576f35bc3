// The organiser's form: what an epsilon means, pictures, and a button that copies the link.

const part = (id) => document.getElementById(id);
const [LEAST, MOST] = [0.1, 10];

function items() {
  return part("items").value.split("\n").filter((line) => line.trim()).length;
}

let asking = 0;
async function explain() {
  asking += 1;
  const mine = asking;
  await new Promise((resolve) => setTimeout(resolve, 250)); // while somebody types
  if (mine !== asking) return;
  const asked = { items: Math.max(items(), 2), epsilon: part("epsilon").value, answers: part("answers").value, top: part("top").value };
  const language = new URLSearchParams(location.search).get("lang");
  try {
    const reply = await fetch(`plan?${new URLSearchParams(language ? { ...asked, lang: language } : asked)}`);
    const words = await reply.json();
    if (mine !== asking) return;
    part("promise").textContent = words.promise;
    part("accuracy").textContent = items() < 2 ? "" : words.accuracy; // of what is not known yet
  } catch {
    // the server is away: the form says so when it is sent
  }
}

function place(epsilon) {
  return (100 * Math.log(epsilon / LEAST)) / Math.log(MOST / LEAST);
}

/** The fields and the pictures in one request: a line with names and sizes, the pictures, then the fields. */
async function sendForm(form) {
  const data = new URLSearchParams([...new FormData(form)].filter(([, value]) => typeof value === "string"));
  const files = [...part("pictures").files];
  const head = new URLSearchParams(files.map((file) => [file.name, String(file.size)]));
  const reply = await fetch("new" + location.search.replace(/^\?draft=[^&]*&?/, "?"), {
    method: "POST",
    headers: { "Content-Type": "application/x-rankdp-form" },
    body: new Blob([`${head}\n`, ...files, data.toString()]),
  });
  if (reply.redirected) {
    location.href = reply.url;
    return;
  }
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  part("problem").textContent = page.getElementById("problem")?.textContent ?? reply.statusText;
  part("problem").hidden = false;
  part("problem").scrollIntoView({ block: "center" });
}

if (part("new")) {
  const [slider, field] = [part("slider"), part("epsilon")];
  slider.addEventListener("input", () => {
    field.value = Number((LEAST * (MOST / LEAST) ** (slider.value / 100)).toPrecision(2));
    slider.setAttribute("aria-valuetext", `epsilon ${field.value}`);
    explain();
  });
  field.addEventListener("input", () => {
    const epsilon = Number(field.value.replace(",", "."));
    if (epsilon > 0) slider.value = place(epsilon);
    explain();
  });
  for (const id of ["answers", "items", "top"]) part(id).addEventListener("input", explain);
  slider.value = place(Number(field.value.replace(",", ".")) || 2);
  part("new").addEventListener("submit", (event) => {
    event.preventDefault();
    sendForm(event.target);
  });
  explain();
}

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(part(button.dataset.copy).textContent);
    button.textContent = button.dataset.copied;
  });
}
