// Measures how long speedscope takes to open a profile, as speed.mjs does for a page of prof:
//   node speedscope.mjs DIRECTORY PROFILE
// DIRECTORY is dist/release of its npm package, which opens from file:// as well. Prints the
// milliseconds of each load, and none if one takes over a minute.

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { Browser } from './browser.mjs';

const SHOWN = `document.querySelector('canvas') && !document.body.innerText.includes('Loading')`;

const [directory, profile] = process.argv.slice(2);
const text = readFileSync(profile).toString('base64');
const loader = resolve('speedscope-profile.js');
writeFileSync(loader, `speedscope.loadFileFromBase64(${JSON.stringify(basename(profile))}, '${text}')`);
const browser = await Browser.start();
const first = await browser.firstPictures(`file://${resolve(directory)}/index.html#localProfilePath=${loader}`, SHOWN);
console.log(JSON.stringify({ first }));
await browser.end();
rmSync(loader);
