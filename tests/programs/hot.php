<?php
// Two functions that do all the work, one of them twice as much; prints PHP_INI_SCAN_DIR.
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
for ($round = 0; $round < 400; $round++) $sum += light(100000) + heavy(100000);
echo $sum > 0 ? getenv('PHP_INI_SCAN_DIR') : '', "\n";
