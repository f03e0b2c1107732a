// A call tree to open and close, branch by branch.

import { h } from './dom';
import type { Box } from './graph';
import { amount, percent } from './format';

export interface OutlineOptions {
  unit: string;
  label(box: Box): string;
  module(box: Box): string;
  matches(box: Box): boolean;
  onChoose(box: Box): void;
}

interface Line {
  box: Box;
  depth: number;
}

const ROW = 22;
/** Opening a branch also opens its children as long as one has nearly all of the weight. */
const MOSTLY = 0.9;

export class OutlineView {
  readonly element = h('div', { class: 'outline', tabindex: 0, role: 'tree' });
  private readonly filler = h('div', { class: 'filler' });
  private open = new Set<Box>();
  private lines: Line[] = [];
  private chosen = 0;
  private root!: Box;
  private options!: OutlineOptions;

  constructor() {
    this.element.append(this.filler);
    this.element.addEventListener('scroll', () => this.render());
    this.element.addEventListener('keydown', (event) => this.key(event));
  }

  show(root: Box, options: OutlineOptions) {
    [this.root, this.options] = [root, options];
    this.open = new Set();
    this.expand(root);
    this.chosen = 0;
    this.update();
  }

  private expand(box: Box) {
    for (let at: Box | undefined = box, whole = box.value; at && at.value >= whole * MOSTLY; at = at.children()[0]) {
      this.open.add(at);
      whole = at.value;
    }
  }

  private update() {
    this.lines = [];
    const pending = [{ box: this.root, depth: -1 }];
    while (pending.length) {
      const line = pending.pop()!;
      if (line.depth >= 0) this.lines.push(line);
      if (!this.open.has(line.box)) continue;
      const below = line.box.children().map((box) => ({ box, depth: line.depth + 1 }));
      for (let at = below.length - 1; at >= 0; at--) pending.push(below[at]!);
    }
    this.filler.style.height = `${this.lines.length * ROW}px`;
    this.render();
  }

  private render() {
    const first = Math.max(0, Math.floor(this.element.scrollTop / ROW) - 5);
    const count = Math.ceil((this.element.clientHeight || 600) / ROW) + 10;
    const visible = this.lines.slice(first, first + count).map((line, index) => this.line(line, first + index));
    this.filler.replaceChildren(...visible);
  }

  private line({ box, depth }: Line, index: number): HTMLElement {
    const { options } = this;
    const state = !box.children().length ? ' ' : this.open.has(box) ? '▾' : '▸';
    const toggle = () => {
      this.chosen = index;
      this.toggle(box);
    };
    const name = h('span', { class: options.matches(box) ? 'name match' : 'name', dblclick: () => options.onChoose(box) }, options.label(box));
    const line = h(
      'div',
      { class: index === this.chosen ? 'row chosen' : 'row', role: 'treeitem', 'aria-level': depth + 1, 'aria-expanded': state === '▾', click: toggle },
      h('span', { class: 'cell number' }, percent(box.value, this.root.value)),
      h('span', { class: 'cell number' }, amount(box.value, options.unit)),
      h('span', { class: 'cell number' }, box.own ? percent(box.own, this.root.value) : ''),
      h('span', { class: 'cell call' }, ' '.repeat(2 * Math.min(depth, 200)), state, ' ', name, ' ', h('span', { class: 'module' }, options.module(box))),
    );
    line.style.top = `${index * ROW}px`;
    return line;
  }

  private toggle(box: Box) {
    if (this.open.has(box)) this.open.delete(box);
    else this.expand(box);
    this.update();
  }

  private key(event: KeyboardEvent) {
    const line = this.lines[this.chosen];
    if (!line) return;
    if (event.key === 'ArrowDown') this.chosen = Math.min(this.lines.length - 1, this.chosen + 1);
    else if (event.key === 'ArrowUp') this.chosen = Math.max(0, this.chosen - 1);
    else if (event.key === 'ArrowRight' && !this.open.has(line.box)) this.expand(line.box);
    else if (event.key === 'ArrowLeft') {
      if (this.open.has(line.box)) this.open.delete(line.box);
      else while (this.chosen > 0 && this.lines[this.chosen]!.depth >= line.depth) this.chosen--;
    } else if (event.key === 'Enter') this.options.onChoose(line.box);
    else return;
    event.preventDefault();
    const top = this.chosen * ROW;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + ROW > this.element.scrollTop + this.element.clientHeight) this.element.scrollTop = top + ROW - this.element.clientHeight;
    this.update();
  }
}
