//! The queens puzzle: what `cargo xtask demo` records where there is no python3.

fn threatened(column: usize, columns: &[usize]) -> bool {
    let row = columns.len();
    columns
        .iter()
        .enumerate()
        .any(|(index, &other)| other == column || other.abs_diff(column) == row - index)
}

#[inline(never)]
fn place(size: usize, columns: &mut Vec<usize>) -> u64 {
    if columns.len() == size {
        return 1;
    }
    let mut ways = 0;
    for column in 0..size {
        if !threatened(column, columns) {
            columns.push(column);
            ways += place(size, columns);
            columns.pop();
        }
    }
    ways
}

fn main() {
    println!("{} ways to place 13 queens", place(13, &mut Vec::new()));
}
