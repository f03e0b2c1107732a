// All threads over time: how busy they were, what else was sampled, when they began and ended.
// A range of time and threads chosen here filter every view.

import { context, cssColor, fit, h } from './dom';
import type { Lifetime, Profile } from './data';
import { clean, duration } from './format';

const LABEL = 190;
const ROW = 20;
const AXIS = 18;
/** The most rows; further threads share one: a canvas has its limits, and so do eyes. */
const MOST_ROWS = 300;
/** Height of the lanes of further events. */
const LANE = 5;
/** The most lanes; further events share the last. */
const MOST_LANES = 12;
const COLORS = ['--lane', '--lane-2', '--lane-3', '--lane-4'];

/** A thread under all the names it has had. */
interface Row {
  label: string;
  /** Indexes in the profile's table of threads. */
  threads: number[];
  weight: number;
  lifetimes: Lifetime[];
}

export interface TimelineOptions {
  event: number;
  range: [number, number] | null;
  threads: Set<number> | null;
  onRange(range: [number, number] | null): void;
  onThreads(threads: Set<number> | null): void;
}

export class TimelineView {
  readonly element: HTMLElement;
  private readonly canvas = h('canvas', { tabindex: 0, role: 'application', 'aria-label': 'timeline: left and right move the range, plus and minus change its length, up and down choose a thread, Enter selects it, Escape selects all' });
  private rows: Row[] = [];
  private rowOf = new Int32Array();
  private readonly lanes = h('div', { class: 'lanes' });
  private readonly layer = h('canvas');
  /** The key of the layer's content. */
  private layerKey = '';
  /** Height of a thread's lanes. */
  private row = ROW;
  private profile!: Profile;
  private options!: TimelineOptions;
  private span = 1;
  private drag: { from: number; to: number } | null = null;
  private current = 0;

  constructor() {
    this.element = h('div', { class: 'timeline' }, this.lanes, this.canvas);
    this.canvas.addEventListener('mousedown', (event) => this.press(event));
    this.canvas.addEventListener('dblclick', () => this.options.onRange(null));
    this.canvas.addEventListener('keydown', (event) => this.key(event));
  }

  /** Switches to the rows of another profile. */
  of(profile: Profile) {
    if (this.profile === profile) return;
    this.profile = profile;
    this.layerKey = '';
    this.row = ROW + LANE * (Math.min(profile.events.length, MOST_LANES) - 1);
    const times = profile.sampleTime;
    this.span = Math.max(1, times.length ? times[times.length - 1]! : 1);
    const rows = new Map<string, Row>();
    const lifetimesOf = new Map<string, Lifetime[]>();
    for (const life of profile.lifetimes) {
      const key = `${life.pid}/${life.tid}`;
      lifetimesOf.set(key, [...(lifetimesOf.get(key) ?? []), life]);
    }
    const ofThread = profile.threads.map((thread, index) => {
      const key = `${thread.pid}/${thread.tid}`;
      let row = rows.get(key);
      if (!row) {
        rows.set(key, (row = { label: '', threads: [], weight: 0, lifetimes: lifetimesOf.get(key) ?? [] }));
      }
      // A thread is shown by its last name.
      row.label = `${clean(thread.name)} ${thread.pid === thread.tid ? thread.pid : key}`;
      row.threads.push(index);
      return row;
    });
    const { sampleEvent, sampleThread, samplePeriod, start } = profile;
    const weights = new Float64Array(profile.threads.length);
    for (let at = 0; at < times.length; at++) {
      if (sampleEvent[at] === start.event) weights[sampleThread[at]!]! += samplePeriod[at]!;
    }
    ofThread.forEach((row, thread) => (row.weight += weights[thread]!));
    const sorted = [...rows.values()].sort((a, b) => b.weight - a.weight);
    const index = new Map(sorted.map((row, position) => [row, Math.min(position, MOST_ROWS)]));
    this.rowOf = Int32Array.from(ofThread, (row) => index.get(row)!);
    const others = sorted.splice(MOST_ROWS);
    const weight = others.reduce((sum, row) => sum + row.weight, 0);
    if (others.length) sorted.push({ label: `${others.length} other threads`, threads: others.flatMap((row) => row.threads), weight, lifetimes: [] });
    this.rows = sorted;
  }

  draw(options: TimelineOptions) {
    this.options = options;
    const width = this.element.clientWidth || 800;
    const height = AXIS + this.rows.length * this.row;
    const bins = Math.max(1, Math.floor(width - LABEL - 4));
    this.drawLayer(width, height, bins);
    const drawing = context(this.canvas, width, height);
    drawing.font = '11px ui-monospace, "DejaVu Sans Mono", monospace';
    drawing.textBaseline = 'middle';
    this.axis(drawing, bins);
    drawing.drawImage(this.layer, 0, 0, width, height);
    this.labels(drawing);
    this.selection(drawing, height);
  }

