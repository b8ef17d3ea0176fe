//! Reciprocal rank fusion.

use std::{collections::HashMap, hash::Hash};

/// Constant of reciprocal rank fusion: a larger value reduces the advantage of the first ranks. 60
/// is the value of the original paper, and common in search engines.
const RANK: f64 = 60.0;

/// Fuses rankings by reciprocal rank fusion, that is, by ranks instead of scores, which differ in
/// scale between searches: each ranking contributes its weight divided by (60 + rank), with ranks
/// from 1. Best first; ties keep the order of first appearance.
///
/// ```
/// use agent_retrieval::search::fuse;
///
/// let by_words = (1.0, vec!["bees", "honey", "chess"]);
/// let by_meaning = (1.0, vec!["honey", "clover", "bees"]);
/// let fused = fuse([by_words, by_meaning]);
/// assert_eq!(fused[0].0, "honey"); // second and first
/// assert_eq!(fused[1].0, "bees"); // first and third
/// assert!((fused[0].1 - (1.0 / 62.0 + 1.0 / 61.0)).abs() < 1e-12);
/// ```
pub fn fuse<K: Clone + Eq + Hash>(rankings: impl IntoIterator<Item = (f64, Vec<K>)>) -> Vec<(K, f64)> {
    let (mut fused, mut places): (Vec<(K, f64)>, HashMap<K, usize>) = (Vec::new(), HashMap::new());
    for (weight, ranking) in rankings {
        for (place, key) in (1_u32..).zip(ranking) {
            let at = *places.entry(key.clone()).or_insert(fused.len());
            if at == fused.len() {
                fused.push((key, 0.0));
            }
            fused[at].1 += weight / (RANK + f64::from(place));
        }
    }
    fused.sort_by(|a, b| b.1.total_cmp(&a.1));
    fused
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_both_find_comes_before_what_one_finds_first() {
        let order: Vec<_> = fuse([(1.0, vec![1, 2]), (1.0, vec![3, 2])]).into_iter().map(|(key, _)| key).collect();
        assert_eq!(order, [2, 1, 3]);
    }

    #[test]
    fn a_ranking_of_more_weight_decides() {
        let order: Vec<_> = fuse([(1.0, vec![1, 2]), (2.0, vec![2, 1])]).into_iter().map(|(key, _)| key).collect();
        assert_eq!(order, [2, 1]);
    }

    proptest! {
        #[test]
        fn a_ranking_alone_keeps_its_order(keys in prop::collection::hash_set(0..50_u8, 0..20)) {
            let keys: Vec<_> = keys.into_iter().collect();
            let fused = fuse([(1.0, keys.clone())]);
            prop_assert!(fused.is_sorted_by(|a, b| a.1 > b.1));
            prop_assert_eq!(fused.into_iter().map(|(key, _)| key).collect::<Vec<_>>(), keys);
        }
    }
}
