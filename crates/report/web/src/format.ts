// Numbers, times and names as people read them.

const SCALES: [number, string][] = [
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
];

/** A weight with its unit: `237 ms`, `1.2 G cycles`. */
export function amount(value: number, unit: string): string {
  if (unit === 'ns') return duration(value);
  const scale = SCALES.find(([size]) => value >= size);
  if (!scale) return `${Math.round(value)} ${unit}`;
  return `${digits(value / scale[0])} ${scale[1]} ${unit}`;
}

export function duration(nanoseconds: number): string {
  if (nanoseconds >= 120e9) return `${digits(nanoseconds / 60e9)} min`;
  if (nanoseconds >= 1e9) return `${digits(nanoseconds / 1e9)} s`;
  if (nanoseconds >= 1e6) return `${digits(nanoseconds / 1e6)} ms`;
  if (nanoseconds >= 1e3) return `${digits(nanoseconds / 1e3)} µs`;
  return `${Math.round(nanoseconds)} ns`;
}

function digits(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

export function percent(part: number, whole: number): string {
  if (!whole) return '0 %';
  const share = (100 * part) / whole;
  return `${share >= 99.95 || share === 0 ? share.toFixed(0) : share >= 10 ? share.toFixed(1) : share.toFixed(2)} %`;
}

export function grouped(count: number): string {
  return Math.round(count).toString().replace(/\B(?=(\d{3})+$)/g, ',');
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/** Text that comes from the recording, without what would reorder or hide other text. */
export function clean(text: string): string {
  return text.replace(
    // Control characters, zero-width characters and marks of direction.
    /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g,
    (found) => `\\u{${found.codePointAt(0)!.toString(16)}}`,
  );
}
