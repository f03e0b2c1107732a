<?php
// Two functions that do all the work, one of them twice as much.
// No round is as long as the one before: a period of its own could fit the sampling rate.
function light($rounds) {
    $sum = 1;
    for ($i = 0; $i < $rounds; $i++) $sum = ($sum * 31 + $i) % 65521;
    return $sum;
}

function heavy($rounds) {
    $sum = 1;
    for ($i = 0; $i < 2 * $rounds; $i++) $sum = ($sum * 31 + $i) % 65521;
    return $sum;
}

$sum = 0;
for ($round = 0; $round < 400; $round++) {
    $rounds = 50000 + $sum % 100000;
    $sum += light($rounds) + heavy($rounds);
}
echo $sum > 0 ? 'done' : '', "\n";
