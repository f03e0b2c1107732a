// The state of the page, kept in its fragment, so that links can lead to it.

import { initialFilter, type Filter } from './selection';
import type { Profile } from './data';
import { usualColors, type ColorBy } from './color';

export const VIEWS = ['flame', 'leaf', 'functions', 'tree', 'sandwich', 'chart', 'source', 'diff'] as const;
export type View = (typeof VIEWS)[number];

export interface State {
  view: View;
  /** Which of two recordings is shown. */
  side: number;
  filter: Filter;
  search: string;
  /** The function of the sandwich and source views; -1 if none is chosen. */
  function: number;
  /** Functions from the root of a flamegraph to the box that fills its width. */
  zoom: number[];
  /** Whether roots are at the bottom. */
  upwards: boolean;
  colorBy: ColorBy;
}

export function initial(profile: Profile, isDiff: boolean): State {
  return {
    view: isDiff ? 'diff' : 'flame',
    side: isDiff ? 1 : 0,
    filter: initialFilter(profile),
    search: '',
    function: -1,
    zoom: [],
    upwards: false,
    colorBy: usualColors(profile),
  };
}

const TEXTS = ['comm', 'module', 'function', 'language', 'ignore', 'hide'] as const;
const SWITCHES = ['noKernel', 'noInline', 'foldAsync'] as const;

export function toFragment(state: State, start: State): string {
  const out = new URLSearchParams();
  const { filter } = state;
  if (state.view !== start.view) out.set('view', state.view);
  if (state.side !== start.side) out.set('side', String(state.side));
  if (filter.event !== start.filter.event) out.set('event', String(filter.event));
  const ranges = [filter, start.filter].map(({ range }) => range?.map(Math.round).join('-') ?? 'all');
  if (ranges[0] !== ranges[1]) out.set('range', ranges[0]!);
  const threads = [filter, start.filter].map((one) => (one.threads ? [...one.threads].join('.') : 'all'));
  if (threads[0] !== threads[1]) out.set('threads', threads[0]!);
  for (const key of TEXTS) if (filter[key] !== start.filter[key]) out.set(key, filter[key]);
  for (const key of SWITCHES) if (filter[key] !== start.filter[key]) out.set(key, filter[key] ? '1' : '0');
  if (state.search) out.set('search', state.search);
  if (state.function >= 0) out.set('of', String(state.function));
  if (state.zoom.length) out.set('zoom', state.zoom.map((id) => id.toString(36)).join('.'));
  if (state.upwards) out.set('upwards', '1');
  if (state.colorBy !== start.colorBy) out.set('colors', state.colorBy);
  return out.toString();
}

/** A fragment is user input: invalid parts are ignored. */
export function fromFragment(fragment: string, start: State, profiles: Profile[]): State {
  const from = new URLSearchParams(fragment);
  const whole = (text: string | null, below: number, otherwise: number) => {
    const value = text === null || !/^\d+$/.test(text) ? NaN : Number(text);
    return value < below ? value : otherwise;
  };
  const side = whole(from.get('side'), profiles.length, start.side);
  const profile = profiles[side]!;
  const functions = profile.functionName.length;
  const filter = { ...start.filter, event: whole(from.get('event'), profile.events.length, start.filter.event) };
  const range = /^(\d+)-(\d+)$/.exec(from.get('range') ?? '');
  if (range && Number(range[1]) < Number(range[2])) filter.range = [Number(range[1]), Number(range[2])];
  if (from.get('range') === 'all') filter.range = null;
  const threads = (from.get('threads') ?? '').split('.').map((text) => whole(text, profile.threads.length, -1));
  if (threads.some((thread) => thread >= 0)) filter.threads = new Set(threads.filter((thread) => thread >= 0));
  if (from.get('threads') === 'all') filter.threads = null;
  for (const key of TEXTS) filter[key] = from.get(key) ?? filter[key];
  for (const key of SWITCHES) if (from.has(key)) filter[key] = from.get(key) === '1';
  const view = from.get('view');
  const zoom = (from.get('zoom') ?? '').split('.').filter(Boolean).map((text) => parseInt(text, 36));
  return {
    view: VIEWS.find((known) => known === view && (known !== 'diff' || profiles.length > 1)) ?? start.view,
    side,
    filter,
    search: from.get('search') ?? '',
    function: whole(from.get('of'), functions, -1),
    zoom: zoom.every((id) => id >= 0 && id < functions) ? zoom : [],
    upwards: from.get('upwards') === '1',
    colorBy: (['module', 'language'] as const).find((known) => known === from.get('colors')) ?? start.colorBy,
  };
}
