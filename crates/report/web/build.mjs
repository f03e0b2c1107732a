// Bundles the page into dist/page.html, and its model alone into dist/model.mjs for tests; into another
// folder if one is given.
// The content security policy names the hashes of the script and the style, so that nothing else runs.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { build } from 'esbuild';

const common = { bundle: true, minify: true, target: 'es2022', write: false, charset: 'utf8', legalComments: 'none' };
const bundle = async (entry, options = {}) => (await build({ ...common, entryPoints: [entry], ...options })).outputFiles[0].text.trim();
const hash = (text) => createHash('sha256').update(text).digest('base64');

const script = await bundle('src/main.ts', { format: 'iife' });
const style = await bundle('src/style.css');
// A function as replacement: `$&` in the script is text.
const fill = (page, name, text) => page.replace(`{{${name}}}`, () => text);
let page = readFileSync('page.html', 'utf8');
page = fill(page, 'SCRIPT_HASH', hash(script));
page = fill(page, 'STYLE_HASH', hash(style));
page = fill(page, 'STYLE', style);
page = fill(page, 'SCRIPT', script);
if (/<\/script/i.test(script)) throw new Error('the script would end its own element');
const to = process.argv[2] ?? 'dist';
mkdirSync(to, { recursive: true });
writeFileSync(`${to}/page.html`, page);
writeFileSync(`${to}/model.mjs`, `${await bundle('src/model.ts', { format: 'esm' })}\n`);
console.log(`${to}/page.html: ${Buffer.byteLength(page)} bytes`);
