// Colours of functions: a hue for each category or module, told apart by colour-blind people too
// (Okabe and Ito's set), and a shade for each function, the same in every picture.

import { CATEGORIES, type Profile } from './data';

export type ColorBy = 'language' | 'module';

/** Hue, saturation, lightness by category; see CATEGORIES. */
const BY_CATEGORY: [number, number, number][] = [
  [26, 85, 62], // C: orange
  [202, 70, 62], // C++: sky blue
  [164, 55, 52], // Rust: bluish green
  [232, 55, 74], // Python: blue
  [56, 80, 60], // run-time code: yellow
  [326, 45, 66], // kernel: reddish purple
  [30, 10, 68], // no name
  [0, 0, 78], // missing
  [210, 30, 75], // state
];

/** From here on, categories are not of code that programs bring. */
const PROGRAMS = CATEGORIES.indexOf('kernel');

/** By place among the modules with most functions; the last is that of all others. */
const MODULES: [number, number, number][] = [
  [202, 70, 62],
  [26, 85, 62],
  [164, 55, 52],
  [56, 80, 60],
  [262, 50, 72],
  [350, 60, 72],
  [90, 40, 62],
  [30, 10, 68],
];

export class Palette {
  private readonly known = new Map<number, string>();
  /** By index of the name: its place in MODULES. */
  private readonly modules: Map<number, number>;

  constructor(private readonly profile: Profile, readonly by: ColorBy, private readonly dark: boolean) {
    this.modules = places(profile);
  }

  /** The colour of a function; of -1, that of everything. */
  of(id: number): string {
    if (id < 0) return this.dark ? 'hsl(215 15% 62%)' : 'hsl(215 20% 82%)';
    let color = this.known.get(id);
    if (!color) this.known.set(id, (color = this.make(id)));
    return color;
  }

  private make(id: number): string {
    const { profile } = this;
    const category = profile.functionCategory[id]!;
    let [hue, saturation, lightness] = BY_CATEGORY[category] ?? BY_CATEGORY[CATEGORIES.indexOf('no name')]!;
    if (this.by === 'module' && category < PROGRAMS) {
      [hue, saturation, lightness] = MODULES[this.modules.get(profile.functionModule[id]!) ?? MODULES.length - 1]!;
    }
    const shade = (hash(profile.strings[profile.functionName[id]!]!) % 13) - 6;
    // Names are written in black on them: never darker than that can be read on.
    const light = this.dark ? lightness - 6 : lightness;
    return `hsl(${hue} ${saturation}% ${light + shade}%)`;
  }

  /** What the hues stand for, as far as these functions have them. */
  legend(ids: Iterable<number>): [label: string, color: string][] {
    const found = new Map<string, string>();
    for (const id of ids) {
      const category = this.profile.functionCategory[id]!;
      const module = this.profile.strings[this.profile.functionModule[id]!]!;
      const label = this.by === 'module' && category < PROGRAMS ? module || 'no module' : CATEGORIES[category]!;
      if (!found.has(label)) found.set(label, this.of(id));
    }
    return [...found];
  }
}

/** The modules of programs by how many of their functions there are, so that neighbours differ. */
function places(profile: Profile): Map<number, number> {
  const counts = new Map<number, number>();
  profile.functionModule.forEach((module, id) => {
    if (profile.functionCategory[id]! < PROGRAMS) counts.set(module, (counts.get(module) ?? 0) + 1);
  });
  const sorted = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  return new Map(sorted.map(([module], index) => [module, Math.min(index, MODULES.length - 1)]));
}

/** Languages, where there are several: else they would all have one colour. */
export function usualColors(profile: Profile): ColorBy {
  const languages = new Set(profile.functionCategory.filter((category) => category < PROGRAMS));
  return languages.size > 1 ? 'language' : 'module';
}

function hash(text: string): number {
  let value = 2166136261;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
  return value >>> 0;
}

/** Red for what grew, blue for what shrank, stronger with the change. */
export function changeColor(change: number, dark: boolean): string {
  const strength = Math.min(1, Math.abs(change) * 12);
  if (strength < 0.01) return dark ? 'hsl(0 0% 66%)' : 'hsl(0 0% 88%)';
  const light = dark ? 68 - 8 * strength : 88 - 30 * strength;
  return `hsl(${change > 0 ? 12 : 212} ${30 + 55 * strength}% ${light}%)`;
}
