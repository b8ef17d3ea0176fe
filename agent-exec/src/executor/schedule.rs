//! Execution order of the calls of one message.

use std::collections::BTreeSet;

/// State access of a call, and whether it must run alone.
#[derive(Clone, Debug, Default)]
pub(super) struct Access {
    pub(super) reads: BTreeSet<String>,
    pub(super) writes: BTreeSet<String>,
    /// The tool accesses the state directly: it may read and write any key.
    pub(super) whole_state: bool,
    pub(super) serial: bool,
}

impl Access {
    /// True if the other call may read a key that this one writes.
    fn feeds(&self, other: &Self) -> bool {
        match (self.whole_state, other.whole_state) {
            (true, true) => true,
            (true, false) => !other.reads.is_empty(),
            (false, true) => !self.writes.is_empty(),
            (false, false) => !self.writes.is_disjoint(&other.reads),
        }
    }
}

/// Groups calls (by index) into waves that run one after another, so that every reader of a key
/// runs after every writer of it. The calls of one wave run concurrently. Two calls that feed each
/// other run in call order; a serial call gets its own wave.
pub(super) fn waves(calls: &[Access]) -> Vec<Vec<usize>> {
    let before = |a: usize, b: usize| a != b && calls[a].feeds(&calls[b]) && (!calls[b].feeds(&calls[a]) || a < b);
    let mut left: Vec<usize> = (0..calls.len()).collect();
    let mut out = Vec::new();
    while !left.is_empty() {
        let free = |&b: &usize| !left.iter().any(|&a| before(a, b));
        let mut wave: Vec<usize> = left.iter().copied().filter(free).collect();
        if wave.is_empty() {
            wave.push(left[0]); // a longer cycle: call order decides
        }
        left.retain(|call| !wave.contains(call));
        split_serial(calls, wave, &mut out);
    }
    out
}

fn split_serial(calls: &[Access], wave: Vec<usize>, out: &mut Vec<Vec<usize>>) {
    let mut together = Vec::new();
    for call in wave {
        if calls[call].serial {
            out.extend((!together.is_empty()).then(|| std::mem::take(&mut together)));
            out.push(vec![call]);
        } else {
            together.push(call);
        }
    }
    out.extend((!together.is_empty()).then_some(together));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(reads: &[&str], writes: &[&str]) -> Access {
        let set = |keys: &[&str]| keys.iter().map(ToString::to_string).collect();
        Access { reads: set(reads), writes: set(writes), ..Access::default() }
    }

    fn whole() -> Access {
        Access { whole_state: true, ..Access::default() }
    }

    #[test]
    fn readers_and_strangers_run_together() {
        assert_eq!(waves(&[access(&["a"], &[]), access(&["a"], &[]), access(&[], &["b"])]), [[0, 1, 2]]);
    }

    #[test]
    fn a_reader_runs_after_the_writer_wherever_it_stands() {
        assert_eq!(waves(&[access(&[], &["a"]), access(&["a"], &[])]), [[0], [1]]);
        assert_eq!(waves(&[access(&["a"], &[]), access(&[], &["a"])]), [[1], [0]]);
    }

    #[test]
    fn writers_of_one_key_run_together_and_are_merged_in_call_order() {
        assert_eq!(waves(&[access(&[], &["a"]), access(&[], &["a"])]), [[0, 1]]);
    }

    #[test]
    fn calls_that_feed_each_other_run_in_call_order() {
        assert_eq!(waves(&[access(&["a"], &["a"]), access(&["a"], &["a"])]), [[0], [1]]);
    }

    #[test]
    fn a_tool_that_looks_at_the_whole_state_runs_between_writers_and_readers() {
        assert_eq!(waves(&[access(&["a"], &[]), whole(), access(&[], &["b"])]), [[2], [1], [0]]);
    }

    #[test]
    fn a_serial_call_is_alone() {
        let serial = Access { serial: true, ..Access::default() };
        let plain = Access::default();
        assert_eq!(waves(&[plain.clone(), serial, plain.clone(), plain]), [vec![0], vec![1], vec![2, 3]]);
    }

    #[test]
    fn a_circle_of_three_is_broken_at_the_first_call() {
        let circle = [access(&["z"], &["x"]), access(&["x"], &["y"]), access(&["y"], &["z"])];
        assert_eq!(waves(&circle), [[0], [1], [2]]);
    }
}
