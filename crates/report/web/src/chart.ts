// The flame chart: the calls of one thread in the order of time.

import { context, cssColor, fit, h } from './dom';
import type { CallTree } from './calltree';
import { lowerBound } from './selection';
import { clean, duration } from './format';
import { niceStep } from './timeline';

const ROW = 17;
const AXIS = 18;

export interface ChartOptions {
  color(id: number): string;
  /** Short, for boxes. */
  label(id: number): string;
  name(id: number): string;
  onChoose(id: number): void;
}

interface Run {
  id: number;
  x: number;
  end: number;
  depth: number;
}

export class ChartView {
  readonly element: HTMLElement;
  private readonly picker = h('select', { 'aria-label': 'thread', change: () => this.redraw() });
  private readonly canvas = h('canvas', { tabindex: 0, role: 'application', 'aria-label': 'flame chart: arrow keys move, Enter shows callers and callees' });
  private readonly spoken = h('div', { class: 'spoken', 'aria-live': 'polite' });
  private readonly tip = h('div', { class: 'tip', hidden: true });
  private runs: Run[] = [];
  /** The call that keys act on. */
  private chosen: Run | undefined;
  private tree!: CallTree;
  private options!: ChartOptions;
  private span: [number, number] = [0, 1];

  constructor() {
    const scroll = h('div', { class: 'scroll' }, this.canvas, this.tip, this.spoken);
    this.element = h('div', { class: 'chart' }, h('label', {}, 'Thread ', this.picker), scroll);
    this.canvas.addEventListener('mousemove', (event) => this.hover(event));
    this.canvas.addEventListener('mouseleave', () => (this.tip.hidden = true));
    this.canvas.addEventListener('click', (event) => {
      const run = this.at(event);
      if (run) this.options.onChoose(run.id);
    });
    this.canvas.addEventListener('keydown', (event) => this.key(event));
  }

  draw(tree: CallTree, options: ChartOptions) {
    [this.tree, this.options] = [tree, options];
    this.pickThread();
    this.redraw();
  }

  /** The threads of the selection, the one with most samples first. */
  private pickThread() {
    const { profile, selected } = this.tree;
    const samples = new Uint32Array(profile.threads.length);
    for (let index = 0; index < selected.count; index++) samples[profile.sampleThread[selected.positions[index]!]!]!++;
    const counts = new Map<string, { count: number; label: string }>();
    profile.threads.forEach(({ pid, tid, name }, thread) => {
      if (!samples[thread]) return;
      const known = counts.get(`${pid}/${tid}`);
      if (known) known.count += samples[thread]!;
      else counts.set(`${pid}/${tid}`, { count: samples[thread]!, label: `${clean(name)} ${pid}/${tid}` });
    });
    const chosen = this.picker.value;
    const sorted = [...counts].sort((a, b) => b[1].count - a[1].count);
    this.picker.replaceChildren(...sorted.map(([key, { label }]) => h('option', { value: key, selected: key === chosen }, label)));
  }

  private redraw() {
    const { profile, filter } = this.tree;
    const times = profile.sampleTime;
    this.span = filter.range ?? [0, times.length ? times[times.length - 1]! : 1];
    const width = this.element.clientWidth || 800;
    this.runs = this.find(width);
    this.chosen = undefined;
    this.paint(width);
  }

