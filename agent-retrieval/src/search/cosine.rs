//! Cosine similarity of vectors.

/// Number of values multiplied at once: the width of the widest registers.
const LANES: usize = 16;

/// Returns the cosine of the angle between two vectors, from -1 to 1; 0 if one of them is zero. For
/// vectors of different lengths, the excess of the longer one is ignored.
///
/// ```
/// use agent_retrieval::search::cosine;
///
/// assert_eq!(cosine(&[1.0, 0.0], &[3.0, 0.0]), 1.0);
/// assert_eq!(cosine(&[1.0, 0.0], &[0.0, 2.0]), 0.0);
/// assert_eq!(cosine(&[1.0, 0.0], &[0.0, 0.0]), 0.0);
/// ```
pub fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let lengths = dot(a, a).sqrt() * dot(b, b).sqrt();
    if lengths > 0.0 { (dot(a, b) / lengths).clamp(-1.0, 1.0) } else { 0.0 }
}

/// Dot product.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    // Independent sums, which the compiler keeps in one register.
    let mut sums = [0.0_f32; LANES];
    let ((a, more_a), (b, more_b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    let rest: f32 = more_a.iter().zip(more_b).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_what_the_definition_says(pairs in prop::collection::vec((-9.0_f32..9.0, -9.0_f32..9.0), 1..70)) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
            let lengths = (dot(&a, &a) * dot(&b, &b)).sqrt();
            prop_assume!(lengths > 1e-3);
            prop_assert!((f64::from(cosine(&a, &b)) - dot(&a, &b) / lengths).abs() < 1e-5);
        }
    }
}
