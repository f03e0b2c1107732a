// Stacks merged into a tree of calls. The shape depends on which frames are shown, the weights on
// which samples are: a new selection of samples weighs the same shape again.

import { KERNEL_KIND, MISSING_KIND, STATE_KIND, type Profile } from './data';
import { hiddenFunctions, selectedSamples, type Filter, type Selected } from './selection';

export const ROOT = 0;
const NONE = -1;
const NOTHING = new Float64Array();

/** All calls that a profile can show, each node after its parent. */
export class Shape {
  readonly parent: Int32Array;
  /** By node: its function; -1 for the root. */
  readonly function: Int32Array;
  readonly firstChild: Int32Array;
  readonly nextSibling: Int32Array;
  readonly size: number;
  /** By stack: the node of its innermost shown frame; the root if no frame is shown. */
  readonly nodeOfStack: Int32Array;
  private found: Uint8Array | null = null;
  private readonly ownersBy: (Int32Array | undefined)[] = [];

  constructor(readonly profile: Profile, filter: Filter) {
    const hidden = hiddenFunctions(profile, filter);
    const builder = new Builder(profile.stackFrame.length * 2);
    const nodes = new Int32Array(profile.stackFrame.length);
    for (let stack = 0; stack < nodes.length; stack++) {
      const prefix = profile.stackPrefix[stack]!;
      let node = prefix < 0 ? ROOT : nodes[prefix]!;
      const frame = profile.stackFrame[stack]!;
      const first = frame ? profile.frameEnds[frame - 1]! : 0;
      for (let at = profile.frameEnds[frame]! - 1; at >= first; at--) {
        const id = profile.locationFunction[at]!;
        if (hidden[id] || (filter.noInline && profile.locationInlined[at])) continue;
        node = builder.child(node, id);
      }
      nodes[stack] = node;
    }
    this.nodeOfStack = nodes;
    this.size = builder.size;
    this.parent = builder.parent.slice(0, this.size);
    this.function = builder.function.slice(0, this.size);
    this.firstChild = new Int32Array(this.size).fill(NONE);
    this.nextSibling = new Int32Array(this.size).fill(NONE);
    for (let node = this.size - 1; node > ROOT; node--) {
      const parent = this.parent[node]!;
      this.nextSibling[node] = this.firstChild[parent]!;
      this.firstChild[parent] = node;
    }
  }

  /** By node: whether no caller is the same function. Such a call includes all recursive ones. */
  get outermost(): Uint8Array {
    return (this.found ??= this.findOutermost());
  }

  private findOutermost(): Uint8Array {
    const { firstChild, nextSibling, parent, function: ids } = this;
    const outermost = new Uint8Array(this.size);
    const active = new Uint32Array(this.profile.functionName.length);
    let node = firstChild[ROOT]!;
    while (node > ROOT) {
      outermost[node] = active[ids[node]!]!++ ? 0 : 1;
      let next = firstChild[node]!;
      while (next < 0 && node !== ROOT) {
        active[ids[node]!]!--;
        next = nextSibling[node]!;
        node = parent[node]!;
      }
      node = next;
    }
    return outermost;
  }

  /**
   * By node: the function that has its own weight. A wait ends in the scheduler, an allocation in the allocator:
   * the innermost function that decided to do so has it (view/attribution.rs). `all`: all samples are of these.
   */
  owners(all: boolean): Int32Array {
    return (this.ownersBy[Number(all)] ??= this.findOwners(all));
  }

  private findOwners(all: boolean): Int32Array {
    const { functionKind, functionName, functionPrimitive, strings } = this.profile;
    const isOff = Uint8Array.from(functionName, (name, id) => (functionKind[id] === STATE_KIND && strings[name] === '[off-CPU]' ? 1 : 0));
    if (!all && !isOff.includes(1)) return this.function;
    const owners = this.function.slice();
    const counts = new Uint8Array(this.size).fill(all ? 1 : 0);
    // The innermost function of the program, and the innermost that is no primitive.
    const [users, deciders] = [0, 0].map(() => new Int32Array(this.size).fill(NONE)) as [Int32Array, Int32Array];
    for (let node = ROOT + 1; node < this.size; node++) {
      const [parent, id] = [this.parent[node]!, this.function[node]!];
      const kind = functionKind[id]!;
      counts[node] = counts[parent]! | isOff[id]!;
      [users[node], deciders[node]] = [users[parent]!, deciders[parent]!];
      const decider = deciders[node]!;
      if (kind === KERNEL_KIND) {
        const owner = decider >= 0 ? decider : users[node]!;
        if (counts[node] && owner >= 0) owners[node] = owner;
      } else if (kind < MISSING_KIND) {
        users[node] = id;
        if (!functionPrimitive[id]) deciders[node] = id;
        else if (counts[node] && decider >= 0) owners[node] = decider;
      }
    }
    return owners;
  }

  children(node: number): number[] {
    const found = [];
    for (let child = this.firstChild[node]!; child !== NONE; child = this.nextSibling[child]!) found.push(child);
    return found;
  }
}

/** A growing hash table of nodes, by parent and function. */
class Builder {
  parent: Int32Array;
  function: Int32Array;
  size = 1;
  private table: Int32Array;

  constructor(expected: number) {
    let slots = 1024;
    while (slots < expected * 2) slots *= 2;
    this.table = new Int32Array(slots);
    this.parent = new Int32Array(slots / 2);
    this.function = new Int32Array(slots / 2);
    this.function[ROOT] = NONE;
  }

