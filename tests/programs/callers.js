// Functions n0 to n9, each called by its own f0 to f9, and those by m0 to m9, in random order.
// Closures and objects are created all the time: the garbage collector moves what is reachable.
'use strict';
const source = [];
for (let k = 0; k < 10; k++) {
  source.push(`
    function n${k}(count) {
      let text = '', list = [];
      for (let i = 0; i < count; i++) { text += i % 7; list.push({ i, get: () => i }); }
      return text.length + list.reduce((sum, item) => sum + item.get(), ${k});
    }
    function f${k}(count) {
      const make = (rounds) => n${k}(rounds) + 1;
      let sum = make(count);
      for (let j = 0; j < 3; j++) sum += n${k}(count) + j;
      return sum;
    }
    function m${k}(depth, count) { return depth ? m${k}(depth - 1, count) + 1 : f${k}(count); }`);
}
source.push('return [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9];');
const callers = new Function(source.join('\n'))();

let seed = 42, goesOn = true;
function random(below) {
  seed = (seed * 1103515245 + 12345) & 0x7fffffff;
  return (seed >> 8) % below;
}

async function work() {
  let rounds = 0;
  while (goesOn) {
    // Lets the end of the input be noticed.
    if (++rounds % 64 === 0) await new Promise(setImmediate);
    const k = random(10);
    callers[k](k, 20 + random(100));
  }
}

process.stdin.on('end', () => { goesOn = false; });
process.stdin.resume();
console.log('ready');
work();
