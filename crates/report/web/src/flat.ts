// Each function's self and total weight.

import { ROOT, type CallTree } from './calltree';
import { MISSING_KIND } from './data';

export interface FunctionRow {
  id: number;
  own: number;
  total: number;
  ownSamples: number;
  totalSamples: number;
}

/** The functions with samples, the heaviest by self weight first. */
export function functions(tree: CallTree): FunctionRow[] {
  const { profile, shape } = tree;
  const { outermost, function: ids, size } = shape;
  const rows: (FunctionRow | undefined)[] = new Array(profile.functionName.length);
  const { own, total, ownSamples, totalSamples, owners } = tree;
  const rowOf = (id: number) => (rows[id] ??= { id, own: 0, total: 0, ownSamples: 0, totalSamples: 0 });
  for (let node = ROOT + 1; node < size; node++) {
    if (!totalSamples[node]) continue;
    const owner = rowOf(owners[node]!);
    owner.own += own[node]!;
    owner.ownSamples += ownSamples[node]!;
    const row = rowOf(ids[node]!);
    // The outermost of recursive calls includes the others.
    if (outermost[node]) {
      row.total += total[node]!;
      row.totalSamples += totalSamples[node]!;
    }
  }
  const name = (id: number) => profile.strings[profile.functionName[id]!]!;
  const found = rows.filter((row) => row !== undefined);
  return found.sort((a, b) => b.own - a.own || b.total - a.total || (name(a.id) < name(b.id) ? -1 : 1));
}

/** The functions with most self weight, the heaviest first; without states. */
export function hottest(tree: CallTree, count: number): { id: number; own: number }[] {
  const { profile, shape, own, owners } = tree;
  const sums = new Float64Array(profile.functionName.length);
  for (let node = ROOT + 1; node < shape.size; node++) sums[owners[node]!]! += own[node]!;
  const found: { id: number; own: number }[] = [];
  sums.forEach((sum, id) => {
    if (!sum || profile.functionKind[id]! >= MISSING_KIND) return;
    if (found.length === count && sum <= found[count - 1]!.own) return;
    const at = found.findIndex((other) => other.own < sum);
    found.splice(at < 0 ? found.length : at, 0, { id, own: sum });
    found.length = Math.min(found.length, count);
  });
  return found;
}
