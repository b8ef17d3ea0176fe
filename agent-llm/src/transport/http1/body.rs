//! Where the body of an answer ends, and what of the bytes that were read belongs to it.

use bytes::{Buf, Bytes, BytesMut};
use httparse::{EMPTY_HEADER, Status};

use super::{Malformed, head::MOST_HEADERS};

/// The most bytes of a chunk's first line, and of what follows the last chunk.
const MOST_BESIDE: usize = 16 << 10;

/// How the body is framed, and how far it was taken (RFC 9112, section 6).
#[derive(Debug, PartialEq)]
pub(super) enum Framing {
    /// So many more bytes.
    Length(u64),
    Chunked(Chunk),
    /// All there is until the server closes the connection.
    UntilClose,
}

/// What comes next of a chunked body.
#[derive(Debug, Default, PartialEq)]
pub(super) enum Chunk {
    #[default]
    Size,
    /// So many more bytes of data.
    Data(u64),
    /// The line break after the data.
    Break,
    Trailers,
    Over,
}

/// What [`Framing::take`] took.
#[derive(Debug, PartialEq)]
pub(super) enum Taken {
    Data(Bytes),
    /// Nothing, until more was read.
    Nothing,
    /// The body is over.
    End,
}

impl Framing {
    /// Takes what `read` begins with of the body.
    pub(super) fn take(&mut self, read: &mut BytesMut) -> Result<Taken, Malformed> {
        match self {
            Self::Length(left) => Ok(data(left, read)),
            Self::UntilClose if read.is_empty() => Ok(Taken::Nothing),
            Self::UntilClose => Ok(Taken::Data(read.split().freeze())),
            Self::Chunked(chunk) => chunk.take(read),
        }
    }
}

/// What is there of `left` bytes.
fn data(left: &mut u64, read: &mut BytesMut) -> Taken {
    let here = usize::try_from(*left).map_or(read.len(), |left| left.min(read.len()));
    match here {
        _ if *left == 0 => Taken::End,
        0 => Taken::Nothing,
        here => {
            *left -= here as u64;
            Taken::Data(read.split_to(here).freeze())
        }
    }
}

impl Chunk {
    fn take(&mut self, read: &mut BytesMut) -> Result<Taken, Malformed> {
        loop {
            *self = match self {
                Self::Data(left) => match data(left, read) {
                    Taken::End => Self::Break,
                    taken => return Ok(taken),
                },
                Self::Size => match size(read)? {
                    Some(0) => Self::Trailers,
                    Some(size) => Self::Data(size),
                    None => return Ok(Taken::Nothing),
                },
                Self::Break if read.len() < 2 => return Ok(Taken::Nothing),
                Self::Break if read.starts_with(b"\r\n") => {
                    read.advance(2);
                    Self::Size
                }
                Self::Break => return Err(Malformed("a chunk is longer than it says")),
                Self::Trailers => {
                    if !skip_trailers(read)? {
                        return Ok(Taken::Nothing);
                    }
                    Self::Over
                }
                Self::Over => return Ok(Taken::End),
            };
        }
    }
}

/// The size of the chunk that begins, if its line is there.
fn size(read: &mut BytesMut) -> Result<Option<u64>, Malformed> {
    let invalid = Malformed("a chunk does not begin with its size");
    if !read.first().is_none_or(u8::is_ascii_hexdigit) {
        return Err(invalid);
    }
    match httparse::parse_chunk_size(read).map_err(|_| invalid)? {
        Status::Complete((used, size)) => {
            read.advance(used);
            Ok(Some(size))
        }
        Status::Partial if read.len() > MOST_BESIDE => Err(Malformed("the line before a chunk does not end")),
        Status::Partial => Ok(None),
    }
}

/// Skips what follows the last chunk, if it is there: it says nothing that anybody asked for.
fn skip_trailers(read: &mut BytesMut) -> Result<bool, Malformed> {
    let mut trailers = [EMPTY_HEADER; MOST_HEADERS];
    match httparse::parse_headers(read, &mut trailers) {
        Ok(Status::Complete((used, _))) => {
            read.advance(used);
            Ok(true)
        }
        Ok(Status::Partial) if read.len() <= MOST_BESIDE => Ok(false),
        _ => Err(Malformed("what follows the last chunk cannot be read")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, sample::Index};

    use super::*;

    /// The body of `sent`, read in pieces that end at `cuts`, and what is left over; none if it is not over.
    fn body(mut framing: Framing, sent: &[u8], cuts: &[usize]) -> Result<Option<[Vec<u8>; 2]>, Malformed> {
        let (mut read, mut body, mut from) = (BytesMut::new(), Vec::new(), 0);
        for to in cuts.iter().copied().chain([sent.len()]) {
            read.extend_from_slice(&sent[from..to]);
            from = to;
            loop {
                match framing.take(&mut read)? {
                    Taken::Data(data) => body.extend_from_slice(&data),
                    Taken::Nothing => break,
                    Taken::End => return Ok(Some([body, [&*read, &sent[from..]].concat()])),
                }
            }
        }
        Ok(None)
    }

    fn chunked(chunks: &[Vec<u8>], trailers: &str) -> Vec<u8> {
        let mut sent = Vec::new();
        for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
            sent.extend_from_slice(format!("{:X};part=\"1\"\r\n", chunk.len()).as_bytes());
            sent.extend_from_slice(chunk);
            sent.extend_from_slice(b"\r\n");
        }
        sent.extend_from_slice(format!("0\r\n{trailers}\r\n").as_bytes());
        sent
    }

    proptest! {
        #[test]
        fn a_body_is_the_same_wherever_it_was_cut(
            chunks: Vec<Vec<u8>>,
            trailers in prop_oneof![Just(""), Just("checksum: 1\r\nx: y\r\n")],
            cuts: Vec<Index>,
        ) {
            let (whole, next) = (chunks.concat(), b"HTTP/1.1".to_vec());
            let length = (Framing::Length(whole.len() as u64), whole.clone());
            for (framing, sent) in [length, (Framing::Chunked(Chunk::Size), chunked(&chunks, trailers))] {
                let sent = [sent, next.clone()].concat();
                let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(sent.len())).collect();
                cuts.sort_unstable();
                prop_assert_eq!(body(framing, &sent, &cuts), Ok(Some([whole.clone(), next.clone()])));
            }
        }
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        let long = format!("5;{}", "x".repeat(MOST_BESIDE));
        let trailers = format!("0\r\na: {}", "x".repeat(MOST_BESIDE));
        for sent in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "5\n",
            "3\r\nabcd\r\n",
            "11111111111111111\r\n",
            "0\r\nno\r\n\r\n",
            &long,
            &trailers,
        ] {
            body(Framing::Chunked(Chunk::Size), sent.as_bytes(), &[]).expect_err(sent);
        }
    }
}