  private paint(width: number) {
    const depth = this.runs.reduce((most, run) => Math.max(most, run.depth), 0);
    const drawing = context(this.canvas, width, AXIS + (depth + 1) * ROW + 2);
    drawing.font = '11px ui-monospace, "DejaVu Sans Mono", monospace';
    drawing.textBaseline = 'middle';
    drawing.fillStyle = cssColor('--quiet');
    const [from, to] = this.span;
    const ink = cssColor('--text');
    const step = niceStep((to - from) / Math.max(1, width / 90));
    for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
      const x = ((time - from) / (to - from)) * width;
      drawing.fillRect(x, 0, 1, AXIS - 4);
      const label = duration(time);
      if (x + 3 + drawing.measureText(label).width <= width) drawing.fillText(label, x + 3, AXIS / 2 - 2);
    }
    for (const run of this.runs) {
      const y = AXIS + run.depth * ROW;
      drawing.fillStyle = this.options.color(run.id);
      drawing.fillRect(run.x, y, Math.max(1, run.end - run.x - 0.5), ROW - 1);
      if (run === this.chosen) {
        drawing.strokeStyle = ink;
        drawing.lineWidth = 2;
        drawing.strokeRect(run.x + 1, y + 1, Math.max(1, run.end - run.x - 2), ROW - 3);
      }
      if (run.end - run.x < 24) continue;
      drawing.fillStyle = '#111';
      drawing.fillText(fit(drawing, this.options.label(run.id), run.end - run.x - 6), run.x + 3, y + ROW / 2);
    }
  }

  /** Calls as wide as the samples in a row that have them: one sample for each pixel. */
  private find(width: number): Run[] {
    const { profile, shape, filter, selected } = this.tree;
    const [pid, tid] = this.picker.value.split('/').map(Number);
    const isThread = Uint8Array.from(profile.threads, (thread) => (thread.pid === pid && thread.tid === tid ? 1 : 0));
    const positions = selected.positions.subarray(0, selected.count).filter((at) => isThread[profile.sampleThread[at]!]);
    const times = Float64Array.from(positions, (at) => profile.sampleTime[at]!);
    const isTime = profile.events[filter.event]?.unit === 'ns';
    const [from, to] = this.span;
    const runs: Run[] = [];
    const open: { node: number; run: Run }[] = [];
    for (let x = 0; x < width; x++) {
      const time = from + ((x + 0.5) / width) * (to - from);
      const index = lowerBound(times, time);
      const at = positions[index];
      // A sample represents the period before it; for other events, durations are unknown.
      const reaches = at !== undefined && (!isTime || times[index]! - profile.samplePeriod[at]! * 1.5 <= time);
      const path = reaches ? this.tree.path(shape.nodeOfStack[profile.sampleStack[at]!]!) : [];
      let same = 0;
      while (same < open.length && open[same]!.node === path[same]) open[same++]!.run.end = x + 1;
      open.length = same;
      for (let depth = same; depth < path.length; depth++) {
        const run = { id: shape.function[path[depth]!]!, x, end: x + 1, depth };
        open.push({ node: path[depth]!, run });
        runs.push(run);
      }
    }
    return runs;
  }

  private at(event: MouseEvent): Run | undefined {
    const depth = Math.floor((event.offsetY - AXIS) / ROW);
    return this.runs.find((run) => run.depth === depth && run.x <= event.offsetX && event.offsetX < run.end);
  }

  private describe(run: Run): string[] {
    const [from, to] = this.span;
    const length = ((run.end - run.x) / this.canvas.clientWidth) * (to - from);
    return [this.options.name(run.id), `about ${duration(length)}`];
  }

  private key(event: KeyboardEvent) {
    const { chosen } = this;
    const at = (x: number, depth: number) => this.runs.find((run) => run.depth === depth && run.x <= x && x < run.end);
    const beside = (sign: number) => {
      const others = this.runs.filter((run) => run.depth === chosen!.depth && (run.x - chosen!.x) * sign > 0);
      return others.reduce<Run | undefined>((best, run) => (best && (best.x - run.x) * sign <= 0 ? best : run), undefined);
    };
    const steps: Record<string, () => Run | undefined> = {
      ArrowDown: () => at(chosen!.x, chosen!.depth + 1) ?? this.runs.find((run) => run.depth === chosen!.depth + 1 && run.x >= chosen!.x && run.end <= chosen!.end),
      ArrowUp: () => at(chosen!.x, chosen!.depth - 1),
      ArrowRight: () => beside(1),
      ArrowLeft: () => beside(-1),
    };
    if (event.key === 'Enter' && chosen) this.options.onChoose(chosen.id);
    else if (event.key in steps) {
      this.chosen = chosen ? (steps[event.key]!() ?? chosen) : this.runs[0];
      if (this.chosen) this.spoken.textContent = this.describe(this.chosen).join(', ');
      this.paint(this.element.clientWidth || 800);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  private hover(event: MouseEvent) {
    const run = this.at(event);
    this.tip.hidden = !run;
    if (!run) return;
    this.tip.replaceChildren(...this.describe(run).map((line) => h('div', {}, line)));
    this.tip.style.left = `${Math.max(0, Math.min(event.offsetX + 12, this.element.clientWidth - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${event.offsetY + 16}px`;
  }
}
