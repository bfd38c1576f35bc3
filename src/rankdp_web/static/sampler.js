// Draws a private copy of a ranking: the only code of this page that adds noise.
//
// "tables" are whole numbers that the survey's server computed from public facts alone (how many items, epsilon); they
// are the same for everybody, and the same that rankdp's Python code uses. "words" gives random 64-bit numbers. For the
// same words this file and rankdp draw the same ranking: tests compare them. The result is exact: nothing is rounded.
//
// draw(tables, epsilon, ranking, words, protect) returns the items of "ranking" in a new, random order, and the public
// offset that this order is sent with where the tables have several divisions of the ranking. With sampler "top" it
// returns a list of "length" items only: "ranking" begins with the respondent's list, and all other items follow it in
// any order. It first proves, in whole
// numbers, that the tables keep the promise of "epsilon" about what "protect" says, the whole "ranking" or one item's
// "position", and throws a BrokenPromise where they do not: see the end.

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

export function draw(tables, epsilon, ranking, words, protect = "position") {
  check(tables, epsilon, protect);
  need(tables.items === ranking.length, "items");
  if (tables.sampler === "top") return { ranking: drawTop(tables, epsilon, ranking, words), offset: 0 };
  if (tables.sampler === "ball") return { ranking: drawBall(tables, epsilon, [...ranking], words), offset: 0 };
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

/** The ratios of the weights mean^k / k! for k = 0 … size. */
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

// -- the ball: any ranking at all, or with some probability one with at most "radius" pairs out of order -----------

/** The sums c(0), c(0) + c(1), …, where c(k) orders of n items have k pairs out of order. */
function countsUpTo(n) {
  while (counts.length <= n) {
    const [before, size] = [counts[counts.length - 1], counts.length];
    const upTo = (k) => (k < 0 ? 0n : before[Math.min(k, before.length - 1)]);
    let sum = 0n; // the last of "size" items overtakes 0 to size - 1 others
    counts.push(Array.from({ length: (size * (size - 1)) / 2 + 1 }, (_, k) => (sum += upTo(k) - upTo(k - size))));
  }
  return counts[n];
}
const counts = [[1n], [1n]];

/** The weights of "any ranking" and of "one in the ball", which has the weight e^epsilon - 1 for each of its rankings. */
function ballWeights({ items, radius }, epsilon) {
  const [power, one] = powerOfE(epsilon); // rounded down
  return [countsUpTo(items).at(-1) * one, countsUpTo(items)[radius] * (power - one)];
}

function drawBall({ items, radius }, epsilon, ranking, words) {
  const weights = ballWeights({ items, radius }, epsilon);
  let left = pick(weights, words) === 1 ? radius : Infinity;
  const overtaken = [];
  for (let size = items; size > 1; size -= 1) {
    const shorter = countsUpTo(size - 1);
    const ways = Array.from({ length: size }, (_, v) => (v > left ? 0n : shorter[Math.min(left - v, shorter.length - 1)]));
    overtaken[size - 1] = pick(ways, words);
    left -= overtaken[size - 1];
  }
  const drawn = [];
  for (let t = 0; t < items; t += 1) drawn.splice(t - (overtaken[t] ?? 0), 0, ranking[t]);
  return drawn;
}

/** A number 0, 1, … with the probabilities of these weights. */
function pick(weights, words) {
  const total = weights.reduce((sum, weight) => sum + weight, 0n);
  const last = (1n << WORD) - 1n;
  let sum = 0n;
  const cuts = weights.map((weight) => {
    sum += weight;
    const cut = (sum << WORD) / total;
    return cut < last ? cut : last;
  });
  return decide({ first: 0, cuts, weights }, words(), words);
}

// -- the ball on lists of the best "length" items: any list, or one that keeps enough of its items, in place or not ---

/** The lists that keep z items, h of them in place, around a list of k of n items: [z, h, how many], nearest first. */
function listCells({ items, length }) {
  const cells = [];
  for (let distance = 0; distance <= 2 * length; distance += 1) {
    for (let z = length; z >= 0; z -= 1) {
      const h = 2 * length - distance - z;
      if (h < 0 || h > z || length - z > items - length) continue;
      const ways = choose(length, h) * movedWays(length - h, z - h) * falling(items - length, length - z);
      if (ways > 0n) cells.push([z, h, ways]);
    }
  }
  return cells;
}

/** n (n - 1) … (n - r + 1) */
function falling(n, r) {
  let product = 1n;
  for (let i = 0; i < r; i += 1) product *= BigInt(n - i);
  return product;
}

const choose = (n, r) => (r > n ? 0n : falling(n, r) / falling(r, r));

/** How many ways there are to move r of the items of m places to others of these places, none to its own. */
function movedWays(m, r) {
  let sum = 0n;
  for (let j = 0; j <= r; j += 1) {
    sum += (j % 2 ? -1n : 1n) * choose(m, j) * choose(m - j, r - j) ** 2n * falling(r - j, r - j);
  }
  return sum;
}

/** The cells of the ball, and the weights of "any list" and of "one in the ball". */
function topWeights({ items, length, radius }, epsilon) {
  const cells = listCells({ items, length });
  const inside = cells.map(([z, h, ways]) => (2 * length - z - h <= radius ? ways : 0n));
  const [power, one] = powerOfE(epsilon); // rounded down
  const within = inside.reduce((sum, ways) => sum + ways, 0n);
  return { cells, inside, within, weights: [falling(items, length) * one, within * (power - one)] };
}

function drawTop(tables, epsilon, ranking, words) {
  const { items, length } = tables;
  const { cells, inside, weights } = topWeights(tables, epsilon);
  const ways = pick(weights, words) === 1 ? inside : cells.map(([, , all]) => all);
  const [kept, inPlace] = cells[pick(ways, words)];
  const listed = new Array(length).fill(null);
  for (;;) { // until no item that moves comes back to its own place
    const places = front(Array.from({ length }, (_, i) => i), kept, words);
    const source = places.slice(inPlace, kept);
    const target = front(places.slice(inPlace), kept - inPlace, words);
    if (source.some((place, i) => place === target[i])) continue;
    for (const place of places.slice(0, inPlace)) listed[place] = ranking[place];
    for (const [i, place] of source.entries()) listed[target[i]] = ranking[place];
    break;
  }
  const fresh = front(ranking.slice(length, items), length - kept, words);
  return listed.map((item) => (item === null ? fresh.shift() : item));
}

/** The list with "count" of its entries, drawn uniformly, in front. */
function front(list, count, words) {
  for (let place = 0; place < Math.min(count, list.length - 1); place += 1) {
    const other = place + below(list.length - place, words);
    [list[place], list[other]] = [list[other], list[place]];
  }
  return list;
}

/** A uniform number below "bound": the top digits of a word, drawn again while they reach the bound. */
function below(bound, words) {
  const drop = WORD - BigInt(Math.max(1, (bound - 1).toString(2).length));
  for (;;) {
    const drawn = Number(words() >> drop);
    if (drawn < bound) return drawn;
  }
}

// -- the promise: what the tables allow, against the epsilon that the page shows ----------------------------------

// epsilon promises: when a respondent moves one item of their ranking ("position"), or gives any other ranking at all
// ("ranking"), no answer becomes more than e^epsilon times as likely. check() computes the largest such ratio from the
// tables and refuses to go on if it is larger.
//
// Of a table of all outputs it compares every output with every move, or with every other output. A ball has two
// probabilities, inside and outside; their ratio is computed from the weights that drawBall() or drawTop() uses. The other two
// samplers keep a random set of items in order; if their tables say that a set S has the weight z^|S|, the largest
// ratio is
//
//     (1 + z) / (1 + z (1 + z)^-reach),    reach = items - min(first tier, last tier),    for a move,
//     (1 + z)^items / (1 + sum over tiers of ((1 + z)^size - 1))                           for any two rankings
//
// (proof: rankdp/mechanisms/rankings/tiers.py; reinsertion has a tier for each item). So check() reads z from the tables
// and proves that all of their numbers, the cuts too, follow from z. Tables of any other form are refused.

export class BrokenPromise extends Error {}

/** Throws a BrokenPromise unless the tables are known to allow a ratio of at most e^epsilon, a text such as "2", "0.5" or "1/3". */
export function check(tables, epsilon, protect = "position") {
  need(protect === "position" || protect === "ranking", "protect");
  if (!ratios.has(tables)) ratios.set(tables, {});
  const seen = ratios.get(tables);
  const [top, bottom] =
    tables.sampler === "ball"
      ? ratioOfBall(tables, epsilon)
      : tables.sampler === "top"
        ? ratioOfTop(tables, epsilon)
        : (seen[protect] ??= largestRatio(tables, protect));
  const [power, scale] = powerOfE(epsilon);
  need(top * scale <= power * bottom, "ratio");
}

const ratios = new WeakMap(); // of tables that were looked at before

function need(holds, what) {
  if (!holds) throw new BrokenPromise(what);
}

/** The largest ratio that the tables allow, as a pair of whole numbers. */
function largestRatio(tables, protect) {
  need(count(tables.items) && tables.items >= 2, "items");
  if (tables.sampler === "outputs") return ratioOfOutputs(tables, protect);
  if (tables.sampler === "reinsertion") return ratioOfReinsertion(tables, protect);
  need(tables.sampler === "tiers", "sampler");
  // an offset is drawn without looking at the ranking and sent along: the worst one counts
  need(tables.shapes.length >= 1 && count(tables.attempts) && tables.attempts >= 1, "shapes");
  if (tables.offsets) need(checkedWeights(tables.offsets).length === tables.shapes.length, "offsets");
  return tables.shapes.map((shape) => ratioOfShape(tables.items, shape, protect)).reduce(larger);
}

/** Inside against outside: (any / all rankings + inside / rankings in the ball) / (any / all rankings). */
function ratioOfBall({ items, radius }, epsilon) {
  need(count(items) && items >= 2 && items <= 60 && count(radius) && radius < (items * (items - 1)) / 2, "ball");
  const [any, inside] = ballWeights({ items, radius }, epsilon);
  const [all, within] = [countsUpTo(items).at(-1), countsUpTo(items)[radius]];
  return [any * within + inside * all, any * within];
}

/** The same for lists; the cells must add up to all lists that there are. */
function ratioOfTop(tables, epsilon) {
  const { items, length, radius } = tables;
  need(count(items) && items <= 1000 && count(length) && length >= 1 && length < items && length <= 60, "top");
  need(count(radius), "top");
  const { cells, within, weights } = topWeights(tables, epsilon);
  const all = falling(items, length);
  need(within > 0n && within < all && cells.reduce((sum, [, , ways]) => sum + ways, 0n) === all, "top");
  return [weights[0] * within + weights[1] * all, weights[0] * within];
}

function ratioOfOutputs({ items, outputs }, protect) {
  need(items <= 6, "items");
  const orders = permutations(Array.from({ length: items }, (_, i) => i));
  const weights = checkedWeights(outputs);
  need(weights.length === orders.length, "outputs");
  const weightOf = new Map(orders.map((order, i) => [order.join(), weights[i]]));
  if (protect === "ranking") {
    const [least, most] = weights.reduce(([a, b], each) => [each < a ? each : a, each > b ? each : b], [weights[0], 0n]);
    return [most, least];
  }
  let worst = [1n, 1n];
  for (const [i, order] of orders.entries()) {
    for (let from = 0; from < items; from += 1) {
      for (let to = 0; to < items; to += 1) {
        const moved = order.map((place) => afterMove(place, from, to));
        worst = larger(worst, [weights[i], weightOf.get(moved.join())]);
      }
    }
  }
  return worst;
}

/** The new place of the item at "place" after the item at "from" was moved to "to". */
function afterMove(place, from, to) {
  if (place === from) return to;
  if (from < place && place <= to) return place - 1;
  return to <= place && place < from ? place + 1 : place;
}

/** All orders of a list, like words in a dictionary. */
function permutations(list) {
  if (list.length < 2) return [list];
  return list.flatMap((first, i) => permutations(list.filter((_, j) => j !== i)).map((rest) => [first, ...rest]));
}

/** The weight of taking d of m items out must be C(m, d) m! / (m - d)! z^-d. */
function ratioOfReinsertion({ items, taken }, protect) {
  const weights = checkedWeights(taken);
  need(weights.length === items + 1, "taken");
  const z = [weights[0] * BigInt(items) ** 2n, weights[1]];
  for (let d = 0; d < items; d += 1) {
    const [top, bottom] = [BigInt(items - d) ** 2n * z[1], BigInt(d + 1) * z[0]];
    need(weights[d + 1] * bottom === weights[d] * top, "taken");
  }
  return ratioOfTiers(reduced(z), new Array(items).fill(1), protect);
}

/** What a tier leaves must be Poisson with mean q / z, and j kept items are accepted as by a Poisson law of mean q. */
function ratioOfShape(items, { sizes, left, accept }, protect) {
  need(sizes.every(count) && sizes.reduce((sum, size) => sum + size, 0) === items, "sizes");
  const [q, below] = accept.mean.map(natural);
  const [top, bottom] = left[0].poisson.map(natural);
  for (const size of sizes) {
    const law = left.find((each) => each.size === size);
    need(law && law.poisson && !law.weights, "left");
    const [otherTop, otherBottom] = law.poisson.map(natural);
    need(otherTop * bottom === top * otherBottom, "left");
    need(checkedWeights(law).length === size + 1, "left");
  }
  checkAcceptance(items, accept, q, below);
  return ratioOfTiers(reduced([q * bottom, below * top]), sizes.filter((size) => size > 0), protect);
}

/** sure[j] must be 2^64 q^(j - mode) mode! / j! up to the two words that accepts() decides exactly. */
function checkAcceptance(items, { sure, mode }, top, bottom) {
  need(sure.length === items + 1 && mode === Math.min(items, Number(top / bottom)), "accept");
  for (const step of [1, -1]) {
    let [chance, whole] = [1n << WORD, 1n];
    for (let j = mode; j >= 0 && j <= items; j += step) {
      const cut = natural(sure[j], 0n);
      need(cut * whole <= chance && chance <= (cut + 2n) * whole, "accept");
      if (step > 0) [chance, whole] = [chance * top, whole * bottom * BigInt(j + 1)];
      else [chance, whole] = [chance * bottom * BigInt(j), whole * top];
    }
  }
}

/** The two formulas above for z = a / b. */
function ratioOfTiers([a, b], sizes, protect) {
  const items = sizes.reduce((sum, size) => sum + size, 0);
  if (protect === "ranking") {
    const power = (size) => (a + b) ** BigInt(size) * b ** BigInt(items - size);
    return [power(items), sizes.reduce((sum, size) => sum + power(size) - power(0), power(0))];
  }
  const reach = items - Math.min(sizes[0], sizes[sizes.length - 1]);
  const [more, power] = [(a + b) ** BigInt(reach + 1), b ** BigInt(reach)];
  return [more, more / (a + b) * b + a * power];
}

/** The exact weights of a law, all above 0, after proving that its cuts follow from them. */
function checkedWeights(law) {
  for (const text of [...(law.weights ?? []), ...(law.ratios ?? []).flat(), ...(law.poisson ?? [])]) natural(text);
  const weights = exactWeights(law);
  const total = weights.reduce((sum, weight) => sum + weight, 0n);
  need(weights.length >= 1 && count(law.first) && law.first + law.cuts.length <= weights.length, "law");
  const cuts = law.cuts.map((text) => natural(text, 0n));
  need(law.first === 0 || cuts[0] === 0n, "law"); // smaller numbers are drawn by resolve() alone
  need(cuts[cuts.length - 1] === (1n << WORD) - 1n, "law"); // so that every word selects a number
  let sum = weights.slice(0, law.first).reduce((before, weight) => before + weight, 0n);
  for (const [i, cut] of cuts.entries()) {
    sum += weights[law.first + i];
    need(cut * total <= sum << WORD && sum << WORD <= (cut + 1n) * total, "cuts");
  }
  return weights;
}

const larger = (one, other) => (one[0] * other[1] >= other[0] * one[1] ? one : other);

const count = (number) => Number.isSafeInteger(number) && number >= 0;

/** A whole number from its digits, at least 1 unless "least" says otherwise. */
function natural(text, least = 1n) {
  need(typeof text === "string" && /^\d+$/.test(text) && BigInt(text) >= least, "number");
  return BigInt(text);
}

function reduced([a, b]) {
  let [x, y] = [a, b];
  while (y) [x, y] = [y, x % y];
  return [a / x, b / x];
}

/** A pair whose quotient is at most e^epsilon, by 2^-500 of it or less: Taylor's series, all rounded down. */
function powerOfE(epsilon) {
  need(/^\d+(\.\d+|\/\d+)?$/.test(epsilon), "epsilon");
  const decimals = BigInt(epsilon.split(".")[1]?.length ?? 0);
  let [a, b = 10n ** decimals] = epsilon.replace(".", "").split("/").map((text) => natural(text));
  if (a > 4096n * b) [a, b] = [4096n, 1n]; // less than asked for; tables are not made for more
  const most = a / b + 1n;
  // few bits more than the tables are computed with: tiny epsilons have large b, tables of outputs large epsilons
  const bits = 600n + 2n * BigInt(b.toString(2).length) + 20n * (most < 256n ? most : 256n);
  const halvings = BigInt(most.toString(2).length);
  let [term, sum] = [1n << bits, 0n];
  for (let n = 1n; term > 0n; n += 1n) {
    sum += term;
    term = (term * a) / ((b << halvings) * n);
  }
  for (let i = 0n; i < halvings; i += 1n) sum = (sum * sum) >> bits;
  return [sum, 1n << bits];
}
