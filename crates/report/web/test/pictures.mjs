// Makes the pictures of README.md in headless Chromium, by chromedriver:
//   node pictures.mjs PAGE FOLDER     FOLDER/page-light.png and FOLDER/page-dark.png

import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';

const [page, folder] = process.argv.slice(2);
const driver = spawn('chromedriver', ['--port=0'], { stdio: ['ignore', 'pipe', 'ignore'] });
const port = await new Promise((found) => {
  let said = '';
  driver.stdout.on('data', (text) => {
    said += text;
    const known = /successfully on port (\d+)/.exec(said);
    if (known) found(known[1]);
  });
});

async function call(method, path, body) {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, body: body && JSON.stringify(body) });
  const { value } = await answer.json();
  if (value?.error) throw new Error(`${path}: ${value.message}`);
  return value;
}

const args = ['--headless=new', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--window-size=1280,940'];
const { sessionId } = await call('POST', '/session', { capabilities: { alwaysMatch: { 'goog:chromeOptions': { args } } } });
const session = `/session/${sessionId}`;
const ready = 'const done = arguments[0]; const look = () => window.prof ? done() : requestAnimationFrame(look); look()';
for (const scheme of ['light', 'dark']) {
  const features = [{ name: 'prefers-color-scheme', value: scheme }];
  await call('POST', `${session}/goog/cdp/execute`, { cmd: 'Emulation.setEmulatedMedia', params: { features } });
  await call('POST', `${session}/url`, { url: 'about:blank' });
  await call('POST', `${session}/url`, { url: `file://${resolve(page)}` });
  await call('POST', `${session}/execute/async`, { script: ready, args: [] });
  writeFileSync(`${folder}/page-${scheme}.png`, Buffer.from(await call('GET', `${session}/screenshot`), 'base64'));
}
await call('DELETE', session);
driver.kill();
