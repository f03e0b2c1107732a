// The results of a search: functions by name, and their share of the selection.

import { ROOT, type CallTree } from './calltree';
import type { Profile } from './data';
import { pattern } from './selection';

export interface Search {
  /** By function: whether its name matches. Each name is looked at once. */
  matches: Uint8Array;
}

/** Parses the typed search; null if it is empty. `names` are the shown names. */
export function searchFor(profile: Profile, text: string, names: (id: number) => string): Search | null {
  const wanted = pattern(text, 'i');
  if (!wanted) return null;
  return { matches: Uint8Array.from(profile.functionName, (_, id) => (wanted.test(names(id)) ? 1 : 0)) };
}

/** How many functions match, and the weight of all stacks that have one, each stack once. */
export function foundIn(tree: CallTree, { matches }: Search): { functions: number; value: number } {
  const { parent, function: ids, size } = tree.shape;
  const { total } = tree;
  const inside = new Uint8Array(size);
  const seen = new Uint8Array(matches.length);
  let [functions, value] = [0, 0];
  // Callers come first.
  for (let node = ROOT + 1; node < size; node++) {
    inside[node] = inside[parent[node]!]!;
    const id = ids[node]!;
    if (!matches[id] || !total[node]) continue;
    if (!seen[id]) functions++;
    seen[id] = 1;
    if (!inside[node]) value += total[node]!;
    inside[node] = 1;
  }
  return { functions, value };
}
