// Each function's own weight, and that of all it called.

import { ROOT, type CallTree } from './calltree';

export interface FunctionRow {
  id: number;
  own: number;
  total: number;
  ownSamples: number;
  totalSamples: number;
}

/** The functions with samples, the heaviest by own weight first. */
export function functions(tree: CallTree): FunctionRow[] {
  const { shape, profile } = tree;
  const rows = new Map<number, FunctionRow>();
  const active = new Uint32Array(profile.functionName.length);
  const row = (id: number) => {
    let found = rows.get(id);
    if (!found) rows.set(id, (found = { id, own: 0, total: 0, ownSamples: 0, totalSamples: 0 }));
    return found;
  };
  // Nodes to enter; of those to leave, the complement.
  const steps = [ROOT];
  while (steps.length) {
    const step = steps.pop()!;
    if (step < 0) {
      active[shape.function[~step]!]!--;
      continue;
    }
    const id = shape.function[step]!;
    if (id >= 0) {
      const found = row(id);
      found.own += tree.own[step]!;
      found.ownSamples += tree.ownSamples[step]!;
      // Only the outermost of recursive calls counts: it holds the others.
      if (!active[id]) {
        found.total += tree.total[step]!;
        found.totalSamples += tree.totalSamples[step]!;
      }
      active[id]!++;
      steps.push(~step);
    }
    for (let child = shape.firstChild[step]!; child >= 0; child = shape.nextSibling[child]!) {
      if (tree.totalSamples[child]! > 0) steps.push(child);
    }
  }
  const name = (id: number) => profile.strings[profile.functionName[id]!]!;
  return [...rows.values()].sort(
    (a, b) => b.own - a.own || b.total - a.total || (name(a.id) < name(b.id) ? -1 : 1),
  );
}
