// Flamegraphs on a canvas: zoom, search, hover, keyboard.

import { context, cssColor, fit, h } from './dom';
import type { Box } from './graph';

/** How a flamegraph is drawn, and its events. */
export interface FlameOptions {
  upwards: boolean;
  color(box: Box): string;
  label(box: Box): string;
  describe(box: Box, whole: Box): string[];
  matches(box: Box): boolean;
  /** Whether a search is active: then other boxes fade. */
  searching: boolean;
  /** The box that fills the width, as functions from the root. */
  zoom: number[];
  onZoom(zoom: number[]): void;
  onChoose(box: Box): void;
}

const ROW = 18;
const NARROWEST = 0.6;
const LABELLED = 24;
/** The most rows of a picture: a canvas has its limits. Zooming shows deeper calls. */
const MOST_ROWS = 800;

interface Drawn {
  box: Box;
  x: number;
  width: number;
  row: number;
}

export class FlameView {
  readonly element: HTMLElement;
  private readonly canvas = h('canvas', { tabindex: 0, role: 'application', 'aria-label': 'flamegraph: arrow keys move, Enter zooms, Escape shows all' });
  private readonly tip = h('div', { class: 'tip', hidden: true });
  private readonly spoken = h('div', { class: 'spoken', 'aria-live': 'polite' });
  private drawn: Drawn[] = [];
  private rows: Drawn[][] = [];
  private chosen: Box | null = null;
  private root!: Box;
  private options!: FlameOptions;
  private height = 0;

  constructor() {
    this.element = h('div', { class: 'flame' }, this.canvas, this.tip, this.spoken);
    this.canvas.addEventListener('mousemove', (event) => this.hover(event));
    this.canvas.addEventListener('mouseleave', () => (this.tip.hidden = true));
    this.canvas.addEventListener('click', (event) => {
      const found = this.at(event.offsetX, event.offsetY);
      if (found) this.zoomTo(found.box);
    });
    this.canvas.addEventListener('contextmenu', (event) => {
      const found = this.at(event.offsetX, event.offsetY);
      if (!found || found.box.id < 0) return;
      event.preventDefault();
      this.options.onChoose(found.box);
    });
    this.canvas.addEventListener('keydown', (event) => this.key(event));
  }

  draw(root: Box, options: FlameOptions) {
    [this.root, this.options] = [root, options];
    const zoomed = this.zoomedBox();
    const width = this.element.clientWidth || 800;
    this.layout(zoomed, width);
    this.height = this.rows.length * ROW + 2;
    const drawing = context(this.canvas, width, this.height);
    drawing.font = '11px ui-monospace, "DejaVu Sans Mono", monospace';
    drawing.textBaseline = 'middle';
    const colors = { text: '#111', faded: cssColor('--faded'), background: cssColor('--background'), match: cssColor('--match'), chosen: cssColor('--text') };
    for (const one of this.drawn) this.paint(drawing, one, colors);
  }

  /** The boxes that are drawn, for tests. */
  boxes(): { id: number; value: number; row: number; x: number; width: number }[] {
    return this.drawn.map(({ box, x, width, row }) => ({ id: box.id, value: box.value, row, x, width }));
  }

  private zoomedBox(): Box {
    let box = this.root;
    for (const id of this.options.zoom) {
      const next = box.children().find((child) => child.id === id);
      if (!next) break;
      box = next;
    }
    return box;
  }

  private layout(zoomed: Box, width: number) {
    this.drawn = [];
    this.rows = [];
    const add = (one: Drawn) => {
      this.drawn.push(one);
      (this.rows[one.row] ??= []).push(one);
    };
    const callers: Box[] = [];
    for (let box = zoomed.parent; box; box = box.parent) callers.push(box);
    callers.length = Math.min(callers.length, MOST_ROWS / 2);
    callers.reverse().forEach((box, row) => add({ box, x: 0, width, row }));
    const scale = zoomed.value ? width / zoomed.value : 0;
    const pending: Drawn[] = [{ box: zoomed, x: 0, width, row: callers.length }];
    while (pending.length) {
      const one = pending.pop()!;
      add(one);
      if (one.row >= MOST_ROWS) continue;
      let x = one.x;
      for (const child of one.box.children()) {
        const part = child.value * scale;
        // The heaviest come first: nothing wider follows.
        if (part < NARROWEST) break;
        pending.push({ box: child, x, width: part, row: one.row + 1 });
        x += part;
      }
    }
  }

