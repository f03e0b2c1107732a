// Imports files with speedscope's own importer and prints the stacks of each, folded, and an empty
// line.
// node speedscope.cjs RELEASE-DIRECTORY FILE...
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [release, ...files] = process.argv.slice(2);
const bundle = fs.readdirSync(release).find((name) => /^speedscope-.*\.js$/.test(name));
let code = fs.readFileSync(path.join(release, bundle), "utf8");
const importer = /loadFileFromBase64:\(\w+,\w+\)=>\{this\.loadProfile\(\(\)=>(\w+)\(/.exec(code)[1];
// Its last statement draws the page; hand out the importer instead.
const drawing = /\w+\([^;]*\),document\.body,[^;]*\);\}\)\(\);\s*(\/\/#.*)?\s*$/;
code = code.replace(drawing, `globalThis.importFile=${importer};})();`);

// A page on which everything can be asked for and nothing happens.
const anything = () =>
  new Proxy(function () {}, {
    get: (_, key) => (key === Symbol.toPrimitive ? () => "" : key === "length" ? 0 : anything()),
    set: () => true,
    has: () => true,
    apply: () => anything(),
    construct: () => anything(),
  });
const silent = { log() {}, warn() {}, debug() {}, error: console.error };
const page = {
  console: silent,
  document: anything(),
  location: { hash: "", href: "", protocol: "" },
  navigator: { platform: "", userAgent: "" },
  matchMedia: () => ({ matches: false, addListener() {}, addEventListener() {} }),
  addEventListener() {},
  HTMLElement: class {},
  ...{ atob, Blob, performance, setTimeout, clearTimeout, setInterval, clearInterval },
  ...{ TextDecoder, TextEncoder, URL, Uint8Array, ArrayBuffer },
};
page.window = page.self = page.globalThis = page;
vm.runInContext(code, vm.createContext(page));

const print = (node, names) => {
  const weight = node.getSelfWeight();
  if (names.length > 0 && weight > 0) {
    console.log(names.join(";"), Math.round(weight));
  }
  for (const child of node.children) {
    print(child, [...names, child.frame.name]);
  }
};
const read = async () => {
  for (const file of files) {
    const content = fs.readFileSync(file).toString("base64");
    const group = await page.importFile(path.basename(file), content);
    group.profiles.forEach((profile) => print(profile.getGroupedCalltreeRoot(), []));
    console.log();
  }
};
read().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
