// Which samples and frames are shown: the same conditions as the filters of `prof report`.

import { KERNEL_KIND, MISSING_KIND, type Profile } from './data';

export interface Filter {
  /** Index of the event. */
  event: number;
  /** Nanoseconds since the first sample: start and end (exclusive). */
  range: [number, number] | null;
  /** Indexes of threads; all if null. */
  threads: Set<number> | null;
  /** CPUs; all if null. */
  cpus: Set<number> | null;
  comm: string;
  module: string;
  function: string;
  /** Names of languages, separated by commas. */
  language: string;
  ignore: string;
  hide: string;
  noKernel: boolean;
  noInline: boolean;
  foldAsync: boolean;
}

/** The initial filter of the page: the flags of `prof report`. */
export function initialFilter(profile: Profile): Filter {
  const { start } = profile;
  return {
    event: start.event,
    range: start.range,
    threads: start.threads && new Set(start.threads),
    cpus: start.cpus && new Set(start.cpus),
    comm: start.comm,
    module: start.module,
    function: start.function,
    language: start.language,
    ignore: start.ignore,
    hide: start.hide,
    noKernel: start.no_kernel,
    noInline: start.no_inline,
    foldAsync: start.fold_async,
  };
}

/**
 * A typed pattern: a regular expression, or plain text if it is not valid. Flags in front,
 * as `prof report` takes them (`(?i)name`), which JavaScript does not know.
 */
export function pattern(text: string, flags = ''): RegExp | null {
  if (!text) return null;
  const [front = '', own = ''] = /^\(\?([ims]+)\)/.exec(text) ?? [];
  try {
    return new RegExp(text.slice(front.length), [...new Set(flags + own)].join(''));
  } catch {
    return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), flags);
  }
}

/** By index of a string: whether it matches. Each distinct name is matched once. */
function matching(profile: Profile, names: Uint32Array, text: string): Uint8Array | null {
  const wanted = pattern(text);
  if (!wanted) return null;
  const known = new Int8Array(profile.strings.length).fill(-1);
  return Uint8Array.from(names, (name) => {
    if (known[name]! < 0) known[name] = wanted.test(profile.strings[name]!) ? 1 : 0;
    return known[name]!;
  });
}

/** By function: whether it is in one of these languages. */
function inLanguages(profile: Profile, text: string): Uint8Array | null {
  if (!text) return null;
  const names = text.split(',').map((name) => name.trim().toLowerCase());
  const wanted = ['', ...profile.languages].map((name) => (name && names.includes(name.toLowerCase()) ? 1 : 0));
  return profile.functionLanguage.map((language) => wanted[language]!);
}

const WANTED = 1;
const UNWANTED = 2;

/** By function: whether its frames are left out. */
export function hiddenFunctions(profile: Profile, filter: Filter): Uint8Array {
  const hide = matching(profile, profile.functionName, filter.hide);
  return Uint8Array.from(profile.functionName, (_, id) =>
    hide?.[id] ||
    (filter.noKernel && profile.functionKind[id] === KERNEL_KIND) ||
    (filter.foldAsync && profile.functionPlumbing[id])
      ? 1
      : 0,
  );
}

/** By stack: whether its samples match the conditions on functions and modules. */
function admittedStacks(profile: Profile, filter: Filter): Uint8Array | null {
  const wanted = matching(profile, profile.functionName, filter.function);
  const module = matching(profile, profile.functionModule, filter.module);
  const language = inLanguages(profile, filter.language);
  const ignore = matching(profile, profile.functionName, filter.ignore);
  if (!wanted && !module && !language && !ignore) return null;
  const ofFunction = Uint8Array.from(profile.functionName, (_, id) => {
    const isWanted =
      profile.functionKind[id] !== MISSING_KIND && (wanted?.[id] ?? 1) && (module?.[id] ?? 1) && (language?.[id] ?? 1);
    return (isWanted ? WANTED : 0) | (ignore?.[id] ? UNWANTED : 0);
  });
  const ofFrame = new Uint8Array(profile.frameEnds.length);
  for (let frame = 0, at = 0; frame < ofFrame.length; frame++) {
    for (; at < profile.frameEnds[frame]!; at++) {
      ofFrame[frame]! |= ofFunction[profile.locationFunction[at]!]!;
    }
  }
  const needs = wanted || module || language ? WANTED : 0;
  const seen = new Uint8Array(profile.stackFrame.length);
  const admitted = new Uint8Array(seen.length);
  for (let stack = 0; stack < seen.length; stack++) {
    const prefix = profile.stackPrefix[stack]!;
    const all = (prefix < 0 ? 0 : seen[prefix]!) | ofFrame[profile.stackFrame[stack]!]!;
    seen[stack] = all;
    admitted[stack] = (all & needs) === needs && !(all & UNWANTED) ? 1 : 0;
  }
  return admitted;
}

/** The positions of the samples that match the filter: the first `count` of them. */
export interface Selected {
  positions: Uint32Array;
  count: number;
}

/** A loop over positions without a call for each keeps a new selection quick. */
export function selectedSamples(profile: Profile, filter: Filter): Selected {
  const threads = admittedThreads(profile, filter);
  const stacks = admittedStacks(profile, filter);
  const { cpus, event } = filter;
  const { sampleEvent, sampleThread, sampleStack, sampleCpu } = profile;
  const [first, end] = samplesIn(profile, filter.range);
  const positions = new Uint32Array(Math.max(0, end - first));
  let count = 0;
  for (let at = first; at < end; at++) {
    if (sampleEvent[at] !== event || !threads[sampleThread[at]!]) continue;
    if (stacks && !stacks[sampleStack[at]!]) continue;
    if (cpus && !cpus.has(sampleCpu[at]! - 1)) continue;
    positions[count++] = at;
  }
  return { positions, count };
}

/** By thread: whether it matches. */
function admittedThreads(profile: Profile, filter: Filter): Uint8Array {
  const comm = pattern(filter.comm);
  return Uint8Array.from(profile.threads, (thread, index) =>
    (!comm || comm.test(thread.name)) && (!filter.threads || filter.threads.has(index)) ? 1 : 0,
  );
}

/** Positions of the first sample in a range of time, and after the last. */
function samplesIn(profile: Profile, range: [number, number] | null): [number, number] {
  const times = profile.sampleTime;
  if (!range) return [0, times.length];
  return [lowerBound(times, range[0]), lowerBound(times, range[1])];
}

export function lowerBound(sorted: Float64Array, value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
