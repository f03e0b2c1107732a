// Two recordings compared: function by function, and as a flamegraph of changes.

import { ROOT, type CallTree } from './calltree';
import { chance, type Part } from './chance';
import { functions, type FunctionRow } from './flat';
import type { Box } from './graph';

export interface DiffRow {
  name: string;
  module: string;
  before: FunctionRow | null;
  after: FunctionRow | null;
  /** Shares of each recording's total, from 0 to 1. */
  own: [number, number];
  total: [number, number];
  certainty: 'noise' | 'likely' | 'clear';
}

/** Every function of either recording, the largest change of the self share first. */
export function compare(before: CallTree, after: CallTree): DiffRow[] {
  const sides = [before, after].map((tree) => byName(tree)) as [Map<string, Side>, Map<string, Side>];
  const wholes = [before, after].map((tree, index) => {
    const squares = [...sides[index]!.values()].reduce((sum, side) => sum + side.squares, 0);
    return { weight: tree.total[ROOT]!, squares };
  }) as [Part, Part];
  const samples = [before.totalSamples[ROOT]!, after.totalSamples[ROOT]!] as const;
  const rows = [...new Set([...sides[0].keys(), ...sides[1].keys()])].map((key) => {
    const [one, other] = [sides[0].get(key) ?? null, sides[1].get(key) ?? null];
    const [name, module] = key.split('\0') as [string, string];
    const own: [number, number] = [(one?.own ?? 0) / (before.total[ROOT] || 1), (other?.own ?? 0) / (after.total[ROOT] || 1)];
    const total: [number, number] = [(one?.total ?? 0) / (before.total[ROOT] || 1), (other?.total ?? 0) / (after.total[ROOT] || 1)];
    const parts = [one, other].map((side) => ({ weight: side?.own ?? 0, squares: side?.squares ?? 0 })) as [Part, Part];
    const certainty = certaintyOf(chance(parts, wholes, samples));
    return { name, module, before: one, after: other, own, total, certainty };
  });
  const change = (row: DiffRow) => Math.abs(row.own[1] - row.own[0]);
  const totalChange = (row: DiffRow) => Math.abs(row.total[1] - row.total[0]);
  return rows.sort((a, b) => change(b) - change(a) || totalChange(b) - totalChange(a));
}

interface Side extends FunctionRow {
  /** The squared weights of its own samples, added up. */
  squares: number;
}

function byName(tree: CallTree): Map<string, Side> {
  const { profile } = tree;
  const found = new Map<string, Side>();
  const squares = squaresOf(tree);
  for (const of of functions(tree)) {
    const row = { ...of, squares: squares[of.id]! };
    const key = `${profile.strings[profile.functionName[row.id]!]!}\0${profile.strings[profile.functionModule[row.id]!]!}`;
    const known = found.get(key);
    if (!known) found.set(key, row);
    else {
      known.own += row.own;
      known.total += row.total;
      known.ownSamples += row.ownSamples;
      known.totalSamples += row.totalSamples;
      known.squares += row.squares;
    }
  }
  return found;
}

/** By function: the squared weights of its own samples, added up. Samples that come as one count as equal. */
function squaresOf(tree: CallTree): Float64Array {
  const { profile, shape, owners, selected } = tree;
  const squares = new Float64Array(profile.functionName.length);
  for (let index = 0; index < selected.count; index++) {
    const at = selected.positions[index]!;
    const node = shape.nodeOfStack[profile.sampleStack[at]!]!;
    if (node === ROOT) continue;
    squares[owners[node]!]! += profile.samplePeriod[at]! ** 2 / Math.max(1, profile.sampleCount[at]!);
  }
  return squares;
}

/** The bounds of `prof diff`. */
function certaintyOf(chance: number): DiffRow['certainty'] {
  return chance <= 0.01 ? 'clear' : chance <= 0.05 ? 'likely' : 'noise';
}

/** A call in both recordings; its width is its share of one of them. */
export class PairBox implements Box {
  private found: PairBox[] | null = null;

  constructor(
    private readonly trees: readonly [CallTree, CallTree],
    private readonly nodes: readonly [number, number],
    readonly parent: Box | null,
    /** Which recording gives the width. */
    private readonly side: number,
  ) {}

  /** The function's index in the second recording; functions of only the first follow after these. */
  get id(): number {
    const [before, after] = this.nodes;
    if (after >= 0) return this.trees[1].shape.function[after]!;
    return this.trees[1].profile.functionName.length + this.trees[0].shape.function[before]!;
  }
  share(side: number): number {
    const node = this.nodes[side]!;
    const tree = this.trees[side]!;
    return node < 0 ? 0 : tree.total[node]! / (tree.total[ROOT] || 1);
  }
  get value(): number {
    return this.share(this.side);
  }
  get samples(): number {
    const node = this.nodes[this.side]!;
    return node < 0 ? 0 : this.trees[this.side]!.totalSamples[node]!;
  }
  get own(): number {
    const node = this.nodes[this.side]!;
    return node < 0 ? 0 : this.trees[this.side]!.own[node]!;
  }
  readonly remote = 0;

  children(): PairBox[] {
    if (this.found) return this.found;
    const pairs = new Map<string, [number, number]>();
    this.trees.forEach((tree, side) => {
      const node = this.nodes[side]!;
      if (node < 0) return;
      for (const child of tree.children(node)) {
        const id = tree.shape.function[child]!;
        const key = `${tree.name(child)}\0${tree.profile.strings[tree.profile.functionModule[id]!]!}`;
        const pair = pairs.get(key) ?? [-1, -1];
        pair[side] = child;
        pairs.set(key, pair);
      }
    });
    const boxes = [...pairs.values()].map((pair) => new PairBox(this.trees, pair, this, this.side));
    return (this.found = boxes.sort((a, b) => b.value - a.value || a.id - b.id));
  }
}
