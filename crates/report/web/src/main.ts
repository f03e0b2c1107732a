// The page: one state, from which every view is drawn.

import { CallTree, ROOT, Shape } from './calltree';
import { changeColor, Palette } from './color';
import { ChartView } from './chart';
import { type Data, type Profile, unpack } from './data';
import { compare, type DiffRow, PairBox } from './diff';
import { h } from './dom';
import { FlameView } from './flame';
import { amount, clean, counted, grouped, percent } from './format';
import { functions, type FunctionRow, hottest } from './flat';
import { type Box, byLeaf, callees, calleesOf, callersOf } from './graph';
import { ListView } from './list';
import { OutlineView } from './outline';
import { foundIn, type Search, searchFor } from './search';
import { pattern } from './selection';
import { SourceView } from './source';
import { fromFragment, initial, type State, toFragment, type View, VIEWS } from './state';
import { TimelineView } from './timeline';

const TITLES: Record<View, string> = {
  flame: 'Flamegraph',
  leaf: 'By leaf',
  functions: 'Functions',
  tree: 'Call tree',
  sandwich: 'Callers and callees',
  chart: 'Flame chart',
  source: 'Source',
  diff: 'Difference',
};

/** Functions that are named above the pictures. */
const HOT = 5;

const HELP: [string, string][] = [
  ['/', 'search; Enter shows the matches, Escape ends it'],
  ['arrow keys', 'move in a picture, table or tree'],
  ['Enter', 'zoom into the box, open the row'],
  ['s', 'callers and callees of the box (also: right mouse button)'],
  ['Escape', 'out of the search, then of the zoom, then of the selection'],
  ['u', 'roots at the top or at the bottom'],
  ['c', 'colours by language or by module'],
  ['?', 'this help'],
];

class Page {
  private state: State;
  private readonly start: State;
  private readonly dark = matchMedia('(prefers-color-scheme: dark)');
  private shape: { key: string; shape: Shape } | null = null;
  private tree: { key: string; tree: CallTree } | null = null;
  private searched: { key: string; search: Search | null } | null = null;
  private names: { profile: Profile; names: string[] } | null = null;
  /** The function whose callers and callees were drawn last. */
  private sandwichOf = -1;
  private readonly palettes = new Map<string, Palette>();

  private readonly timeline = new TimelineView();
  private readonly flame = new FlameView();
  private readonly lower = new FlameView();
  private readonly chart = new ChartView();
  private readonly outline = new OutlineView();
  private readonly source = new SourceView();
  private readonly list: ListView<FunctionRow>;
  private readonly diffList: ListView<DiffRow>;
  private readonly content = h('main', {});
  private readonly tabs = new Map<View, HTMLButtonElement>();
  private readonly searchField = h('input', { type: 'search', placeholder: 'Search (regular expression)', 'aria-label': 'search' });
  private readonly found = h('span', { class: 'found', 'aria-live': 'polite' });
  private readonly status = h('div', { class: 'status' });
  private readonly hot = h('div', { class: 'hottest' });
  private readonly legend = h('div', { class: 'legend' });
  private readonly filters = h('div', { class: 'filters' });
  private readonly help = h('dialog', { 'aria-label': 'keys' });

  constructor(private readonly data: Data) {
    this.start = initial(data.profiles[data.profiles.length - 1]!, this.isDiff);
    this.state = this.start;
    this.list = this.functionList();
    this.diffList = this.differenceList();
    document.title = clean(data.title);
    document.body.replaceChildren(this.header(), this.timeline.element, this.toolbar(), this.filters, this.hot, this.legend, this.content, this.status, this.help);
    const keys: typeof HELP = [[`1 … ${this.tabs.size}`, 'the views, in their order'], ...HELP];
    this.help.append(h('h2', {}, 'Keys'), ...keys.map(([key, what]) => h('p', {}, h('kbd', {}, key), ' ', what)), h('button', { click: () => this.help.close() }, 'Close'));
    this.searchField.addEventListener('input', () => this.update({ search: this.searchField.value }));
    window.addEventListener('hashchange', () => this.restore());
    window.addEventListener('popstate', () => this.restore());
    window.addEventListener('resize', () => this.render());
    window.addEventListener('beforeprint', () => this.render());
    this.dark.addEventListener('change', () => {
      this.palettes.clear();
      this.render();
    });
    document.addEventListener('keydown', (event) => this.key(event));
    this.restore();
  }

