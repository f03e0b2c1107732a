<?php
// f0 calls n0 of the library only, and so on: in random order, below many kinds of callers.
// php_pairs.php LIBRARY CALLS
$declared = implode("\n", array_map(fn($i) => "unsigned n$i(unsigned rounds);", range(0, 9)));
$natives = FFI::cdef($declared, $argv[1]);

foreach (range(0, 9) as $number) {
    eval("function f$number(\$rounds) { global \$natives; return \$natives->n$number(\$rounds); }");
}

function spin($rounds) {
    $total = 0;
    for ($i = 0; $i < $rounds; $i++) $total += $i * $i;
    return $total;
}

function recurse($depth, $function, $rounds) {
    return $depth ? recurse($depth - 1, $function, $rounds) : $function($rounds);
}

function generate($function, $rounds) {
    for ($i = 0; $i < 3; $i++) yield $function($rounds);
}

function delegate($function, $rounds) {
    yield from generate($function, $rounds);
}

function key_of($number) {
    return "f$number"(300);
}

class Caller {
    public $value;

    function __construct($function, $rounds) {
        $this->value = $function($rounds);
    }

    static function make($function, $rounds) {
        return new Caller($function, $rounds);
    }

    function __get($name) {
        return $name(1000);
    }
}

class Released {
    function __construct(public $function, public $rounds) {}

    function __destruct() {
        ($this->function)($this->rounds);
    }
}

function call($function, $rounds) {
    switch (random_int(0, 9)) {
        case 0: return $function($rounds);
        case 1: return recurse(random_int(0, 60), $function, $rounds);
        case 2: return array_sum(iterator_to_array(generate($function, $rounds), false));
        case 3: return array_sum(iterator_to_array(delegate($function, $rounds), false));
        case 4:
            $numbers = range(0, 9);
            return usort($numbers, fn($a, $b) => key_of($a) <=> key_of($b));
        case 5: return Caller::make($function, $rounds)->$function;
        case 6:
            try {
                $function($rounds);
                throw new Exception;
            } catch (Exception) {
                return $function($rounds);
            }
        case 8:
            $fiber = new Fiber(function () use ($function, $rounds) {
                $function($rounds);
                Fiber::suspend();
                array_map($function, [$rounds]);
            });
            $fiber->start();
            return $fiber->resume();
        case 7:
            // Its variables are freed after its return.
            return array_map(function ($rounds) use ($function) {
                $value = new Released($function, $rounds);
                $values = range(0, $rounds);
                return count($values);
            }, [$rounds]);
        default: return spin(random_int(0, 2000));
    }
}

for ($i = 0; $i < $argv[2]; $i++) call("f" . random_int(0, 9), random_int(100, 20000));
