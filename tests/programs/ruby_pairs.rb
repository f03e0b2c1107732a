# f0 calls n0 of the library only, and so on: in random order, below many kinds of callers.
# ruby_pairs.rb LIBRARY CALLS THREADS: so many calls by each thread besides the main one, and by it.
require 'fiddle'

library = Fiddle.dlopen(ARGV[0])
INT = -Fiddle::TYPE_INT
NATIVES = (0..9).map { |number| Fiddle::Function.new(library["n#{number}"], [INT], INT) }

10.times do |number|
  eval "def f#{number}(rounds) = NATIVES[#{number}].call(rounds)"
end

def spin(rounds)
  total = 0
  rounds.times { |i| total += i * i }
  total
end

def recurse(depth, function, rounds)
  depth > 0 ? recurse(depth - 1, function, rounds) : send(function, rounds)
end

def generate(function, rounds)
  3.times { yield send(function, rounds) }
end

class Caller
  attr_reader :value

  def initialize(function, rounds)
    @value = send(function, rounds)
  end

  def method_missing(name, *arguments)
    name == :missing ? send(*arguments) : super
  end

  def respond_to_missing?(name, all = false) = name == :missing || super

  define_method(:defined) { |function, rounds| send(function, rounds) }
end

def make_call(chance, function, rounds)
  case chance.rand(9)
  when 0 then send(function, rounds)
  when 1 then recurse(chance.rand(60), function, rounds)
  when 2
    sum = 0
    generate(function, rounds) { |value| sum += value }
    sum
  when 3 then (0..9).sort_by { |number| send("f#{number}", 300) }
  when 4 then Caller.new(function, rounds).missing(function, 1000)
  when 5 then Caller.new(function, rounds).defined(function, 1000)
  when 6
    begin
      send(function, rounds)
      raise ArgumentError
    rescue ArgumentError
      send(function, rounds)
    ensure
      spin(10)
    end
  when 7 then Fiber.new { send(function, rounds) }.resume
  else spin(chance.rand(2000))
  end
end

def work(seed, calls)
  chance = Random.new(seed)
  calls.times { make_call(chance, "f#{chance.rand(10)}", chance.rand(100..20_000)) }
end

threads = (1..ARGV[2].to_i).map { |seed| Thread.new { work(seed, ARGV[1].to_i) } }
work(99, ARGV[1].to_i)
threads.each(&:join)