  private get isDiff(): boolean {
    return this.data.profiles.length > 1;
  }

  private get profile(): Profile {
    return this.data.profiles[this.state.side]!;
  }

  /** The picture as tests see it. */
  probe() {
    return { boxes: () => this.flame.boxes(), name: (id: number) => this.nameOf(id) };
  }

  private restore() {
    this.state = fromFragment(location.hash.slice(1), this.start, this.data.profiles);
    this.searchField.value = this.state.search;
    this.render();
  }

  /** Changes the state, the fragment and the picture. The browser's Back undoes it; a search is one step. */
  private update(change: Partial<State>) {
    const types = 'search' in change && !!change.search && !!this.state.search;
    this.state = { ...this.state, ...change };
    const fragment = toFragment(this.state, this.start);
    if (fragment !== location.hash.slice(1)) {
      const url = fragment ? `#${fragment}` : location.pathname + location.search;
      if (types) history.replaceState(null, '', url);
      else history.pushState(null, '', url);
    }
    this.render();
  }

  private setFilter(change: Partial<State['filter']>) {
    this.update({ filter: { ...this.state.filter, ...change } });
  }

  /** The calls of the selection. */
  private treeOf(side = this.state.side): CallTree {
    const profile = this.data.profiles[side]!;
    let { filter } = this.state;
    if (side !== this.state.side) {
      // Threads and times of one recording mean nothing in the other.
      filter = { ...filter, event: Math.min(filter.event, profile.events.length - 1), threads: null, range: null, cpus: null };
      return new CallTree(new Shape(profile, filter), filter);
    }
    const shapeKey = JSON.stringify([side, filter.hide, filter.noKernel, filter.noInline, filter.foldAsync]);
    if (this.shape?.key !== shapeKey) this.shape = { key: shapeKey, shape: new Shape(profile, filter) };
    const key = JSON.stringify([shapeKey, filter, filter.threads && [...filter.threads], filter.cpus && [...filter.cpus]]);
    if (this.tree?.key !== key) this.tree = { key, tree: new CallTree(this.shape.shape, filter) };
    return this.tree.tree;
  }

  private palette(): Palette {
    const key = `${this.state.side} ${this.state.colorBy}`;
    let palette = this.palettes.get(key);
    if (!palette) this.palettes.set(key, (palette = new Palette(this.profile, this.state.colorBy, this.dark.matches)));
    return palette;
  }

  private nameOf(id: number): string {
    if (id < 0) return 'all';
    const first = this.data.profiles[0]!;
    const known = this.profile.functionName.length;
    // In a difference, functions that only the first recording has follow after the others.
    if (id >= known) return clean(first.strings[first.functionName[id - known]!]!);
    if (this.names?.profile !== this.profile) this.names = { profile: this.profile, names: [] };
    return (this.names.names[id] ??= clean(this.profile.strings[this.profile.functionName[id]!]!));
  }

  /** The name for a box, which has little room. */
  private labelOf(id: number): string {
    const { strings, functionShort } = this.profile;
    return id >= 0 && id < functionShort.length ? clean(strings[functionShort[id]!]!) : this.nameOf(id);
  }

  private moduleOf(id: number): string {
    if (id < 0 || id >= this.profile.functionModule.length) return '';
    return clean(this.profile.strings[this.profile.functionModule[id]!]!);
  }