  private top(row: number): number {
    return this.options.upwards ? this.height - (row + 1) * ROW : row * ROW;
  }

  private paint(drawing: CanvasRenderingContext2D, { box, x, width, row }: Drawn, colors: Record<string, string>) {
    const y = this.top(row);
    const { options } = this;
    const matches = options.searching && options.matches(box);
    drawing.fillStyle = matches ? colors.match! : options.searching ? colors.faded! : options.color(box);
    drawing.fillRect(x, y + 1, Math.max(NARROWEST, width - (width > 3 ? 1 : 0)), ROW - 1);
    if (box.remote > box.samples / 2) {
      // Read from the live target after the sample: hatched at its lower edge.
      drawing.fillStyle = colors.background!;
      for (let at = x + 2; at < x + width - 3; at += 6) drawing.fillRect(at, y + ROW - 3, 3, 1);
    }
    if (box === this.chosen) {
      drawing.strokeStyle = colors.chosen!;
      drawing.lineWidth = 2;
      drawing.strokeRect(x + 1, y + 2, Math.max(1, width - 3), ROW - 3);
    }
    if (width >= LABELLED) {
      drawing.fillStyle = options.searching && !matches ? colors.chosen! : colors.text!;
      drawing.fillText(fit(drawing, options.label(box), width - 6), x + 3, y + ROW / 2 + 1);
    }
  }

  private at(x: number, y: number): Drawn | undefined {
    const row = Math.floor((this.options.upwards ? this.height - y : y) / ROW);
    return this.rows[row]?.find((one) => x >= one.x && x < one.x + one.width);
  }

  private hover(event: MouseEvent) {
    const found = this.at(event.offsetX, event.offsetY);
    this.tip.hidden = !found;
    this.canvas.style.cursor = found ? 'pointer' : 'default';
    if (!found) return;
    this.tip.replaceChildren(...this.options.describe(found.box, this.root).map((line) => h('div', {}, line)));
    const room = this.element.clientWidth - this.tip.offsetWidth - 4;
    this.tip.style.left = `${Math.max(0, Math.min(event.offsetX + 12, room))}px`;
    this.tip.style.top = `${event.offsetY + 16}px`;
  }

  private pathOf(box: Box): number[] {
    const path = [];
    for (let at: Box | null = box; at?.parent; at = at.parent) path.push(at.id);
    return path.reverse();
  }

  private zoomTo(box: Box) {
    this.tip.hidden = true;
    this.chosen = box;
    this.options.onZoom(this.pathOf(box));
  }

  private key(event: KeyboardEvent) {
    const box = this.chosen ?? this.zoomedBox();
    const siblings = box.parent?.children() ?? [box];
    const at = siblings.indexOf(box);
    const inwards = this.options.upwards ? 'ArrowUp' : 'ArrowDown';
    const outwards = this.options.upwards ? 'ArrowDown' : 'ArrowUp';
    const steps: Record<string, Box | null | undefined> = {
      [inwards]: box.children()[0],
      [outwards]: box.parent,
      ArrowRight: siblings[at + 1],
      ArrowLeft: siblings[at - 1],
    };
    if (event.key === 'Enter') this.zoomTo(box);
    else if (event.key === 'Escape') {
      // First leave the zoom; the page handles the next Escape.
      if (!this.options.zoom.length) return;
      this.options.onZoom([]);
    } else if (event.key === 's' && box.id >= 0) this.options.onChoose(box);
    else if (event.key in steps) {
      this.chosen = steps[event.key] ?? box;
      this.spoken.textContent = this.options.describe(this.chosen, this.root).join(', ');
      this.draw(this.root, this.options);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
