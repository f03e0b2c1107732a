"""f0 calls n0 of the module only, and so on: in random order, below many kinds of callers.

python_pairs.py CALLS THREADS [FILE]: so many calls by each thread besides the main one, and by it;
writes to the file how many seconds it took, of the clock and of CPUs.
"""
import pairs
import random
import sys
import threading
import time

for number in range(10):
    exec(f"def f{number}(rounds):\n    return pairs.n{number}(rounds)\n")
functions = [globals()[f"f{number}"] for number in range(10)]


def spin(rounds):
    total = 0
    for i in range(rounds):
        total += i * i
    return total


def recurse(depth, function, rounds):
    if depth:
        return recurse(depth - 1, function, rounds)
    return function(rounds)


def generate(function, rounds):
    for _ in range(3):
        yield function(rounds)


def key(number):
    return functions[number](300)


class Caller:
    def __init__(self, function, rounds):
        self.value = function(rounds)


def work(seed, calls):
    chance = random.Random(seed)
    for _ in range(calls):
        function = chance.choice(functions)
        rounds = chance.randrange(100, 20000)
        kind = chance.randrange(6)
        if kind == 0:
            function(rounds)
        elif kind == 1:
            recurse(chance.randrange(60), function, rounds)
        elif kind == 2:
            sum(generate(function, rounds))
        elif kind == 3:
            sorted(range(10), key=key)
        elif kind == 4:
            Caller(function, rounds)
        else:
            spin(chance.randrange(2000))


def main():
    begin = time.perf_counter()
    calls = int(sys.argv[1])
    threads = [threading.Thread(target=work, args=(i, calls)) for i in range(int(sys.argv[2]))]
    for thread in threads:
        thread.start()
    work(99, calls)
    for thread in threads:
        thread.join()
    if len(sys.argv) > 3:
        with open(sys.argv[3], "w") as file:
            print(time.perf_counter() - begin, time.process_time(), file=file)


main()
