// The data of the page: a compressed block with a JSON head and columns of numbers.
//
//   base64 -> gzip -> | length of the head (u32) | head (JSON) | columns |
//
// A column is a run of LEB128 numbers; `format/graph/html/payload.rs` writes them.

/** A column's position: the offset of its first byte after the head, and its length. */
type ColumnPlace = [offset: number, count: number];

export interface Verdict {
  grade: string;
  summary: string;
  problems: string[];
}

export interface EventInfo {
  name: string;
  /** `ns`, or the plural of the counted event. */
  unit: string;
  /** Whether its samples are of waits or allocations, which are those of whoever decided to. */
  for_callers: boolean;
}

export interface Recording {
  command: string;
  hostname: string;
  kernel: string;
  arch: string;
}

export interface ThreadInfo {
  pid: number;
  tid: number;
  name: string;
  process: string;
}

export interface Lifetime {
  pid: number;
  tid: number;
  /** Nanoseconds since the first sample; null if before or after the recording. */
  start: number | null;
  end: number | null;
}

export interface SourceText {
  /** Index of the file's name among the strings. */
  file: number;
  /** Number of the first line. */
  first: number;
  lines: string[];
}

export interface Instruction {
  address: number;
  text: string;
  line: number;
  own: number;
  total: number;
}

export interface CodeListing {
  function: string;
  module: string;
  instructions: Instruction[];
}

/** The filter that the page begins with. */
export interface StartFilter {
  event: number;
  range: [number, number] | null;
  threads: number[] | null;
  cpus: number[] | null;
  comm: string;
  module: string;
  function: string;
  /** Names of languages, separated by commas. */
  language: string;
  ignore: string;
  hide: string;
  no_kernel: boolean;
  no_inline: boolean;
  fold_async: boolean;
}

interface ProfileHead {
  recording: Recording;
  verdict: Verdict | null;
  has_times: boolean;
  has_threads: boolean;
  events: EventInfo[];
  start: StartFilter;
  threads: ThreadInfo[];
  lifetimes: Lifetime[];
  strings: string[];
  ends: string[];
  sources: SourceText[];
  code: CodeListing[];
  columns: Record<string, ColumnPlace>;
}

interface Head {
  version: number;
  title: string;
  /** In the order of the numbers in the column `function_language`, from 1; 0 is none. */
  languages: string[];
  profiles: ProfileHead[];
}

/** Kinds of functions, in the order of their numbers in the column `function_kind`. */
export const KINDS = ['user', 'kernel', 'jit', 'interpreted', 'missing', 'state'] as const;
export const KERNEL_KIND = KINDS.indexOf('kernel');
/** From here on, kinds are not functions: missing stacks, and states. */
export const MISSING_KIND = KINDS.indexOf('missing');
export const STATE_KIND = KINDS.indexOf('state');

/** A profile as columns. Indexes of one table are numbers from 0 without gaps. */
export interface Profile extends ProfileHead {
  languages: string[];
  functionName: Uint32Array;
  /** The name without arguments and return type, for narrow boxes. */
  functionShort: Uint32Array;
  functionModule: Uint32Array;
  functionKind: Uint8Array;
  /** The language's index in `languages` plus 1; 0 if it has none. */
  functionLanguage: Uint8Array;
  /** Whether async executors leave it out (`--fold-async`). */
  functionPlumbing: Uint8Array;
  /** Whether it waits or allocates for whoever calls it. */
  functionPrimitive: Uint8Array;
  /** Where each frame's locations end, innermost location first. */
  frameEnds: Uint32Array;
  /** How many frames it represents: 0 for the mark of a cut stack. */
  frameDepth: Uint32Array;
  locationFunction: Uint32Array;
  locationInlined: Uint8Array;
  /** Index of the file's name plus 1; 0 if unknown. */
  locationFile: Uint32Array;
  locationLine: Uint32Array;
  /** The callers' stack, or -1. Smaller than the stack's own index. */
  stackPrefix: Int32Array;
  stackFrame: Uint32Array;
  /** Nanoseconds since the first sample, ascending. */
  sampleTime: Float64Array;
  sampleThread: Uint32Array;
  sampleEvent: Uint8Array;
  sampleStack: Uint32Array;
  samplePeriod: Float64Array;
  sampleCount: Float64Array;
  /** CPU plus 1; 0 if unknown. */
  sampleCpu: Uint32Array;
  /** How many of the outermost frames were read from the live target after the sample. */
  sampleRemote: Uint16Array;
  sampleEnd: Uint8Array;
}