  /** The search. */
  private search(): Search | null {
    const { search: text, side } = this.state;
    const key = `${side} ${text}`;
    if (this.searched?.key !== key) this.searched = { key, search: searchFor(this.profile, text, (id) => this.nameOf(id)) };
    return this.searched.search;
  }

  private get unit(): string {
    return this.profile.events[this.state.filter.event]?.unit ?? 'units';
  }

  private choose(id: number, view: View = 'sandwich') {
    if (id >= 0 && id < this.profile.functionName.length) this.update({ function: id, view });
  }

  // Drawing

  private render() {
    const { state, profile } = this;
    for (const [view, tab] of this.tabs) tab.setAttribute('aria-selected', String(view === state.view));
    this.timeline.element.hidden = !profile.has_times;
    this.timeline.of(profile);
    this.timeline.draw({
      event: state.filter.event,
      range: state.filter.range,
      threads: state.filter.threads,
      onRange: (range) => this.setFilter({ range }),
      onThreads: (threads) => this.setFilter({ threads }),
    });
    this.renderFilters();
    const tree = this.treeOf();
    this.content.className = state.view;
    this.found.textContent = '';
    this.legend.replaceChildren();
    this.renderHot(tree);
    const draw: Record<View, () => void> = {
      flame: () => this.drawFlame(tree, callees(tree)),
      leaf: () => this.drawFlame(tree, byLeaf(tree)),
      functions: () => this.drawFunctions(tree),
      tree: () => this.drawTree(tree),
      sandwich: () => this.drawSandwich(tree),
      chart: () => this.drawChart(tree),
      source: () => this.drawSource(tree),
      diff: () => this.drawDiff(tree),
    };
    if (tree.totalSamples[ROOT]) draw[state.view]();
    else this.content.replaceChildren(h('p', { class: 'hint' }, 'No sample is left: widen the selection.'));
    this.renderStatus(tree);
  }

  private show(...elements: HTMLElement[]) {
    if ([...this.content.children].some((child, index) => child !== elements[index]) || this.content.children.length !== elements.length) {
      this.content.replaceChildren(...elements);
    }
  }

  private flameOptions(whole: number, zoomed: boolean) {
    const { state, unit } = this;
    const search = this.search();
    const palette = this.palette();
    return {
      upwards: state.upwards,
      color: (box: Box) => palette.of(box.id),
      label: (box: Box) => this.labelOf(box.id),
      describe: (box: Box) => this.describe(box, whole, unit),
      matches: (box: Box) => !!search?.matches[box.id],
      searching: !!search,
      zoom: zoomed ? state.zoom : [],
      onZoom: (zoom: number[]) => this.update({ zoom }),
      onChoose: (box: Box) => this.choose(box.id),
    };
  }

  private describe(box: Box, whole: number, unit: string): string[] {
    const lines = [this.nameOf(box.id)];
    if (this.moduleOf(box.id)) lines.push(this.moduleOf(box.id));
    lines.push(`${percent(box.value, whole)}, ${amount(box.value, unit)}, ${counted(box.samples, 'sample')}`);
    if (box.own) lines.push(`itself: ${percent(box.own, whole)}, ${amount(box.own, unit)}`);
    if (box.remote) lines.push(`in ${counted(box.remote, 'sample')} read from the live program after the sample`);
    return lines;
  }

  private drawFlame(tree: CallTree, root: Box) {
    this.show(this.flame.element);
    this.flame.draw(root, this.flameOptions(root.value, true));
    const search = this.search();
    if (search) {
      const { functions: count, value } = foundIn(tree, search);
      this.found.textContent = `${counted(count, 'function')}, ${percent(value, root.value)}`;
    }
    this.renderLegend(this.flame);
  }