  private x(time: number): number {
    return LABEL + (time / this.span) * (this.canvas.clientWidth - LABEL - 4);
  }

  private time(x: number): number {
    const share = (x - LABEL) / Math.max(1, this.canvas.clientWidth - LABEL - 4);
    return Math.max(0, Math.min(1, share)) * this.span;
  }

  private axis(drawing: CanvasRenderingContext2D, bins: number) {
    drawing.fillStyle = cssColor('--quiet');
    const step = niceStep(this.span / Math.max(1, bins / 90));
    for (let time = 0; time <= this.span; time += step) {
      drawing.fillRect(this.x(time), 0, 1, AXIS - 4);
      const label = duration(time);
      if (this.x(time) + 3 + drawing.measureText(label).width <= LABEL + bins) drawing.fillText(label, this.x(time) + 3, AXIS / 2 - 2);
    }
  }

  /** The events in the order of their lanes: the selected one first. */
  private laneEvents(): number[] {
    const others = this.profile.events.map((_, index) => index).filter((index) => index !== this.options.event);
    return [this.options.event, ...others];
  }

  /** Samples are drawn once: a new range or selection of threads is drawn over them. */
  private drawLayer(width: number, height: number, bins: number) {
    const key = [this.options.event, width, height, window.devicePixelRatio, cssColor('--lane')].join(' ');
    if (key === this.layerKey) return;
    this.layerKey = key;
    const drawing = context(this.layer, width, height);
    const events = this.laneEvents();
    const lane = new Int8Array(events.length);
    events.forEach((event, index) => (lane[event] = Math.min(index, MOST_LANES - 1)));
    const count = Math.min(events.length, MOST_LANES);
    const perBin = this.span / bins;
    const sums = this.activity(lane, count, bins, perBin);
    const tops = Array.from({ length: count }, (_, which) => (which ? ROW + LANE * (which - 1) : 0));
    sums.forEach((sum, which) => this.lane(drawing, sum, bins, which, tops[which]!, this.profile.events[events[which]!]!.unit === 'ns' ? perBin : 0));
    this.lanes.hidden = events.length < 2;
    this.lanes.replaceChildren(
      ...events.map((event, index) => {
        const box = h('i', {});
        box.style.background = cssColor(COLORS[Math.min(index, MOST_LANES - 1) % COLORS.length]!);
        return h('span', {}, box, clean(this.profile.events[event]!.name));
      }),
    );
  }

  /** For each lane, row and bin how much was sampled, each sample spread over the time before it. */
  private activity(lane: Int8Array, count: number, bins: number, perBin: number): Float64Array[] {
    const { sampleTime, sampleEvent, sampleThread, samplePeriod, events } = this.profile;
    const { rowOf } = this;
    const sums = Array.from({ length: count }, () => new Float64Array(this.rows.length * bins));
    const isTime = events.map((event) => event.unit === 'ns');
    for (let at = 0; at < sampleTime.length; at++) {
      const sum = sums[lane[sampleEvent[at]!]!]!;
      const base = rowOf[sampleThread[at]!]! * bins;
      const last = Math.min(bins - 1, Math.floor(sampleTime[at]! / perBin));
      const over = isTime[sampleEvent[at]!] ? Math.min(last + 1, Math.max(1, Math.round(samplePeriod[at]! / perBin))) : 1;
      const part = samplePeriod[at]! / over;
      for (let bin = last; bin > last - over; bin--) sum[base + bin]! += part;
    }
    return sums;
  }

  /** `full` fills the height; 0: the maximum. */
  private lane(drawing: CanvasRenderingContext2D, sum: Float64Array, bins: number, which: number, top: number, full: number) {
    const most = full || sum.reduce((most, value) => Math.max(most, value), 0);
    if (!most) return;
    drawing.fillStyle = cssColor(COLORS[which % COLORS.length]!);
    const room = which ? LANE - 1 : ROW - 5;
    this.rows.forEach((_, row) => {
      const bottom = AXIS + row * this.row + top + (which ? LANE : ROW) - 1;
      for (let bin = 0; bin < bins; bin++) {
        const value = sum[row * bins + bin]!;
        if (!value) continue;
        const height = Math.max(1, Math.min(1, value / most) * room);
        drawing.fillRect(LABEL + bin, bottom - height, 1, height);
      }
    });
  }

