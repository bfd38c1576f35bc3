// Draws a private copy of a ranking: the only code of this page that adds noise.
//
// "tables" are whole numbers that the survey's server computed from public facts alone (how many items, epsilon); they
// are the same for everybody, and the same that rankdp's Python code uses. "words" gives random 64-bit numbers. For the
// same words this file and rankdp draw the same ranking: tests compare them. The result is exact: nothing is rounded.
//
// draw(tables, ranking, words) returns the items of "ranking" in a new, random order, and the public offset that this
// order is sent with where the tables have several divisions of the ranking.

const WORD = 64n;
const HALF = 2 ** 32;

/** Random 64-bit numbers from the browser's cryptographic generator. */
export function secureWords() {
  const some = new BigUint64Array(128);
  let used = some.length;
  return () => {
    if (used === some.length) {
      crypto.getRandomValues(some);
      used = 0;
    }
    used += 1;
    return some[used - 1];
  };
}

export function draw(tables, ranking, words) {
  const samplers = { outputs: drawOutput, reinsertion: drawReinsertion, tiers: drawTiers };
  const offset = tables.offsets ? drawMany(tables.offsets, 1, words)[0] : 0;
  return { ranking: samplers[tables.sampler](tables, [...ranking], words, offset), offset };
}

// -- whole numbers with a given law ------------------------------------------------------------------------------

// A law on the numbers first, first + 1, …: cuts[i] is 2^64 times the probability of "first + i or less", rounded down.
// A random word below cuts[i] therefore means "first + i or less", and one above it means more. Only a word that equals
// a cut leaves the question open: resolve() then compares more random digits with the exact probabilities.

/** "count" draws from a law. All first words come before the further words of open cases, as in Python. */
function drawMany(law, count, words) {
  const drawn = Array.from({ length: count }, words);
  return drawn.map((word) => decide(law, word, words));
}

/** The number of a law that a word selects, with further words where it leaves that open. */
function decide(law, word, words) {
  const cuts = cutsOf(law);
  const cell = cuts.findIndex((cut) => word <= cut);
  return word === cuts[cell] ? resolve(law, word, words) : law.first + cell;
}

const known = new WeakMap();
function cutsOf(law) {
  if (!known.has(law)) known.set(law, law.cuts.map(BigInt));
  return known.get(law);
}

/** The number that a uniform real number selects whose first 64 digits did not settle it. */
function resolve(law, word, words) {
  const weights = exactWeights(law);
  const total = weights.reduce((sum, weight) => sum + weight, 0n);
  let digits = word;
  let scale = 1n << WORD;
  for (;;) {
    digits = (digits << WORD) | words();
    scale <<= WORD;
    let sum = 0n;
    for (let k = 0; k < weights.length; k += 1) {
      sum += weights[k];
      if ((digits + 1n) * total <= sum * scale) return k;
      if (digits * total < sum * scale) break; // still open
    }
  }
}

/** Weights w(0), w(1), … as whole numbers; they may be given by the tops and bottoms of w(k + 1) / w(k). */
function exactWeights(law) {
  if (law.weights) return law.weights.map(BigInt);
  const ratios = law.poisson ? poissonRatios(law) : law.ratios.map((pair) => pair.map(BigInt));
  return [...ratios, null].map((_, k) =>
    ratios.reduce((product, [top, bottom], i) => product * (i < k ? top : bottom), 1n),
  );
}

/** Those of the weights mean^k / k! for k = 0 … size. */
function poissonRatios({ size, poisson }) {
  const [top, bottom] = poisson.map(BigInt);
  return Array.from({ length: size }, (_, k) => [top, bottom * BigInt(k + 1)]);
}

/** 32-bit halves of random words, the lower one first. */
function halvesOf(words) {
  let upper = null;
  return () => {
    if (upper !== null) {
      const half = upper;
      upper = null;
      return half;
    }
    const word = words();
    upper = Number(word >> 32n);
    return Number(word & 0xffffffffn);
  };
}

/** A uniform whole number below "bound" (Lemire 2019): a half that would make some numbers likelier is thrown away. */
function uniform(halves, bound) {
  for (;;) {
    const product = halves() * bound; // below 2^53: exact
    if (product % HALF >= HALF % bound) return Math.floor(product / HALF);
  }
}

/** The items at random places change places, as if the list were shuffled from its end. */
export function shuffle(list, halves = halvesOf(secureWords())) {
  for (let place = list.length - 1; place > 0; place -= 1) {
    const other = uniform(halves, place + 1);
    [list[place], list[other]] = [list[other], list[place]];
  }
  return list;
}

