// The boxes of a flamegraph; their children are found on demand.

import { ROOT, type CallTree } from './calltree';

/** A box of a flamegraph. */
export interface Box {
  /** The function; -1 for the root. */
  id: number;
  value: number;
  samples: number;
  /** The part that was sampled in the box itself. */
  own: number;
  /** In how many of the samples it was read from the live target. */
  remote: number;
  parent: Box | null;
  children(): Box[];
}

/** From the outermost functions inwards. */
export function callees(tree: CallTree): Box {
  return new TreeBox(tree, ROOT, null);
}

class TreeBox implements Box {
  private found: Box[] | null = null;

  constructor(private readonly tree: CallTree, private readonly node: number, readonly parent: Box | null) {}

  get id() {
    return this.tree.shape.function[this.node]!;
  }
  get value() {
    return this.tree.total[this.node]!;
  }
  get samples() {
    return this.tree.totalSamples[this.node]!;
  }
  get own() {
    return this.tree.own[this.node]!;
  }
  get remote() {
    return this.tree.remote[this.node] ?? 0;
  }
  children(): Box[] {
    return (this.found ??= this.tree.children(this.node).map((child) => new TreeBox(this.tree, child, this)));
  }
}

/** A position on the way outwards: a node of the tree, and the weight that passes through it. */
interface Cursor {
  node: number;
  value: number;
  samples: number;
}

/** From the functions that samples were taken in to their callers. */
export function byLeaf(tree: CallTree): Box {
  const cursors: Cursor[] = [];
  const { own, ownSamples } = tree;
  for (let node = ROOT + 1; node < tree.shape.size; node++) {
    if (ownSamples[node]! > 0) cursors.push({ node, value: own[node]!, samples: ownSamples[node]! });
  }
  return new CallerBox(tree, -1, cursors, null, 0);
}

/** The callers of one function, with the total weight of that function. */
export function callersOf(tree: CallTree, id: number): Box {
  return new CallerBox(tree, id, outermost(tree, id), null, 1);
}

/** The callees of one function, with its calls merged; of recursive calls the outermost counts. */
export function calleesOf(tree: CallTree, id: number): Box {
  return new MergedBox(tree, id, outermost(tree, id).map((cursor) => cursor.node), null);
}

function outermost(tree: CallTree, id: number): Cursor[] {
  const { outermost, function: ids, size } = tree.shape;
  const found: Cursor[] = [];
  for (let node = ROOT + 1; node < size; node++) {
    if (ids[node] !== id || !outermost[node] || !tree.totalSamples[node]) continue;
    found.push({ node, value: tree.total[node]!, samples: tree.totalSamples[node]! });
  }
  return found;
}

/** A box for each function of these things, heaviest first. */
function boxes<T>(things: T[], id: (thing: T) => number, make: (id: number, group: T[]) => Box): Box[] {
  const groups = new Map<number, T[]>();
  for (const thing of things) {
    const key = id(thing);
    const group = groups.get(key);
    if (group) group.push(thing);
    else groups.set(key, [thing]);
  }
  const found = [...groups].map(([id, group]) => make(id, group));
  return found.sort((a, b) => b.value - a.value || a.id - b.id);
}

class CallerBox implements Box {
  readonly value: number = 0;
  readonly samples: number = 0;
  readonly own: number = 0;
  readonly remote: number = 0;
  private found: Box[] | null = null;

  constructor(
    private readonly tree: CallTree,
    readonly id: number,
    private readonly cursors: Cursor[],
    readonly parent: Box | null,
    /** How many nodes out from the cursors' the callers of this box are. */
    private readonly steps: number,
  ) {
    for (const { node, value, samples } of cursors) {
      this.value += value;
      this.samples += samples;
      if ((tree.remote[node] ?? 0) > tree.totalSamples[node]! / 2) this.remote += samples;
    }
  }

  children(): Box[] {
    return (this.found ??= boxes(
      this.steps ? this.callers() : this.cursors,
      ({ node }) => this.tree.shape.function[node]!,
      (id, cursors) => new CallerBox(this.tree, id, cursors, this, 1),
    ));
  }

  /** The next nodes outwards, each once: the weights of several calls are added. */
  private callers(): Cursor[] {
    const parents = this.tree.shape.parent;
    const callers = new Map<number, Cursor>();
    for (const { node, value, samples } of this.cursors) {
      const parent = parents[node]!;
      if (parent === ROOT) continue;
      const known = callers.get(parent);
      if (known) {
        known.value += value;
        known.samples += samples;
      } else callers.set(parent, { node: parent, value, samples });
    }
    return [...callers.values()];
  }
}

class MergedBox implements Box {
  readonly value: number = 0;
  readonly samples: number = 0;
  readonly own: number = 0;
  readonly remote: number = 0;
  private found: Box[] | null = null;

  constructor(
    private readonly tree: CallTree,
    readonly id: number,
    private readonly nodes: number[],
    readonly parent: Box | null,
  ) {
    for (const node of nodes) {
      this.value += tree.total[node]!;
      this.samples += tree.totalSamples[node]!;
      this.own += tree.own[node]!;
      this.remote += tree.remote[node] ?? 0;
    }
  }

  children(): Box[] {
    const { shape, totalSamples } = this.tree;
    return (this.found ??= boxes(
      this.nodes.flatMap((node) => shape.children(node).filter((child) => totalSamples[child])),
      (node) => shape.function[node]!,
      (id, nodes) => new MergedBox(this.tree, id, nodes, this),
    ));
  }
}
