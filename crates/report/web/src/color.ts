// Colours of functions: a hue for each category or module, which colour-blind people can
// distinguish, too (Okabe and Ito's set), and a shade for each function, the same in every picture.

import { KINDS, type Profile } from './data';

export type ColorBy = 'language' | 'module';

type Color = [hue: number, saturation: number, lightness: number];

const BY_LANGUAGE: Record<string, Color> = {
  C: [26, 85, 62], // orange
  'C++': [202, 70, 62], // sky blue
  Rust: [164, 55, 52], // bluish green
  Python: [232, 55, 74], // blue
  Java: [90, 40, 58],
  JavaScript: [70, 65, 58],
  Go: [186, 50, 66],
  Ruby: [350, 60, 70],
  PHP: [262, 50, 74],
};
const OTHER_LANGUAGE: Color = [56, 80, 60];

/** Without a language: JIT code, the kernel, code without symbols, and pseudo-frames. */
const BY_KIND: Record<(typeof KINDS)[number], [label: string, Color]> = {
  user: ['no name', [30, 10, 68]],
  kernel: ['kernel', [326, 45, 66]],
  jit: ['run-time code', [56, 80, 60]],
  interpreted: ['interpreted', BY_LANGUAGE.Python!],
  missing: ['missing', [0, 0, 78]],
  state: ['state', [210, 30, 75]],
};

/** A function's language, or else its kind. */
function category(profile: Profile, id: number): [label: string, Color] {
  const language = profile.languages[profile.functionLanguage[id]! - 1];
  return language ? [language, BY_LANGUAGE[language] ?? OTHER_LANGUAGE] : BY_KIND[KINDS[profile.functionKind[id]!] ?? 'user'];
}

/** Whether it is the code of programs. */
function isOfProgram(profile: Profile, id: number): boolean {
  const kind = KINDS[profile.functionKind[id]!];
  return kind === 'user' || kind === 'jit' || kind === 'interpreted';
}

/** By rank among the modules with most functions; the last is for all others. */
const MODULES: Color[] = [
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
  /** By index of the name: its index in MODULES. */
  private readonly modules: Map<number, number>;

  constructor(private readonly profile: Profile, readonly by: ColorBy, private readonly dark: boolean) {
    this.modules = places(profile);
  }

  /** The colour of a function; -1 is the root. */
  of(id: number): string {
    if (id < 0) return this.dark ? 'hsl(215 15% 62%)' : 'hsl(215 20% 82%)';
    let color = this.known.get(id);
    if (!color) this.known.set(id, (color = this.make(id)));
    return color;
  }

  private make(id: number): string {
    const { profile } = this;
    let [, [hue, saturation, lightness]] = category(profile, id);
    if (this.by === 'module' && isOfProgram(profile, id)) {
      [hue, saturation, lightness] = MODULES[this.modules.get(profile.functionModule[id]!) ?? MODULES.length - 1]!;
    }
    const shade = (hash(profile.strings[profile.functionName[id]!]!) % 13) - 6;
    // Names are black on them: never so dark that they are unreadable.
    const light = this.dark ? lightness - 6 : lightness;
    return `hsl(${hue} ${saturation}% ${light + shade}%)`;
  }

  /** The legend of the hues of these functions. */
  legend(ids: Iterable<number>): [label: string, color: string][] {
    const found = new Map<string, string>();
    for (const id of ids) {
      const module = this.profile.strings[this.profile.functionModule[id]!]!;
      const isModule = this.by === 'module' && isOfProgram(this.profile, id);
      const label = isModule ? module || 'no module' : category(this.profile, id)[0];
      if (!found.has(label)) found.set(label, this.of(id));
    }
    return [...found];
  }
}

/** The modules of programs by their number of functions, so that neighbours differ. */
function places(profile: Profile): Map<number, number> {
  const counts = new Map<number, number>();
  profile.functionModule.forEach((module, id) => {
    if (isOfProgram(profile, id)) counts.set(module, (counts.get(module) ?? 0) + 1);
  });
  const sorted = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  return new Map(sorted.map(([module], index) => [module, Math.min(index, MODULES.length - 1)]));
}

/** Languages if there are several: otherwise all functions would have one colour. */
export function usualColors(profile: Profile): ColorBy {
  const languages = new Set(profile.functionLanguage);
  languages.delete(0);
  return languages.size > 1 ? 'language' : 'module';
}

function hash(text: string): number {
  let value = 2166136261;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
  return value >>> 0;
}

/** Red for growth, blue for decline, the stronger the nearer to the largest change: as in `prof diff --flamegraph`. */
export function changeColor(change: number, most: number): string {
  if (!change || !most) return 'rgb(235 235 235)';
  const pale = Math.round(100 + 150 * (1 - Math.abs(change) / most));
  return change > 0 ? `rgb(255 ${pale} ${pale})` : `rgb(${pale} ${pale} 255)`;
}
