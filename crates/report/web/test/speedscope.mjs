// Measures how long speedscope takes to open a profile, as speed.mjs does for a page of prof:
//   node speedscope.mjs DIRECTORY PROFILE
// DIRECTORY is dist/release of its npm package, which opens from file:// as well. Prints the
// milliseconds of each load, and none if one takes over a minute.

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { Browser } from './browser.mjs';

const LOADS = 5;
const LOADED = `
  const done = arguments[0];
  const look = () => requestAnimationFrame(() =>
    document.querySelector('canvas') && !document.body.innerText.includes('Loading') ? done(performance.now()) : look());
  look()`;

const [directory, profile] = process.argv.slice(2);
const text = readFileSync(profile).toString('base64');
const loader = resolve('speedscope-profile.js');
writeFileSync(loader, `speedscope.loadFileFromBase64(${JSON.stringify(basename(profile))}, '${text}')`);
const browser = await Browser.start();
await browser.send('POST', '/timeouts', { script: 60_000, pageLoad: 60_000 });
let first = [];
try {
  for (let load = 0; load < LOADS; load++) {
    await browser.open(`file://${resolve(directory)}/index.html#localProfilePath=${loader}`);
    first.push(await browser.send('POST', '/execute/async', { script: LOADED, args: [] }));
  }
} catch (error) {
  first = [];
}
console.log(JSON.stringify({ first }));
await browser.end();
rmSync(loader);
