//! Suggestions of similar file names for a path that does not exist.

use std::{
    ops::ControlFlow,
    path::Path,
    time::{Duration, Instant},
};

use super::{
    Files, shown,
    walk::{Stop, walk},
};

/// Maximum of entries that are visited, and of the time for it.
const MOST_ENTRIES: usize = 5_000;
const LONGEST: Duration = Duration::from_secs(2);

/// Maximum of suggestions.
const MOST_OFFERED: usize = 3;

/// Returns the paths most similar to `wanted`, best first.
pub(crate) fn files(files: &Files, wanted: &Path) -> Vec<String> {
    let Some(name) = wanted.file_name().map(|name| name.to_string_lossy().to_lowercase()) else { return Vec::new() };
    let stop = Stop { cx: None, at: Instant::now().checked_add(LONGEST) };
    let (mut near, mut seen) = (Vec::new(), 0);
    let walked = walk(files, Path::new(""), usize::MAX, &stop, &mut |found| {
        let other = found.path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let distance = distance(&name, &other);
        if distance <= name.chars().count() / 3 {
            near.push((distance, shown(found.path)));
        }
        seen += 1;
        Ok(if seen < MOST_ENTRIES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    });
    if walked.is_err() {
        return Vec::new(); // a failed suggestion must not replace the original error
    }
    near.sort();
    near.into_iter().take(MOST_OFFERED).map(|(_, path)| path).collect()
}

/// Edit distance: the number of characters to add, remove or replace to turn one text into the
/// other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<_> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in b.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn the_distance_counts_single_changes() {
        for (a, b, expected) in
            [("", "abc", 3), ("main", "mian", 2), ("kitten", "sitting", 3), ("é", "e", 1), ("a", "a", 0)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }
}
