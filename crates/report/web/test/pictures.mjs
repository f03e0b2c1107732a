// Makes the pictures of README.md and docs/ in headless Chromium, by chromedriver:
//   node pictures.mjs FOLDER PAGE...     of a page NAME.html FOLDER/NAME-light.png and
//                                        NAME-dark.png; of a terminal's screen FOLDER/NAME.png

import { writeFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { Browser } from './browser.mjs';

const [folder, ...pages] = process.argv.slice(2);
const browser = await Browser.start();
const keep = (name, picture) => writeFileSync(`${folder}/${name}.png`, Buffer.from(picture, 'base64'));
for (const page of pages) {
  const name = basename(page, '.html');
  for (const scheme of ['light', 'dark']) {
    await browser.devtools('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
    await browser.open(`file://${resolve(page)}`);
    if (await browser.script('return !document.scripts.length && !window.prof')) {
      const find = { using: 'css selector', value: 'pre' };
      const [element] = Object.values(await browser.send('POST', '/element', find));
      keep(name, await browser.send('GET', `/element/${element}/screenshot`));
      break;
    }
    await browser.ready();
    keep(`${name}-${scheme}`, await browser.send('GET', '/screenshot'));
  }
}
await browser.end();
