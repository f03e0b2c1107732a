//! The queens puzzle, which `cargo xtask demo` records.

use std::fmt::Write;

fn threatened(column: usize, columns: &[usize]) -> bool {
    let row = columns.len();
    columns
        .iter()
        .enumerate()
        .any(|(index, &other)| other == column || other.abs_diff(column) == row - index)
}

fn place(size: usize, columns: &mut Vec<usize>, solutions: &mut Vec<Vec<usize>>) {
    if columns.len() == size {
        solutions.push(columns.clone());
        return;
    }
    for column in 0..size {
        if !threatened(column, columns) {
            columns.push(column);
            place(size, columns, solutions);
            columns.pop();
        }
    }
}

/// The boards as text, in the order of the alphabet.
#[inline(never)]
fn describe(solutions: &[Vec<usize>]) -> Vec<String> {
    let mut boards: Vec<String> = solutions.iter().map(|columns| board(columns)).collect();
    boards.sort();
    boards
}

#[inline(never)]
fn board(columns: &[usize]) -> String {
    let mut text = String::new();
    for &column in columns {
        writeln!(text, "{:.<column$}Q{:.<1$}", "", columns.len() - column - 1).unwrap();
    }
    text
}

fn main() {
    for _ in 0..20 {
        let mut solutions = Vec::new();
        place(12, &mut Vec::new(), &mut solutions);
        let boards = describe(&solutions);
        println!("{} ways to place 12 queens", boards.len());
    }
}