  private renderLegend(view: FlameView) {
    const ids = new Set(view.boxes().map((box) => box.id).filter((id) => id >= 0));
    const entries = this.palette().legend(ids).slice(0, 12);
    this.legend.replaceChildren(
      ...entries.map(([label, color]) => {
        const box = h('i', {});
        box.style.background = color;
        return h('span', {}, box, clean(label));
      }),
    );
  }

  private drawFunctions(tree: CallTree) {
    this.show(this.list.element);
    const search = this.search();
    const rows = functions(tree);
    const matching = search ? rows.filter((row) => search.matches[row.id]) : rows;
    if (search) {
      const own = matching.reduce((sum, row) => sum + row.own, 0);
      this.found.textContent = `${counted(matching.length, 'function')}, self ${percent(own, tree.total[ROOT]!)}`;
    }
    this.list.show(matching);
  }

  private drawTree(tree: CallTree) {
    const search = this.search();
    const head = h('div', { class: 'row header' }, ...['Total', '', 'Self', 'Call'].map((title, at) => h('span', { class: at < 3 ? 'cell number' : 'cell' }, title)));
    this.content.replaceChildren(head, this.outline.element);
    this.outline.show(callees(tree), {
      unit: this.unit,
      label: (box) => this.nameOf(box.id),
      module: (box) => this.moduleOf(box.id),
      matches: (box) => !!search?.matches[box.id],
      onChoose: (box) => this.choose(box.id),
    });
  }

  /** The chosen function, or else the hottest. */
  private functionOf(tree: CallTree): number {
    return this.state.function >= 0 ? this.state.function : (hottest(tree, 1)[0]?.id ?? -1);
  }

  private drawSandwich(tree: CallTree) {
    const id = this.functionOf(tree);
    if (id < 0) {
      this.content.replaceChildren(h('p', { class: 'hint' }, 'No sample has a function.'));
      return;
    }
    const isOther = this.sandwichOf !== id || !this.content.contains(this.lower.element);
    const scrolled = this.flame.element.scrollTop;
    const [callers, called] = [callersOf(tree, id), calleesOf(tree, id)];
    const whole = tree.total[ROOT]!;
    const title = h('h2', {}, this.nameOf(id), ' ', h('small', {}, `${percent(called.value, whole)}, itself ${percent(called.own, whole)}`));
    this.content.replaceChildren(
      title,
      h('h3', {}, 'Callers: who calls it, outwards'),
      this.flame.element,
      h('h3', {}, 'Callees: what it calls'),
      this.lower.element,
    );
    this.flame.draw(callers, { ...this.flameOptions(whole, false), upwards: true, onZoom: () => undefined });
    this.lower.draw(called, { ...this.flameOptions(whole, false), upwards: false, onZoom: () => undefined });
    // The callers of a deep recursion are many rows: the function is at their lower end.
    this.flame.element.scrollTop = isOther ? this.flame.element.scrollHeight : scrolled;
    this.sandwichOf = id;
    this.renderLegend(this.lower);
  }

  private drawChart(tree: CallTree) {
    this.show(this.chart.element);
    const palette = this.palette();
    this.chart.draw(tree, { color: (id) => palette.of(id), label: (id) => this.labelOf(id), name: (id) => this.nameOf(id), onChoose: (id) => this.choose(id) });
  }

  private drawSource(tree: CallTree) {
    this.show(this.source.element);
    const id = this.functionOf(tree);
    this.source.draw(tree, id, this.nameOf(id), this.unit);
  }

