// Renders rows of a table by joining strings.
function renderRow(row) {
  let text = '';
  for (let column = 0; column < 200; column++) text += `<td>${row * column}</td>`;
  return text.length;
}

let total = 0;
for (let row = 0; row < 20000; row++) total += renderRow(row);
console.log(total);