  child(parent: number, id: number): number {
    let slot = this.slot(parent, id);
    for (;;) {
      const node = this.table[slot]!;
      if (node === 0) break;
      if (this.parent[node] === parent && this.function[node] === id) return node;
      slot = (slot + 1) & (this.table.length - 1);
    }
    const node = this.size++;
    this.parent[node] = parent;
    this.function[node] = id;
    this.table[slot] = node;
    if (this.size >= this.parent.length) this.grow();
    return node;
  }

  private slot(parent: number, id: number): number {
    const mixed = Math.imul(parent, 0x9e3779b1) ^ Math.imul(id, 0x85ebca6b);
    return (mixed ^ (mixed >>> 15)) & (this.table.length - 1);
  }

  private grow() {
    const wider = (old: Int32Array) => {
      const array = new Int32Array(old.length * 2);
      array.set(old);
      return array;
    };
    this.parent = wider(this.parent);
    this.function = wider(this.function);
    this.table = new Int32Array(this.table.length * 2);
    for (let node = 1; node < this.size; node++) {
      let slot = this.slot(this.parent[node]!, this.function[node]!);
      while (this.table[slot]) slot = (slot + 1) & (this.table.length - 1);
      this.table[slot] = node;
    }
  }
}

/** The sum of samples: how much of the event, and from how many samples. */
export interface Weight {
  value: number;
  samples: number;
}

/** The weights of a selection of samples on a shape. */
export class CallTree {
  readonly own: Float64Array;
  readonly total: Float64Array;
  readonly ownSamples: Float64Array;
  readonly totalSamples: Float64Array;
  /** By node: in how many samples it was read from the live target after the sample; empty if none. */
  readonly remote: Float64Array;
  /** The selected samples. */
  readonly selected: Selected;

  constructor(readonly shape: Shape, readonly filter: Filter) {
    const { profile } = shape;
    const make = () => new Float64Array(shape.size);
    [this.own, this.total, this.ownSamples, this.totalSamples] = [make(), make(), make(), make()];
    this.selected = selectedSamples(profile, filter);
    const { positions, count } = this.selected;
    const { sampleStack, samplePeriod, sampleCount, sampleRemote } = profile;
    const { own, ownSamples } = this;
    const { nodeOfStack } = shape;
    const remote = new Map<number, number>();
    for (let index = 0; index < count; index++) {
      const at = positions[index]!;
      const stack = sampleStack[at]!;
      const node = nodeOfStack[stack]!;
      if (node === ROOT) continue;
      own[node]! += samplePeriod[at]!;
      ownSamples[node]! += sampleCount[at]!;
      if (sampleRemote[at]) {
        const key = stack * 65536 + sampleRemote[at]!;
        remote.set(key, (remote.get(key) ?? 0) + 1);
      }
    }
    this.total.set(this.own);
    this.totalSamples.set(this.ownSamples);
    this.remote = remote.size ? remoteNodes(shape, remote) : NOTHING;
    addToParents(shape, this.total);
    addToParents(shape, this.totalSamples);
    if (remote.size) addToParents(shape, this.remote);
  }

  get profile(): Profile {
    return this.shape.profile;
  }

  /** By node: the function that has its own weight. */
  get owners(): Int32Array {
    return this.shape.owners(this.profile.events[this.filter.event]!.for_callers);
  }

  /** The callees of a node, the heaviest first. */
  children(node: number): number[] {
    const found = this.shape.children(node).filter((child) => this.totalSamples[child]! > 0);
    return found.sort((a, b) => this.total[b]! - this.total[a]! || this.compareNames(a, b));
  }

  name(node: number): string {
    const id = this.shape.function[node]!;
    return id < 0 ? 'all' : this.profile.strings[this.profile.functionName[id]!]!;
  }

  /** The nodes from the outermost function to this one. */
  path(node: number): number[] {
    const path = [];
    for (let at = node; at > ROOT; at = this.shape.parent[at]!) path.push(at);
    return path.reverse();
  }

  private compareNames(a: number, b: number): number {
    const [one, other] = [this.name(a), this.name(b)];
    return one < other ? -1 : one > other ? 1 : a - b;
  }
}

/** Adds the value of each node to its callers. */
function addToParents({ parent, size }: Shape, weights: Float64Array) {
  for (let node = size - 1; node > ROOT; node--) {
    const weight = weights[node]!;
    if (weight) weights[parent[node]!]! += weight;
  }
}

function remoteNodes(shape: Shape, counts: Map<number, number>): Float64Array {
  const remote = new Float64Array(shape.size);
  const { profile } = shape;
  const depths = new Uint32Array(profile.stackFrame.length);
  for (let stack = 0; stack < depths.length; stack++) {
    const prefix = profile.stackPrefix[stack]!;
    depths[stack] = (prefix < 0 ? 0 : depths[prefix]!) + profile.frameDepth[profile.stackFrame[stack]!]!;
  }
  for (const [key, samples] of counts) {
    const count = key % 65536;
    let stack = Math.floor(key / 65536);
    // The innermost of the frames that were read so; its callers were, too.
    while (stack >= 0 && depths[stack]! > count) stack = profile.stackPrefix[stack]!;
    if (stack >= 0) remote[shape.nodeOfStack[stack]!]! += samples;
  }
  return remote;
}
