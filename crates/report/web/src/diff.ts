// Two recordings compared: function by function, and as a flamegraph of changes.

import { ROOT, type CallTree } from './calltree';
import { chance, type Part } from './chance';
import { MISSING_KIND } from './data';
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
  const trees = [before, after] as const;
  const unsure = trees.map((tree, index) => [...sides[index]!.values()].reduce((sum, side) => sum + side.unsure, 0) / (tree.total[ROOT] || 1)) as [number, number];
  const samples = [before.totalSamples[ROOT]!, after.totalSamples[ROOT]!] as const;
  const rows = [...new Set([...sides[0].keys(), ...sides[1].keys()])].map((key) => {
    const [one, other] = [sides[0].get(key) ?? null, sides[1].get(key) ?? null];
    const [name, module] = key.split('\0') as [string, string];
    const own: [number, number] = [(one?.own ?? 0) / (before.total[ROOT] || 1), (other?.own ?? 0) / (after.total[ROOT] || 1)];
    const total: [number, number] = [(one?.total ?? 0) / (before.total[ROOT] || 1), (other?.total ?? 0) / (after.total[ROOT] || 1)];
    const shown = closest(own, [one, other].map((side, index) => (side?.unsure ?? 0) / (trees[index]!.total[ROOT] || 1)) as [number, number], unsure);
    const parts = [one, other].map((side, index) => partOf(side, shown[index]! * trees[index]!.total[ROOT]!, wholes[index]!)) as [Part, Part];
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
  /** What of its own weight may be that of functions that are missing. */
  unsure: number;
}

/** A part of one recording with another weight, of samples that weigh as much. */
function partOf(side: Side | null, weight: number, whole: Part): Part {
  const mean = side?.own ? side.squares / side.own : whole.squares / whole.weight;
  return { weight, squares: mean * weight };
}

/**
 * Shares before and after, as close to each other as what is missing in only one recording allows (view/diff/gaps.rs).
 * `unsure`: what of them may be that of missing functions; `all`: of everything.
 */
function closest(shares: [number, number], unsure: [number, number], all: [number, number]): [number, number] {
  const [low, high] = shares[0] > shares[1] ? [1, 0] : [0, 1];
  const lacking = Math.max(0, all[low]! - unsure[low]! - (all[high]! - unsure[high]!));
  const extra = Math.max(0, unsure[high]! - unsure[low]!);
  const found: [number, number] = [0, 0];
  found[low] = Math.min(shares[high]!, shares[low]! + lacking);
  found[high] = Math.max(found[low]!, shares[high]! - extra);
  return found;
}

function byName(tree: CallTree): Map<string, Side> {
  const { profile } = tree;
  const found = new Map<string, Side>();
  const squares = squaresOf(tree);
  const unsure = unsureOf(tree);
  for (const of of functions(tree)) {
    const row = { ...of, squares: squares[of.id]!, unsure: unsure[of.id]! };
    const key = `${profile.strings[profile.functionName[row.id]!]!}\0${profile.strings[profile.functionModule[row.id]!]!}`;
    const known = found.get(key);
    if (!known) found.set(key, row);
    else {
      known.own += row.own;
      known.total += row.total;
      known.ownSamples += row.ownSamples;
      known.totalSamples += row.totalSamples;
      known.squares += row.squares;
      known.unsure += row.unsure;
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

/** By function: the own weight where functions of an interpreter are missing, or all user code is. */
function unsureOf(tree: CallTree): Float64Array {
  const { profile, shape, own, owners } = tree;
  const unsure = new Float64Array(profile.functionName.length);
  const lacks = new Uint8Array(shape.size);
  for (let node = ROOT + 1; node < shape.size; node++) {
    const id = shape.function[node]!;
    const isMark = profile.functionKind[id] === MISSING_KIND;
    // Only the marks of interpreters have a module.
    lacks[node] = lacks[shape.parent[node]!]! | Number(isMark && !!profile.strings[profile.functionModule[id]!]);
    if (lacks[node] || isMark) unsure[owners[node]!]! += own[node]!;
  }
  return unsure;
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

  /** The change of the share of samples in the call itself. */
  ownChange(): number {
    const share = (side: number) => {
      const node = this.nodes[side]!;
      const tree = this.trees[side]!;
      return node < 0 ? 0 : tree.own[node]! / (tree.total[ROOT] || 1);
    };
    return share(1) - share(0);
  }

  /** The largest change of a call itself, in either direction, here or further in. */
  largestChange(): number {
    let most = 0;
    const pending: PairBox[] = [this];
    while (pending.length) {
      const box = pending.pop()!;
      most = Math.max(most, Math.abs(box.ownChange()));
      // No call changes by more than all that it has.
      if (Math.max(box.share(0), box.share(1)) > most) pending.push(...box.children());
    }
    return most;
  }

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
