// Whether chance alone makes a change of a share: the test of `prof diff` (view/diff/chance.rs and exact.rs).

/** A part of a recording: its weight, and the squared weights of its samples, added up. */
export interface Part {
  weight: number;
  squares: number;
}

type Pair = readonly [number, number];

/** The most samples of a side that count. */
const MOST = 1e7;

/** Outcomes that are less likely than the likeliest one by this factor do not count. */
const NEGLIGIBLE = 1e-20;

/** The probability of a change of `parts` between recordings with these wholes and numbers of samples. */
export function chance(parts: readonly [Part, Part], wholes: readonly [Part, Part], samples: Pair): number {
  // Samples of a clock weigh the less, the higher its rate is; a wait weighs what it lasts.
  const isRegular = wholes.every(({ weight, squares }, side) => squares * samples[side]! <= 2 * weight * weight);
  const unit = (side: number) => (isRegular ? wholes[side]!.weight / samples[side]! : 1);
  const inside = parts.map((part, side) => divided(part, unit(side))) as [Part, Part];
  const outside = inside.map((part, side) => {
    const whole = divided(wholes[side]!, unit(side));
    return { weight: Math.max(0, whole.weight - part.weight), squares: Math.max(0, whole.squares - part.squares) };
  }) as [Part, Part];
  return sameShare(equalSamples(inside), equalSamples(outside));
}

function divided({ weight, squares }: Part, by: number): Part {
  return { weight: weight / by, squares: squares / by / by };
}

/** How many samples of equal weight would say as much as each of these parts. */
function equalSamples([before, after]: readonly [Part, Part]): Pair {
  const squares = before.squares + after.squares;
  if (!(squares > 0)) return [0, 0];
  const factor = (before.weight + after.weight) / squares;
  return [before.weight * factor, after.weight * factor];
}

/** Fisher's exact test. */
function sameShare(inside: Pair, outside: Pair): number {
  const side = (index: 0 | 1): Pair => {
    const scale = Math.min(1, MOST / (inside[index] + outside[index]));
    return [Math.round(inside[index] * scale), Math.round(outside[index] * scale)];
  };
  const [[before, beforeOutside], [after, afterOutside]] = [side(0), side(1)];
  const [hits, misses, drawn] = [before + after, beforeOutside + afterOutside, after + afterOutside];
  const [least, most] = [Math.max(0, drawn - misses), Math.min(drawn, hits)];
  const likeliest = Math.min(most, Math.max(least, Math.floor(((drawn + 1) * (hits + 1)) / (hits + misses + 2))));
  const ratio = (count: number) => ((hits - count) * (drawn - count)) / ((count + 1) * (misses - drawn + count + 1));
  const odds: number[] = [];
  let observed = 0;
  const add = (count: number, value: number) => {
    odds.push(value);
    if (count === after) observed = value;
  };
  for (let count = likeliest, value = 1; count <= most && value > NEGLIGIBLE; value *= ratio(count++)) add(count, value);
  for (let count = likeliest, value = 1; count > least && value > NEGLIGIBLE; ) {
    value /= ratio(--count);
    add(count, value);
  }
  // Equal ones differ by rounding.
  const bound = observed * (1 + 1e-7);
  let [extreme, all] = [0, 0];
  for (const value of odds) {
    all += value;
    if (value <= bound) extreme += value;
  }
  return extreme / all;
}
