//! Exact nearest-neighbour search over vectors in SQLite's format.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

/// Bytes per number.
const BYTES: usize = size_of::<f32>();
/// Numbers that are multiplied at once (SIMD lanes).
const LANES: usize = 16;

/// Returns the Euclidean norm of a vector.
pub(super) fn norm(values: &[f32]) -> f32 {
    // In double precision: the squares of small numbers would underflow.
    let squares: f64 = values.iter().map(|value| f64::from(*value).powi(2)).sum();
    squares.sqrt() as f32
}

pub(super) fn to_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub(super) fn from_bytes(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<BYTES>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// Returns the dot product, without copying the stored bytes.
pub(super) fn dot(kept: &[u8], values: &[f32]) -> f32 {
    let (kept, _) = kept.as_chunks::<BYTES>();
    let ((kept, more_kept), (values, more)) = (kept.as_chunks::<LANES>(), values.as_chunks::<LANES>());
    // Independent sums, which the compiler keeps in one vector register.
    let mut sums = [0.0_f32; LANES];
    for (kept, values) in kept.iter().zip(values) {
        for (sum, (kept, value)) in sums.iter_mut().zip(kept.iter().zip(values)) {
            *sum += f32::from_le_bytes(*kept) * value;
        }
    }
    let rest: f32 = more_kept.iter().zip(more).map(|(kept, value)| f32::from_le_bytes(*kept) * value).sum();
    sums.iter().sum::<f32>() + rest
}

/// The best few of many candidates. Among equal similarities, newer records are better.
pub(super) struct Nearest {
    most: usize,
    /// Heap with the worst candidate on top.
    kept: BinaryHeap<Reverse<Near>>,
}

#[derive(Clone, Copy, PartialEq)]
struct Near(f32, i64);

impl Eq for Near {}

impl PartialOrd for Near {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Near {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

impl Nearest {
    pub(super) fn new(most: usize) -> Self {
        Self { most, kept: BinaryHeap::new() }
    }

    pub(super) fn would_take(&self, similarity: f32, seq: i64) -> bool {
        self.kept.len() < self.most || self.kept.peek().is_some_and(|Reverse(worst)| *worst < Near(similarity, seq))
    }

    /// Adds a candidate that [`would_take`](Self::would_take) accepts.
    pub(super) fn take(&mut self, similarity: f32, seq: i64) {
        self.kept.push(Reverse(Near(similarity, seq)));
        if self.kept.len() > self.most {
            self.kept.pop();
        }
    }

    /// Returns the candidates, best first.
    pub(super) fn into_best(self) -> Vec<(f32, i64)> {
        self.kept.into_sorted_vec().into_iter().map(|Reverse(Near(similarity, seq))| (similarity, seq)).collect()
    }
}
