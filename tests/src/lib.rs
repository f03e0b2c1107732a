//! What the tests on real programs share: building the programs, running `prof` and `perf`, reading their answers.