export interface Data {
  title: string;
  profiles: Profile[];
}

/** Reads LEB128 numbers, which may exceed 32 bits. */
class Columns {
  constructor(
    private readonly bytes: Uint8Array,
    private readonly places: Record<string, ColumnPlace>,
  ) {}

  f64(name: string): Float64Array {
    const [offset, count] = this.places[name] ?? [0, 0];
    const out = new Float64Array(count);
    const bytes = this.bytes;
    let at = offset;
    for (let index = 0; index < count; index++) {
      let byte = bytes[at++]!;
      let value = byte & 0x7f;
      let factor = 128;
      while (byte >= 0x80) {
        byte = bytes[at++]!;
        value += (byte & 0x7f) * factor;
        factor *= 128;
      }
      out[index] = value;
    }
    return out;
  }

  /** As `f64`, for numbers of at most 32 bits: separate, because engines make it several times faster. */
  u32(name: string): Uint32Array {
    const [offset, count] = this.places[name] ?? [0, 0];
    const out = new Uint32Array(count);
    const bytes = this.bytes;
    let at = offset;
    for (let index = 0; index < count; index++) {
      let byte = bytes[at++]!;
      let value = byte & 0x7f;
      for (let shift = 7; byte >= 0x80; shift += 7) {
        byte = bytes[at++]!;
        value |= (byte & 0x7f) << shift;
      }
      out[index] = value;
    }
    return out;
  }

  u8 = (name: string) => new Uint8Array(this.u32(name));
  u16 = (name: string) => new Uint16Array(this.u32(name));
}

function profile(head: ProfileHead, languages: string[], bytes: Uint8Array): Profile {
  const columns = new Columns(bytes, head.columns);
  const location = columns.u32('location_function');
  const inlined = new Uint8Array(location.length);
  for (let i = 0; i < location.length; i++) {
    inlined[i] = location[i]! & 1;
    location[i] = location[i]! >>> 1;
  }
  // A prefix is stored as the distance to it; 0 if there is none.
  const distances = columns.u32('stack_prefix');
  const prefix = new Int32Array(distances.length);
  for (let i = 0; i < prefix.length; i++) prefix[i] = distances[i] ? i - distances[i]! : -1;
  const times = columns.f64('sample_time');
  for (let i = 1; i < times.length; i++) times[i] = times[i]! + times[i - 1]!;
  return {
    ...head,
    languages,
    functionName: columns.u32('function_name'),
    functionShort: columns.u32('function_short'),
    functionModule: columns.u32('function_module'),
    functionKind: columns.u8('function_kind'),
    functionLanguage: columns.u8('function_language'),
    functionPlumbing: columns.u8('function_plumbing'),
    functionPrimitive: columns.u8('function_primitive'),
    frameEnds: accumulate(columns.u32('frame_locations')),
    frameDepth: columns.u32('frame_depth'),
    locationFunction: location,
    locationInlined: inlined,
    locationFile: columns.u32('location_file'),
    locationLine: columns.u32('location_line'),
    stackPrefix: prefix,
    stackFrame: columns.u32('stack_frame'),
    sampleTime: times,
    sampleThread: columns.u32('sample_thread'),
    sampleEvent: columns.u8('sample_event'),
    sampleStack: columns.u32('sample_stack'),
    samplePeriod: columns.f64('sample_period'),
    sampleCount: columns.f64('sample_count'),
    sampleCpu: columns.u32('sample_cpu'),
    sampleRemote: columns.u16('sample_remote'),
    sampleEnd: columns.u8('sample_end'),
  };
}

function accumulate(counts: Uint32Array): Uint32Array {
  for (let i = 1; i < counts.length; i++) counts[i] = counts[i]! + counts[i - 1]!;
  return counts;
}

/** Decodes the decompressed data: the head and one or two profiles. */
export function decode(bytes: Uint8Array): Data {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length))) as Head;
  if (head.version !== 3) throw new Error(`this page has data of version ${head.version}`);
  const columns = bytes.subarray(4 + length);
  return { title: head.title, profiles: head.profiles.map((one) => profile(one, head.languages, columns)) };
}

/** Unpacks the data of the page. */
export async function unpack(base64: string): Promise<Data> {
  const text = atob(base64);
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return decode(new Uint8Array(await new Response(stream).arrayBuffer()));
}
