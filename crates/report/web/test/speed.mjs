// Measures a page in headless Chromium from file://, without a network, and prints JSON:
//   node speed.mjs PAGE
// `first` is from the start of loading to the first picture, in milliseconds, of five loads. Each action
// on the page is measured from the event until it is drawn (a pixel is read), in milliseconds.

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { decode } from '../dist/model.mjs';
import { Browser } from './browser.mjs';

const LOADS = 5;
const DEEDS = `
  const canvas = document.querySelector('main canvas');
  const field = document.querySelector('input[type=search]');
  const timed = (deed) => {
    const begin = performance.now();
    deed();
    for (const one of document.querySelectorAll('canvas')) one.getContext('2d').getImageData(0, 0, 1, 1);
    return performance.now() - begin;
  };
  const times = { zoom: [], search: [], selection: [] };
  const type = (text) => timed(() => {
    field.value = text;
    field.dispatchEvent(new Event('input'));
  });
  const press = (target, key) => target.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
  const wide = prof.boxes().filter((box) => box.id >= 0 && box.width > 30);
  for (let at = 0; at < 15; at++) {
    const box = wide[Math.floor((at + 0.5) * wide.length / 15)];
    const place = canvas.getBoundingClientRect();
    const [clientX, clientY] = [place.left + box.x + 2, place.top + box.row * 18 + 9];
    times.zoom.push(timed(() => canvas.dispatchEvent(new MouseEvent('click', { clientX, clientY, bubbles: true }))));
    press(document.body, 'Escape');
    while (location.hash.includes('zoom=')) press(document.body, 'Escape');
    times.search.push(type(prof.name(box.id).slice(0, 2 + at % 6).replace(/\\W/g, '.')));
    type('');
  }
  const timeline = document.querySelector('.timeline canvas');
  if (timeline.clientHeight) {
    press(timeline, '+');
    for (let at = 0; at < 15; at++) times.selection.push(timed(() => press(timeline, at % 2 ? 'ArrowLeft' : 'ArrowRight')));
    times.selection.push(timed(() => press(timeline, 'Escape')));
  }
  return times`;

const file = process.argv[2];
const base64 = /<script type="text\/plain" id="data">([^<]*)</.exec(readFileSync(file, 'utf8'))[1];
const { profiles: [profile] } = decode(new Uint8Array(gunzipSync(Buffer.from(base64, 'base64'))));
const samples = profile.sampleStack.length;
const stacks = new Set(profile.sampleStack).size;
const page = `file://${resolve(file)}`;
const browser = await Browser.start();
const first = [];
for (let load = 0; load < LOADS; load++) {
  await browser.open(page);
  await browser.ready();
  first.push(await browser.script('return prof.drawn'));
}
const times = await browser.script(DEEDS);
console.log(JSON.stringify({ browser: browser.version, samples, stacks, first, ...times }));
await browser.end();
