// Two functions that do all the work, one of them twice as much; prints NODE_OPTIONS.
// No round is as long as the one before: a period of its own could fit the sampling rate.
function light(rounds) {
  let sum = 1;
  for (let i = 0; i < rounds; i++) sum = (sum * 31 + i) % 65521;
  return sum;
}

function heavy(rounds) {
  let sum = 1;
  for (let i = 0; i < 2 * rounds; i++) sum = (sum * 31 + i) % 65521;
  return sum;
}

let sum = 0;
for (let round = 0; round < 400; round++) {
  const rounds = 5e4 + (sum % 1e5);
  sum += light(rounds) + heavy(rounds);
}
console.log(sum, process.env.NODE_OPTIONS ?? "nothing");
process.exitCode = 7;
