// Source lines and instructions of a function with their weights.

import { h } from './dom';
import type { CallTree } from './calltree';
import { clean, grouped, percent } from './format';

export interface LineWeight {
  file: number;
  line: number;
  own: number;
  total: number;
}

/** By stack: the weight of the selected samples. */
function stackWeights(tree: CallTree): Float64Array {
  const { profile, selected } = tree;
  const { sampleStack, samplePeriod } = profile;
  const weights = new Float64Array(profile.stackFrame.length);
  for (let index = 0; index < selected.count; index++) {
    const at = selected.positions[index]!;
    weights[sampleStack[at]!]! += samplePeriod[at]!;
  }
  return weights;
}

/** The lines of a function, as far as the selected samples have them, by file and line. */
export function linesOf(tree: CallTree, id: number): LineWeight[] {
  const { profile } = tree;
  const own = stackWeights(tree);
  const total = own.slice();
  for (let stack = total.length - 1; stack >= 0; stack--) {
    const prefix = profile.stackPrefix[stack]!;
    if (prefix >= 0) total[prefix]! += total[stack]!;
  }
  // The locations of the function in each frame: line and file, and whether it is the innermost.
  const lines = new Map<string, LineWeight>();
  const places = (frame: number) => {
    const first = frame ? profile.frameEnds[frame - 1]! : 0;
    const found: { line: LineWeight; innermost: boolean }[] = [];
    for (let at = first; at < profile.frameEnds[frame]!; at++) {
      if (profile.locationFunction[at] !== id) continue;
      const [file, line] = [profile.locationFile[at]!, profile.locationLine[at]!];
      const key = `${file}:${line}`;
      let weight = lines.get(key);
      if (!weight) lines.set(key, (weight = { file, line, own: 0, total: 0 }));
      found.push({ line: weight, innermost: at === first });
    }
    return found;
  };
  const byFrame = new Map<number, ReturnType<typeof places>>();
  const ofFrame = (frame: number) => {
    let found = byFrame.get(frame);
    if (!found) byFrame.set(frame, (found = places(frame)));
    return found;
  };
  for (let stack = 0; stack < total.length; stack++) {
    if (!total[stack]) continue;
    for (const { line, innermost } of ofFrame(profile.stackFrame[stack]!)) {
      if (innermost) line.own += own[stack]!;
      if (!recurs(stack, line)) line.total += total[stack]!;
    }
  }
  /** Whether a caller is on the same line: then its total includes this one. */
  function recurs(stack: number, line: LineWeight): boolean {
    for (let at = profile.stackPrefix[stack]!; at >= 0; at = profile.stackPrefix[at]!) {
      if (ofFrame(profile.stackFrame[at]!).some((place) => place.line === line)) return true;
    }
    return false;
  }
  return [...lines.values()].filter((line) => line.total > 0).sort((a, b) => a.file - b.file || a.line - b.line);
}

const CONTEXT = 4;

export class SourceView {
  readonly element = h('div', { class: 'source', tabindex: 0 });

  draw(tree: CallTree, id: number, name: string, unit: string) {
    if (id < 0) {
      this.element.replaceChildren(h('p', { class: 'hint' }, 'Choose a function first: a row of the table, or a box of the flamegraph with the right mouse button or s.'));
      return;
    }
    const whole = tree.total[0]!;
    const lines = linesOf(tree, id);
    const files = new Map<number, LineWeight[]>();
    for (const line of lines) {
      const known = files.get(line.file);
      if (known) known.push(line);
      else files.set(line.file, [line]);
    }
    const parts: Node[] = [h('h2', {}, name)];
    if (!lines.length) parts.push(h('p', { class: 'hint' }, 'No selected sample is in this function.'));
    for (const [file, weights] of files) parts.push(...this.file(tree, file, weights, whole));
    parts.push(...this.instructions(tree, id, unit));
    this.element.replaceChildren(...parts);
  }

  private file(tree: CallTree, file: number, weights: LineWeight[], whole: number): Node[] {
    const { profile } = tree;
    const name = file ? clean(profile.strings[file - 1]!) : 'no line information';
    const text = profile.sources.find((source) => source.file === file - 1);
    const byLine = new Map(weights.map((weight) => [weight.line, weight]));
    const rows: Node[] = [];
    let before = 0;
    for (const number of shownLines(weights, text ? CONTEXT : 0)) {
      if (before && number > before + 1) rows.push(h('tr', { class: 'gap' }, h('td', { colspan: 4 }, '⋮')));
      before = number;
      const weight = byLine.get(number);
      const line = text?.lines[number - text.first];
      const share = weight ? weight.own / whole : 0;
      const row = h(
        'tr',
        { class: weight ? 'hot' : '' },
        h('td', { class: 'number' }, weight?.own ? percent(weight.own, whole) : ''),
        h('td', { class: 'number' }, weight ? percent(weight.total, whole) : ''),
        h('td', { class: 'number quiet' }, number ? String(number) : '?'),
        h('td', {}, h('code', {}, clean(line?.replaceAll('\t', '    ') ?? ''))),
      );
      row.style.setProperty('--share', `${Math.min(100, 200 * share)}%`);
      rows.push(row);
    }
    const head = h('tr', {}, h('th', { class: 'number' }, 'Self'), h('th', { class: 'number' }, 'Total'), h('th', { class: 'number' }, 'Line'), h('th', {}, name));
    const hint = text || !file ? null : h('p', { class: 'hint' }, 'The text of this file is not in the report.');
    return [h('table', { class: 'lines' }, h('thead', {}, head), h('tbody', {}, ...rows)), ...(hint ? [hint] : [])];
  }

  private instructions(tree: CallTree, id: number, unit: string): Node[] {
    const { profile } = tree;
    const name = profile.strings[profile.functionName[id]!]!;
    const module = profile.strings[profile.functionModule[id]!]!;
    const listing = profile.code.find((code) => code.function === name && code.module === module);
    if (!listing) return [];
    const whole = listing.instructions.reduce((sum, one) => sum + one.own, 0);
    const rows = listing.instructions.map((one) => {
      const row = h(
        'tr',
        { class: one.own ? 'hot' : '' },
        h('td', { class: 'number' }, one.own ? percent(one.own, whole) : ''),
        h('td', { class: 'number quiet' }, one.line ? String(one.line) : ''),
        h('td', { class: 'number quiet' }, one.address.toString(16)),
        h('td', {}, h('code', {}, clean(one.text))),
      );
      row.style.setProperty('--share', `${(100 * one.own) / Math.max(1, whole)}%`);
      return row;
    });
    const title = `Instructions: shares of the function's own ${unit === 'ns' ? 'time' : unit} in the whole recording (${grouped(rows.length)})`;
    const head = h('tr', {}, h('th', { class: 'number' }, 'Self'), h('th', { class: 'number' }, 'Line'), h('th', { class: 'number' }, 'Address'), h('th', {}, ''));
    return [h('h3', {}, title), h('table', { class: 'lines' }, h('thead', {}, head), h('tbody', {}, ...rows))];
  }
}

function shownLines(weights: LineWeight[], context: number): number[] {
  const shown = new Set<number>();
  for (const { line } of weights) {
    if (!line) shown.add(0);
    else for (let at = Math.max(1, line - context); at <= line + context; at++) shown.add(at);
  }
  return [...shown].sort((a, b) => a - b);
}
