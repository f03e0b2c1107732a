// Measures how long the Firefox Profiler takes to open a profile, as speed.mjs does for a page of
// prof:
//   node firefox.mjs DIRECTORY PROFILE
// DIRECTORY is dist of its built source, which has to be a web site: a server on 127.0.0.1 serves it
// and the profile. Prints the milliseconds of each load until the call tree has rows and the timeline
// has a graph, and none if one takes over a minute.

import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { Browser } from './browser.mjs';

const TYPES = { '.css': 'text/css', '.html': 'text/html', '.js': 'text/javascript', '.json': 'application/json', '.wasm': 'application/wasm' };
const SHOWN = `document.querySelector('.treeViewRow') && document.querySelector('.threadActivityGraphCanvas')`;

const [directory, profile] = process.argv.slice(2);

function file(path) {
  if (path === '/profile.json') return profile;
  // The site has only one page.
  return join(directory, path.startsWith('/from-url/') ? 'index.html' : path);
}

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url, 'http://127.0.0.1');
  const found = file(pathname);
  // The service worker would fetch the whole site once more while the profile opens.
  if (pathname === '/sw.js' || !existsSync(found)) return response.writeHead(404).end();
  const type = TYPES[extname(found)] ?? 'application/octet-stream';
  response.writeHead(200, { 'content-type': type, 'content-length': statSync(found).size });
  createReadStream(found).pipe(response);
});
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
const site = `http://127.0.0.1:${server.address().port}`;
const browser = await Browser.start();
// Without a network the browser would not reach the server either.
await browser.devtools('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });
const profileUrl = encodeURIComponent(`${site}/profile.json`);
const first = await browser.firstPictures(`${site}/from-url/${profileUrl}/calltree/`, SHOWN);
console.log(JSON.stringify({ first }));
await browser.end();
server.close();
