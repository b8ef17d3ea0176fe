//! Content-derived names.

use sha2::{Digest, Sha256};

/// Returns a name of 16 hexadecimal digits that is the same for the same parts in every process and
/// every release: journals and files store it. It is infeasible to find other parts for an existing
/// name.
pub(crate) fn digest<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        // length prefix, so that part boundaries are unambiguous
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn names_are_those_that_journals_and_files_have() {
        assert_eq!(digest(["search", "a text"]), "305c3d26bba42cc2");
        assert_ne!(digest(["ab", "c"]), digest(["a", "bc"]));
    }
}