  private drawDiff(tree: CallTree) {
    const trees: [CallTree, CallTree] = [this.treeOf(0), tree];
    if (this.state.side === 0) [trees[0], trees[1]] = [tree, this.treeOf(1)];
    this.show(this.flame.element, this.diffList.element);
    const wanted = pattern(this.state.search, 'i');
    const root = new PairBox(trees, [ROOT, ROOT], null, this.state.side);
    const pair = (box: Box) => box as PairBox;
    const change = (box: Box) => pair(box).share(1) - pair(box).share(0);
    const most = root.largestChange();
    this.flame.draw(root, {
      ...this.flameOptions(root.value, true),
      color: (box) => changeColor(pair(box).ownChange(), most),
      describe: (box) => [
        this.nameOf(box.id),
        `before ${percent(pair(box).share(0), 1)}, after ${percent(pair(box).share(1), 1)}`,
        `change ${points(change(box))}`,
        `itself ${points(pair(box).ownChange())}`,
      ],
      matches: (box) => !!wanted && box.id >= 0 && wanted.test(this.nameOf(box.id)),
    });
    const rows = compare(trees[0], trees[1]);
    this.diffList.show(wanted ? rows.filter((row) => wanted.test(row.name)) : rows);
    const swatch = (value: number, label: string) => {
      const box = h('i', {});
      box.style.background = changeColor(value, 1);
      return h('span', {}, box, label);
    };
    const bound = `(full colour: by ${(100 * most).toFixed(2)} points)`;
    this.legend.replaceChildren(
      swatch(1, `grew ${bound}`),
      swatch(0, 'the same'),
      swatch(-1, `shrank ${bound}`),
      h('span', {}, `widths: ${this.state.side ? 'after' : 'before'}; colours: own ${this.unit === 'ns' ? 'time' : 'weight'}`),
    );
  }

  /** The hottest functions, which most people look for first, above the pictures with details. */
  private renderHot(tree: CallTree) {
    this.hot.hidden = !['flame', 'leaf', 'tree', 'chart'].includes(this.state.view) || !tree.totalSamples[ROOT];
    if (this.hot.hidden) return;
    const whole = tree.total[ROOT]!;
    const found = hottest(tree, HOT).map(({ id, own }) =>
      h('button', { title: `${this.nameOf(id)}: callers and callees`, click: () => this.choose(id) }, h('b', {}, percent(own, whole)), ` ${this.nameOf(id)}`),
    );
    this.hot.replaceChildren(h('span', {}, this.unit === 'ns' ? 'Most time is spent in' : `Most ${clean(this.unit)} are of`), ...found);
  }

  private renderStatus(tree: CallTree) {
    const { filter } = this.state;
    const event = this.profile.events[filter.event]!;
    const parts = [`${clean(event.name)}: ${amount(tree.total[ROOT]!, event.unit)} in ${counted(tree.totalSamples[ROOT]!, 'sample')}`];
    if (filter.range) parts.push(`from ${amount(filter.range[0], 'ns')} to ${amount(filter.range[1], 'ns')}`);
    if (filter.threads) parts.push('some threads only');
    if (filter.cpus) parts.push(`CPU ${[...filter.cpus].join(', ')} only`);
    this.status.replaceChildren(parts.join(' · '));
  }

  // Controls around the views

  private header(): HTMLElement {
    const verdicts = this.data.profiles.map((profile, side) => {
      const { verdict } = profile;
      if (!verdict) return h('p', { class: 'verdict' }, 'The format of this recording does not say how good it is.');
      const name = `${this.isDiff ? (side ? 'after: ' : 'before: ') : ''}verdict: `;
      return h(
        'details',
        { class: `verdict ${verdict.grade}` },
        h('summary', {}, h('b', {}, `${name}${verdict.grade}`), ` ${clean(verdict.summary)}`, verdict.problems.length ? ` (${counted(verdict.problems.length, 'remark')})` : ''),
        h('ul', {}, ...verdict.problems.map((problem) => h('li', {}, clean(problem)))),
      );
    });
    const about = this.data.profiles.map(({ recording }) =>
      [recording.command, recording.hostname, recording.kernel && `Linux ${recording.kernel}`, recording.arch].filter(Boolean).map(clean).join(' · '),
    );
    return h('header', {}, h('h1', {}, clean(this.data.title)), ...about.map((line) => h('p', { class: 'quiet' }, line)), h('div', { class: 'verdicts' }, ...verdicts));
  }

