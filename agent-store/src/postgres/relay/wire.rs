//! Batches as payloads of notifications, which are limited in size.

use agent_dispatch::RelayBatch;

/// Maximum size of a payload in bytes; PostgreSQL's limit is 7,999.
pub(super) const PAYLOAD: usize = 7_900;
/// Maximum size of a payload's header in bytes.
const HEADER: usize = 64;
/// Maximum number of payloads of one batch: a larger one is not sent.
const PARTS: usize = 64;

/// Encodes a batch as payloads; none if it is too large.
pub(super) fn encode(batch: &RelayBatch) -> Option<Vec<String>> {
    let text = serde_json::to_string(batch).ok()?;
    let (mut rest, mut pieces) = (text.as_str(), Vec::new());
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PAYLOAD - HEADER));
        pieces.push(piece);
        rest = after;
    }
    let (count, publisher, number) = (pieces.len(), batch.publisher, batch.number);
    let payload = |(part, piece)| format!("{publisher:x}.{number:x}.{part}.{count}.{piece}");
    (count <= PARTS).then(|| pieces.into_iter().enumerate().map(payload).collect())
}

/// Assembles the batches of one run from payloads. Incomplete batches are dropped: the number of
/// the next one shows the gap.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    /// Publisher and batch of the parts so far, and the number of the next part.
    open: Option<(u64, u64, usize)>,
    text: String,
}

impl Assembly {
    /// Adds a payload. Returns the batch that it completes.
    pub(super) fn add(&mut self, payload: &str) -> Option<RelayBatch> {
        let mut fields = payload.splitn(5, '.');
        let mut next = || fields.next();
        let publisher = u64::from_str_radix(next()?, 16).ok()?;
        let number = u64::from_str_radix(next()?, 16).ok()?;
        let (part, count): (usize, usize) = (next()?.parse().ok()?, next()?.parse().ok()?);
        let piece = next()?;
        if part == 0 {
            self.text.clear();
        } else if self.open != Some((publisher, number, part)) {
            self.open = None;
            return None;
        }
        self.text.push_str(piece);
        if part + 1 < count {
            self.open = Some((publisher, number, part + 1));
            return None;
        }
        self.open = None;
        serde_json::from_str(&std::mem::take(&mut self.text)).ok()
    }
}

#[cfg(test)]
mod tests {
    use agent_dispatch::RelayItem;

    use super::*;

    fn batch(number: u64, items: usize) -> RelayBatch {
        RelayBatch::new(u64::MAX, number, (0..items as u64).map(RelayItem::Reached).collect())
    }

    #[test]
    fn a_large_batch_travels_in_payloads_below_the_limit() {
        let sent = batch(3, 5_000);
        let payloads = encode(&sent).expect("it is not too large");
        assert!(payloads.len() > 5 && payloads.iter().all(|payload| payload.len() <= PAYLOAD));
        let mut assembly = Assembly::default();
        let received: Vec<_> = payloads.iter().filter_map(|payload| assembly.add(payload)).collect();
        assert_eq!(received, [sent]);
        assert_eq!(encode(&batch(4, 100_000)), None);
    }

    #[test]
    fn a_batch_whose_part_was_lost_is_dropped_and_the_next_one_is_not() {
        let (first, second) = (encode(&batch(1, 2_000)).expect("sent"), encode(&batch(2, 1)).expect("sent"));
        for lost in 0..first.len() {
            let mut assembly = Assembly::default();
            let arrived = first.iter().enumerate().filter(|(part, _)| *part != lost).map(|(_, payload)| payload);
            let received: Vec<_> = arrived.chain(&second).filter_map(|payload| assembly.add(payload)).collect();
            assert_eq!(received, [batch(2, 1)], "without part {lost}");
        }
        for bad in ["", "1", "1.1.0.1.no JSON", "x.1.0.1.{}"] {
            assert_eq!(Assembly::default().add(bad), None, "{bad}");
        }
    }
}