/** "count" random numbers of 0 … size - 1 in random order. */
function someOf(size, count, halves) {
  const numbers = Array.from({ length: size }, (_, i) => i);
  for (let i = 0; i < count; i += 1) {
    const other = i + uniform(halves, size - i);
    [numbers[i], numbers[other]] = [numbers[other], numbers[i]];
  }
  return numbers.slice(0, count);
}

// -- short rankings: a table of all possible answers -------------------------------------------------------------

function drawOutput({ items, outputs }, ranking, words) {
  let [cell] = drawMany(outputs, 1, words);
  const left = ranking; // the orders are listed like words in a dictionary
  const drawn = [];
  for (let size = items - 1, orders = factorial(items - 1); size >= 0; orders /= size || 1, size -= 1) {
    drawn.push(...left.splice(Math.floor(cell / orders), 1));
    cell %= orders;
  }
  return drawn;
}

const factorial = (n) => (n < 2 ? 1 : n * factorial(n - 1));

// -- reinsertion: take a random number of items out, put them back at random places ------------------------------

function drawReinsertion({ items, taken }, ranking, words) {
  const [size] = drawMany(taken, 1, words);
  const halves = halvesOf(words);
  const leaving = someOf(items, size, halves);
  const few = Math.min(size, items - size); // of the places, the rarer kind is drawn (Floyd's sample of a set)
  const rare = few === size;
  const given = new Array(items).fill(!rare);
  for (let last = items - few; last < items; last += 1) {
    const place = uniform(halves, last + 1);
    given[given[place] === rare ? last : place] = rare;
  }
  const gone = new Set(leaving);
  const staying = ranking.filter((_, i) => !gone.has(i));
  return given.map((back) => (back ? ranking[leaving.shift()] : staying.shift()));
}

// -- tiers: deal some items out, add the others in the order of the tiers, each at a random place of its tier ------

function drawTiers({ items, attempts, shapes }, ranking, words, offset) {
  const { sizes } = shapes[offset];
  const kept = drawKept(shapes[offset], attempts, words);
  const halves = halvesOf(words);
  const count = kept.reduce((sum, here) => sum + here, 0);
  const leaving = someOf(items, items - count, halves);
  const gone = new Set(leaving);
  const staying = ranking.filter((_, i) => !gone.has(i));
  const tiers = sizes.map((size, b) => leaving.splice(0, size - kept[b]).map((i) => ranking[i]));
  return tiers.flatMap((tier, b) => {
    for (const item of staying.splice(0, kept[b])) {
      const other = tier.length > 0 ? uniform(halves, tier.length + 1) : 0; // each tier stays in random order
      tier.push(item);
      [tier[tier.length - 1], tier[other]] = [tier[other], item];
    }
    return tier;
  });
}

/** How many items each tier keeps: an attempt takes a word for each tier and one that accepts it or not. */
function drawKept({ sizes, left, accept }, attempts, words) {
  const laws = sizes.map((size) => left.find((law) => law.size === size));
  const each = sizes.length + 1;
  const some = []; // words for several attempts at once, as in Python
  for (;;) {
    if (some.length < each) some.push(...Array.from({ length: attempts * each }, words));
    const drawn = some.splice(0, each);
    const kept = sizes.map((size, b) => size - decide(laws[b], drawn[b], words));
    if (accepts(accept, kept, drawn[each - 1], words)) return kept;
  }
}

/** Whether a uniform number that begins with "word" is below q^(j - mode) mode! / j!, j being the items kept. */
function accepts({ sure, mean, mode }, proposal, word, words) {
  const kept = proposal.reduce((sum, here) => sum + here, 0);
  if (word < BigInt(sure[kept])) return true;
  if (word > BigInt(sure[kept]) + 1n) return false;
  const [top, bottom] = mean.map(BigInt);
  let [chance, whole] = [1n, 1n]; // the chance is chance / whole
  for (let j = mode; j < kept; j += 1) [chance, whole] = [chance * top, whole * bottom * BigInt(j + 1)];
  for (let j = mode; j > kept; j -= 1) [chance, whole] = [chance * bottom * BigInt(j), whole * top];
  let digits = word;
  let scale = 1n << WORD;
  for (;;) {
    if ((digits + 1n) * whole <= chance * scale) return true;
    if (digits * whole >= chance * scale) return false;
    digits = (digits << WORD) | words();
    scale <<= WORD;
  }
}
