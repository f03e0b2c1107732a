// A table that makes only its visible rows, so that it may have any number.

import { h } from './dom';

export interface Column<R> {
  title: string;
  /** Right-aligned, and sorted from the largest on. */
  numeric: boolean;
  text(row: R): string;
  /** The sort key. */
  key(row: R): number | string;
  /** A share from 0 to 1, drawn behind the text. */
  bar?(row: R): number;
  /** A class for the cell. */
  mark?(row: R): string;
}

const ROW = 22;

export class ListView<R> {
  readonly element: HTMLElement;
  private readonly header = h('div', { class: 'row header', role: 'row' });
  private readonly body = h('div', { class: 'rows', tabindex: 0, role: 'grid' });
  private readonly filler = h('div', { class: 'filler' });
  private rows: R[] = [];
  private sorted = -1;
  private ascending = false;
  private chosen = 0;

  constructor(
    private readonly columns: Column<R>[],
    private readonly onOpen: (row: R) => void,
    private readonly template: string,
  ) {
    this.element = h('div', { class: 'list' }, this.header, this.body);
    this.body.append(this.filler);
    this.body.addEventListener('scroll', () => this.render());
    this.body.addEventListener('keydown', (event) => this.key(event));
    columns.forEach((column, index) => {
      const cell = h('button', { class: column.numeric ? 'cell number' : 'cell', role: 'columnheader', click: () => this.sortBy(index) }, column.title);
      this.header.append(cell);
    });
    this.header.style.gridTemplateColumns = template;
  }

  /** Shows rows, which are sorted. */
  show(rows: R[]) {
    this.rows = rows;
    this.chosen = Math.min(this.chosen, Math.max(0, rows.length - 1));
    if (this.sorted >= 0) this.sort();
    this.filler.style.height = `${this.rows.length * ROW}px`;
    this.render();
  }

  private sortBy(index: number) {
    this.ascending = this.sorted === index ? !this.ascending : !this.columns[index]!.numeric;
    this.sorted = index;
    this.sort();
    this.render();
  }

  private sort() {
    const { key } = this.columns[this.sorted]!;
    const sign = this.ascending ? 1 : -1;
    this.rows = [...this.rows].sort((a, b) => {
      const [one, other] = [key(a), key(b)];
      return one < other ? -sign : one > other ? sign : 0;
    });
    [...this.header.children].forEach((cell, index) =>
      cell.setAttribute('aria-sort', index === this.sorted ? (this.ascending ? 'ascending' : 'descending') : 'none'),
    );
  }

  render() {
    const first = Math.max(0, Math.floor(this.body.scrollTop / ROW) - 5);
    const count = Math.ceil((this.body.clientHeight || 600) / ROW) + 10;
    const visible = this.rows.slice(first, first + count).map((row, index) => this.row(row, first + index));
    this.filler.replaceChildren(...visible);
  }

  private row(row: R, index: number): HTMLElement {
    const cells = this.columns.map((column) => {
      const text = column.text(row);
      const classes = `cell${column.numeric ? ' number' : ''} ${column.mark?.(row) ?? ''}`;
      const cell = h('div', { class: classes, role: 'gridcell', title: text }, h('span', {}, text));
      const share = column.bar?.(row);
      if (share) cell.style.setProperty('--share', `${Math.min(100, 100 * share)}%`);
      return cell;
    });
    const open = () => {
      this.chosen = index;
      this.onOpen(row);
    };
    const element = h('div', { class: index === this.chosen ? 'row chosen' : 'row', role: 'row', click: open }, ...cells);
    element.style.gridTemplateColumns = this.template;
    element.style.top = `${index * ROW}px`;
    return element;
  }

  private key(event: KeyboardEvent) {
    const page = Math.max(1, Math.floor(this.body.clientHeight / ROW) - 1);
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.rows.length, End: this.rows.length };
    if (event.key === 'Enter' && this.rows[this.chosen]) this.onOpen(this.rows[this.chosen]!);
    else if (event.key in steps) {
      this.chosen = Math.max(0, Math.min(this.rows.length - 1, this.chosen + steps[event.key]!));
      const top = this.chosen * ROW;
      const { scrollTop, clientHeight } = this.body;
      if (top < scrollTop) this.body.scrollTop = top;
      else if (top + ROW > scrollTop + clientHeight) this.body.scrollTop = top + ROW - clientHeight;
      this.render();
    } else return;
    event.preventDefault();
  }
}
