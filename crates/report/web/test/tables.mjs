// Prints the tables that a page shows as it opens, computed by the page's own code, as JSON:
//   node tables.mjs PAGE [REGEX]     functions; with REGEX also lines, callers and callees of
//                                    the first function that matches; of two recordings the changes

import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import * as model from '../dist/model.mjs';

const [page, wanted] = process.argv.slice(2);
const base64 = /<script type="text\/plain" id="data">([^<]*)</.exec(readFileSync(page, 'utf8'))[1];
const { profiles } = model.decode(new Uint8Array(gunzipSync(Buffer.from(base64, 'base64'))));

const trees = profiles.map((profile) => {
  const filter = model.initialFilter(profile);
  return new model.CallTree(new model.Shape(profile, filter), filter);
});
const [tree] = trees;
const text = (column, id) => tree.profile.strings[column[id]];
const rows = model.functions(tree);
const functions = rows.map((row) => ({
  name: text(tree.profile.functionName, row.id),
  module: text(tree.profile.functionModule, row.id),
  self: { value: row.own, samples: row.ownSamples },
  total: { value: row.total, samples: row.totalSamples },
}));

/** Every path from this box with its weight. */
function paths(box, above = []) {
  const path = box.id < 0 ? above : [...above, text(tree.profile.functionName, box.id)];
  const own = path.length ? [{ path, total: { value: box.value, samples: box.samples } }] : [];
  return [...own, ...box.children().flatMap((child) => paths(child, path))];
}

const of = wanted && rows.find((row) => new RegExp(wanted).test(text(tree.profile.functionName, row.id)))?.id;
const around = of === undefined ? {} : { lines: model.linesOf(tree, of), callers: paths(model.callersOf(tree, of)), callees: paths(model.calleesOf(tree, of)) };
const sources = tree.profile.sources.map((source) => ({ file: tree.profile.strings[source.file], lines: source.lines }));
const changes = trees.length > 1 ? { changes: model.compare(trees[0], trees[1]) } : {};
console.log(JSON.stringify({ functions, calls: paths(model.callees(tree)), sources, ...around, ...changes }));
