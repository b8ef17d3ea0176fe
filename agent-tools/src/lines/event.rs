//! Server-sent events.

/// Event that is being read.
#[derive(Default)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) data: Vec<u8>,
}

impl Event {
    /// Adds a line. Returns true at the end of an event.
    pub(crate) fn push(&mut self, line: &[u8], limit: usize) -> bool {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let value = |name: &[u8]| {
            let rest = line.strip_prefix(name)?.strip_prefix(b":")?;
            Some(rest.strip_prefix(b" ").unwrap_or(rest))
        };
        if let Some(data) = value(b"data") {
            if !self.data.is_empty() {
                self.data.push(b'\n');
            }
            let room = limit.saturating_sub(self.data.len());
            self.data.extend_from_slice(&data[..data.len().min(room)]);
        } else if let Some(name) = value(b"event") {
            self.name = String::from_utf8_lossy(&name[..name.len().min(100)]).into_owned();
        }
        line.is_empty()
    }
}
