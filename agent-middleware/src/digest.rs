//! Names that are made of a content.

use sha2::{Digest, Sha256};

/// A name of 16 digits that the same parts have in every process and every release: journals and files keep it. Nobody can
/// make other parts to a name that is there already.
pub(crate) fn digest<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes()); // so that parts do not run into each other
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