  private toolbar(): HTMLElement {
    const bar = h('nav', { role: 'tablist' });
    for (const view of VIEWS) {
      if (view === 'diff' && !this.isDiff) continue;
      if (view === 'chart' && !this.data.profiles.every((profile) => profile.has_times)) continue;
      const tab = h('button', { role: 'tab', 'data-view': view, title: `key ${this.tabs.size + 1}`, click: () => this.update({ view, zoom: [] }) }, TITLES[view]);
      this.tabs.set(view, tab);
      bar.append(tab);
    }
    const reset = h('button', { click: () => this.reset() }, 'Reset');
    const keys = h('button', { title: 'keys', click: () => this.help.showModal() }, '?');
    return h('div', { class: 'toolbar' }, bar, this.searchField, this.found, reset, keys);
  }

  private reset() {
    this.searchField.value = '';
    this.update({ ...this.start, view: this.state.view, side: this.state.side });
  }

  private renderFilters() {
    // Not while the user types in one of them.
    if (this.filters.contains(document.activeElement) && document.activeElement instanceof HTMLInputElement) return;
    const { state } = this;
    const { filter } = state;
    const text = (key: 'comm' | 'module' | 'function' | 'language' | 'ignore' | 'hide', label: string, title: string) =>
      h('label', { title }, label, h('input', { type: 'text', name: key, value: filter[key], change: (event: Event) => this.setFilter({ [key]: (event.target as HTMLInputElement).value }) }));
    const tick = (key: 'noKernel' | 'noInline' | 'foldAsync', label: string) =>
      h('label', {}, h('input', { type: 'checkbox', name: key, checked: filter[key], click: (event: Event) => this.setFilter({ [key]: (event.target as HTMLInputElement).checked }) }), label);
    const options = this.profile.events.map((event, index) => h('option', { value: index, selected: index === filter.event }, clean(event.name)));
    const pick = h('select', { 'aria-label': 'event', change: (event: Event) => this.setFilter({ event: Number((event.target as HTMLSelectElement).value) }) }, ...options);
    const summary = h('summary', {}, 'Filters');
    const isOpen = this.filters.querySelector('details')?.open ?? ['comm', 'module', 'function', 'language', 'ignore', 'hide'].some((key) => filter[key as 'comm']);
    const sides = ['before', 'after'].map((label, side) => h('button', { 'aria-pressed': side === state.side, click: () => this.update({ side, zoom: [], function: -1, filter: this.start.filter }) }, label));
    this.filters.replaceChildren(
      ...(options.length > 1 ? [h('label', {}, 'Event', pick)] : []),
      ...(this.isDiff ? sides : []),
      h('button', { title: 'key u', click: () => this.update({ upwards: !state.upwards }) }, state.upwards ? 'Roots at the bottom' : 'Roots at the top'),
      h('button', { title: 'key c', click: () => this.update({ colorBy: state.colorBy === 'language' ? 'module' : 'language' }) }, `Colours by ${state.colorBy}`),
      h(
        'details',
        { open: isOpen },
        summary,
        text('function', 'Function', 'only stacks with a function whose name matches'),
        text('module', 'Module', 'only stacks with code of a module whose name matches'),
        text('language', 'Language', `only stacks with a function in one of these languages, separated by commas: ${this.profile.languages.join(', ')}`),
        text('comm', 'Thread', 'only threads whose name matches'),
        text('ignore', 'Ignore', 'no stacks with a function whose name matches'),
        text('hide', 'Hide', 'leave out functions whose name matches; their weight goes to their callers'),
        tick('noKernel', 'no kernel'),
        tick('noInline', 'no inlined functions'),
        tick('foldAsync', 'fold async executors'),
      ),
    );
  }

