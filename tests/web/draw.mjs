// Draws with the page's own sampler, for the tests: reads {module, tables, epsilon, protect, ranking, seed, pool, count, tally} as JSON.
import { readFileSync } from "node:fs";

Math.random = () => {
  throw new Error("only WebCrypto is random");
};
const asked = JSON.parse(readFileSync(0, "utf-8"));
const { draw, secureWords } = await import(asked.module);
const MASK = (1n << 64n) - 1n;

/** SplitMix64 from a seed of its own for each ranking; every eighth word is one of the pool. */
function streamed(seed, pool) {
  let state = BigInt(seed);
  return () => {
    state = (state + 0x9e3779b97f4a7c15n) & MASK;
    let word = state;
    word = ((word ^ (word >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
    word = ((word ^ (word >> 27n)) * 0x94d049bb133111ebn) & MASK;
    word ^= word >> 31n;
    return pool.length && word % 8n === 0n ? pool[Number((word >> 8n) % BigInt(pool.length))] : word;
  };
}

const pool = (asked.pool ?? []).map(BigInt);
const secure = secureWords();
const counts = new Map();
const rankings = [];
for (let i = 0; i < asked.count; i += 1) {
  const words = asked.seed === undefined ? secure : streamed(BigInt(asked.seed) + (BigInt(i) << 32n), pool);
  const { ranking, offset } = draw(asked.tables, asked.epsilon, asked.ranking, words, asked.protect);
  if (asked.tally) counts.set(ranking.join(), (counts.get(ranking.join()) ?? 0) + 1);
  else rankings.push([...ranking, offset]);
}
process.stdout.write(JSON.stringify(asked.tally ? Object.fromEntries(counts) : rankings));
