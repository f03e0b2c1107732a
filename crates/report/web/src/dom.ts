// Making elements. Text is always set as text, never as markup.

type Attributes = Record<string, string | number | boolean | ((event: never) => void) | undefined>;
type Child = Node | string | null | undefined | false;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value as EventListener);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child): child is Node | string => child !== null && child !== undefined && child !== false));
  return element;
}

/** Sizes a canvas to its element in device pixels; returns a context that draws in CSS pixels. */
export function context(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const drawing = canvas.getContext('2d')!;
  drawing.setTransform(ratio, 0, 0, ratio, 0, 0);
  return drawing;
}

/** A colour of the style sheet. */
export function cssColor(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Text that fits a width, cut at its end. */
export function fit(drawing: CanvasRenderingContext2D, text: string, width: number): string {
  const size = drawing.measureText('m').width;
  const most = Math.floor(width / size);
  // A fixed-width font: counting is enough.
  return text.length <= most ? text : most < 3 ? '' : `${text.slice(0, most - 1)}…`;
}
