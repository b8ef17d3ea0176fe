//! Framing of one event per line.

use agent_core::Result;
use memchr::memchr;

use super::{BYTE_ORDER_MARK, LONGEST, too_long};

/// Splits bytes into lines, skipping blank lines.
#[derive(Debug, Default)]
pub(super) struct LineSplitter {
    /// A line whose end has not arrived yet.
    line: Vec<u8>,
}

impl LineSplitter {
    pub(super) fn push(&mut self, mut bytes: &[u8], mut take: impl FnMut(&str) -> Result<()>) -> Result<()> {
        while let Some(end) = memchr(b'\n', bytes) {
            self.extend(&bytes[..end])?;
            bytes = &bytes[end + 1..];
            self.dispatch(&mut take)?;
        }
        self.extend(bytes)
    }

    pub(super) fn finish(mut self, mut take: impl FnMut(&str) -> Result<()>) -> Result<()> {
        self.dispatch(&mut take)
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<()> {
        if self.line.len() + bytes.len() > LONGEST {
            return Err(too_long(LONGEST));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn dispatch(&mut self, take: &mut impl FnMut(&str) -> Result<()>) -> Result<()> {
        let line = self.line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.line).trim_ascii();
        if !line.is_empty() {
            take(&String::from_utf8_lossy(line))?;
        }
        self.line.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(pieces: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Vec<String> {
        let (mut splitter, mut seen) = (LineSplitter::default(), Vec::new());
        let mut take = |line: &str| {
            seen.push(line.to_owned());
            Ok(())
        };
        for piece in pieces {
            splitter.push(piece.as_ref(), &mut take).expect("short lines");
        }
        splitter.finish(&mut take).expect("short lines");
        seen
    }

    proptest! {
        #[test]
        fn lines_are_the_same_wherever_the_bytes_were_cut(
            lines in prop::collection::vec("[a-zé ]{0,8}(\r)?", 0..6),
            cuts in prop::collection::vec(0usize..40, 0..6),
        ) {
            let text = lines.join("\n");
            let mut cuts: Vec<_> = cuts.into_iter().map(|at| at.min(text.len())).chain([0, text.len()]).collect();
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|at| &text.as_bytes()[at[0]..at[1]]);
            let whole: Vec<_> = lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
            prop_assert_eq!(split(pieces), whole);
        }
    }

    #[test]
    fn a_line_without_an_end_is_refused_before_it_fills_the_memory() {
        let mut splitter = LineSplitter::default();
        let piece = vec![b'x'; LONGEST / 2];
        let mut push = || splitter.push(&piece, |_| Ok(()));
        push().and_then(|()| push()).expect("as long as a line may be");
        let error = push().expect_err("longer");
        assert_eq!(error.kind(), agent_core::ErrorKind::Protocol);
    }
}
