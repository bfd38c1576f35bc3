// Respondents of a survey without a browser: each loads the page, draws with the page's own sampler, and sends the copy.
//
// node respondents.mjs ADDRESS NUMBER SAMPLER, where SAMPLER is the file that the page loads as static/sampler.js

import { pathToFileURL } from "node:url";

const [address, number, sampler] = process.argv.slice(2);
const { draw, secureWords } = await import(pathToFileURL(sampler));

/** A ranking near the order in which the items are listed: most people agree with it, some do not. */
function taste(items) {
  const weights = items.map((_, item) => [item - 2.5 * Math.log(-Math.log(Math.random())), item]);
  return weights.sort((a, b) => a[0] - b[0]).map(([, item]) => item);
}

async function respond() {
  const page = await (await fetch(address)).text();
  const { known } = JSON.parse(page.split('id="known">')[1].split("</script>")[0]);
  const { ranking, offset } = draw(known.tables, known.epsilon, taste(known.items), secureWords(), known.protect);
  const body = JSON.stringify({ token: known.ticket, ranking, ...(known.tables.offsets && { offset }) });
  const reply = await fetch(`${address}/answers`, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  if (reply.status !== 201) throw new Error(`an answer got ${reply.status}: ${await reply.text()}`);
}

let left = Number(number);
async function some() {
  while (left > 0) {
    left -= 1;
    await respond();
  }
}
await Promise.all(Array.from({ length: 16 }, some));