  private labels(drawing: CanvasRenderingContext2D) {
    const { threads } = this.options;
    this.rows.forEach((row, index) => {
      const y = AXIS + index * this.row;
      const on = !threads || row.threads.some((thread) => threads.has(thread));
      drawing.fillStyle = cssColor(index === this.current && this.canvas.matches(':focus-visible') ? '--match' : on ? '--text' : '--quiet');
      drawing.fillText(fit(drawing, `${on ? '●' : '○'} ${row.label}`, LABEL - 8), 4, y + ROW / 2);
      drawing.fillStyle = cssColor('--line');
      drawing.fillRect(0, y + this.row - 1, this.canvas.clientWidth, 1);
      drawing.fillStyle = cssColor('--text');
      for (const life of row.lifetimes) {
        if (life.start !== null && life.start >= 0) drawing.fillRect(this.x(life.start), y + 2, 1, this.row - 4);
        if (life.end !== null && life.end <= this.span) drawing.fillRect(this.x(life.end), y + 2, 1, this.row - 4);
      }
      if (!on) {
        drawing.fillStyle = cssColor('--veil');
        drawing.fillRect(LABEL, y, this.canvas.clientWidth - LABEL, this.row);
      }
    });
  }

  private selection(drawing: CanvasRenderingContext2D, height: number) {
    const range = this.drag ? [Math.min(this.drag.from, this.drag.to), Math.max(this.drag.from, this.drag.to)] : this.options.range;
    if (!range) return;
    const [from, to] = [this.x(range[0]!), this.x(range[1]!)];
    drawing.fillStyle = cssColor('--veil');
    drawing.fillRect(LABEL, 0, from - LABEL, height);
    drawing.fillRect(to, 0, this.canvas.clientWidth - to, height);
    drawing.fillStyle = cssColor('--match');
    drawing.fillRect(from, 0, 1, height);
    drawing.fillRect(to, 0, 1, height);
  }

  private press(event: MouseEvent) {
    if (event.button !== 0) return;
    const row = Math.floor((event.offsetY - AXIS) / this.row);
    if (event.offsetX < LABEL) {
      if (this.rows[row]) this.toggle(row, event.shiftKey || event.ctrlKey || event.metaKey);
      return;
    }
    const left = this.canvas.getBoundingClientRect().left;
    this.drag = { from: this.time(event.offsetX), to: this.time(event.offsetX) };
    const move = (at: MouseEvent) => {
      this.drag!.to = this.time(at.clientX - left);
      this.draw(this.options);
    };
    const release = () => {
      window.removeEventListener('mousemove', move);
      window.removeEventListener('mouseup', release);
      const { from, to } = this.drag!;
      this.drag = null;
      // A click selects no range.
      if (Math.abs(this.x(from) - this.x(to)) < 3) this.options.onRange(null);
      else this.options.onRange([Math.round(Math.min(from, to)), Math.round(Math.max(from, to))]);
    };
    window.addEventListener('mousemove', move);
    window.addEventListener('mouseup', release);
  }

  /** Selects one thread alone, or, with `more`, adds or removes it. */
  private toggle(row: number, more: boolean) {
    const { threads } = this.options;
    const own = this.rows[row]!.threads;
    const chosen = threads && own.every((thread) => threads.has(thread));
    const next = new Set(more ? threads : []);
    for (const thread of own) {
      if (chosen) next.delete(thread);
      else next.add(thread);
    }
    this.options.onThreads(next.size ? next : null);
  }

  private key(event: KeyboardEvent) {
    const { range } = this.options;
    const length = range ? range[1] - range[0] : this.span / 4;
    const set = (from: number, to: number) => this.options.onRange([Math.max(0, Math.round(from)), Math.min(this.span, Math.round(to))]);
    const from = range ? range[0] : 0;
    if (event.key === 'ArrowRight') set(Math.min(from + length / 4, this.span - length), Math.min(from + length * 1.25, this.span));
    else if (event.key === 'ArrowLeft') set(from - length / 4, Math.max(length, from + length * 0.75));
    else if (event.key === '+') set(from + length / 4, from + (length * 3) / 4);
    else if (event.key === '-') set(from - length / 2, from + length * 1.5);
    else if (event.key === 'ArrowDown') this.current = Math.min(this.rows.length - 1, this.current + 1);
    else if (event.key === 'ArrowUp') this.current = Math.max(0, this.current - 1);
    else if (event.key === 'Enter' || event.key === ' ') this.toggle(this.current, event.key === ' ');
    else if (event.key === 'Escape' && (range || this.options.threads)) {
      this.options.onRange(null);
      this.options.onThreads(null);
    } else return;
    event.preventDefault();
    event.stopPropagation();
    this.draw(this.options);
  }
}

/** 1, 2 or 5 times a power of ten, at least `least`. */
export function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return power * (least <= power ? 1 : least <= 2 * power ? 2 : least <= 5 * power ? 5 : 10);
}
