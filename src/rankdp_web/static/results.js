// Keeps the results up to date: asks every few seconds for the part of the page that changes.

const SECONDS = 3;
const part = document.getElementById("results");
let tag = "";

async function refresh() {
  if (document.visibilityState === "visible") {
    try {
      const place = "embedded" in part.dataset ? "embed/part" : "results/part";
      const reply = await fetch(`${place}${location.search}`, { headers: tag ? { "If-None-Match": tag } : {} });
      if (reply.status === 200) {
        tag = reply.headers.get("ETag");
        const open = [...part.querySelectorAll("details")].map((each) => each.open);
        part.innerHTML = await reply.text();
        for (const [i, each] of part.querySelectorAll("details").entries()) each.open = open[i] ?? false;
      }
    } catch {
      // the server is away: the next time will do
    }
  }
  setTimeout(refresh, 1000 * SECONDS);
}

setTimeout(refresh, 1000 * SECONDS);