  private functionList(): ListView<FunctionRow> {
    const whole = () => this.treeOf().total[ROOT]!;
    return new ListView<FunctionRow>(
      [
        { title: 'Self', numeric: true, text: (row) => percent(row.own, whole()), key: (row) => row.own, bar: (row) => row.own / whole() },
        { title: '', numeric: true, text: (row) => amount(row.own, this.unit), key: (row) => row.own },
        { title: 'Total', numeric: true, text: (row) => percent(row.total, whole()), key: (row) => row.total, bar: (row) => row.total / whole() },
        { title: '', numeric: true, text: (row) => amount(row.total, this.unit), key: (row) => row.total },
        { title: 'Samples', numeric: true, text: (row) => grouped(row.ownSamples), key: (row) => row.ownSamples },
        { title: 'Function', numeric: false, text: (row) => this.nameOf(row.id), key: (row) => this.nameOf(row.id) },
        { title: 'Module', numeric: false, text: (row) => this.moduleOf(row.id), key: (row) => this.moduleOf(row.id) },
      ],
      (row) => this.choose(row.id),
      '5em 7em 5em 7em 5em 1fr 14em',
    );
  }

  private differenceList(): ListView<DiffRow> {
    const change = (row: DiffRow) => row.own[1] - row.own[0];
    return new ListView<DiffRow>(
      [
        { title: 'Before', numeric: true, text: (row) => percent(row.own[0], 1), key: (row) => row.own[0] },
        { title: 'After', numeric: true, text: (row) => percent(row.own[1], 1), key: (row) => row.own[1] },
        { title: 'Change', numeric: true, text: (row) => points(change(row)), key: change, mark: (row) => (row.certainty === 'noise' ? 'quiet' : change(row) > 0 ? 'grew' : 'shrank') },
        { title: 'Certainty', numeric: false, text: (row) => row.certainty, key: (row) => row.certainty },
        { title: 'Total before', numeric: true, text: (row) => percent(row.total[0], 1), key: (row) => row.total[0] },
        { title: 'Total after', numeric: true, text: (row) => percent(row.total[1], 1), key: (row) => row.total[1] },
        { title: 'Function', numeric: false, text: (row) => clean(row.name), key: (row) => row.name },
        { title: 'Module', numeric: false, text: (row) => clean(row.module), key: (row) => row.module },
      ],
      (row) => this.update({ search: `^${row.name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$` }),
      '5em 5em 7em 5em 7em 7em 1fr 12em',
    );
  }

  private key(event: KeyboardEvent) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.help.open) return;
    const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (event.key === 'Escape') {
      if (typing) (event.target as HTMLElement).blur();
      if (this.state.search) {
        this.searchField.value = '';
        this.update({ search: '' });
      } else if (this.state.zoom.length) this.update({ zoom: [] });
      else if (this.state.filter.range || this.state.filter.threads) this.setFilter({ range: null, threads: null });
      return;
    }
    if (typing) return;
    const view = [...this.tabs.keys()][Number(event.key) - 1];
    if (view) this.update({ view, zoom: [] });
    else if (event.key === '/') this.searchField.focus();
    else if (event.key === '?') this.help.showModal();
    else if (event.key === 'u') this.update({ upwards: !this.state.upwards });
    else if (event.key === 'c') this.update({ colorBy: this.state.colorBy === 'language' ? 'module' : 'language' });
    else return;
    event.preventDefault();
  }
}

function points(change: number): string {
  return `${change > 0 ? '+' : ''}${(100 * change).toFixed(2)} points`;
}

async function main() {
  const element = document.getElementById('data')!;
  try {
    const data = await unpack(element.textContent!.trim());
    element.remove();
    const page = new Page(data);
    // Milliseconds from the start of loading to the first picture.
    Object.assign(window, { prof: { ...page.probe(), drawn: performance.now() } });
  } catch (error) {
    document.body.replaceChildren(h('p', { class: 'hint' }, `This report cannot be shown: ${String(error)}. It needs a browser of 2023 or newer.`));
  }
}

void main();
