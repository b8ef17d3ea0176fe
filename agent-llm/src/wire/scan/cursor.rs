//! A place in JSON text, and the ways on from there.

use std::borrow::Cow;

use super::GaveUp;

/// A place in JSON text.
///
/// It goes on only over what it is sure of. Whatever else it meets, be it no JSON at all, makes it give up.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    /// How many more objects and lists it may enter.
    depth: u8,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 64 }
    }

    /// The next byte that is no white space; 0 at the end.
    #[inline]
    pub(super) fn peek(&mut self) -> u8 {
        while let Some(byte) = self.text.as_bytes().get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return *byte;
            }
            self.at += 1;
        }
        0
    }

    /// Goes past `byte`, which must be the next one but for white space.
    #[inline]
    pub(super) fn take(&mut self, byte: u8) -> Result<(), GaveUp> {
        if self.peek() != byte {
            return Err(GaveUp);
        }
        self.at += 1;
        Ok(())
    }

    /// Goes into an object or a list, which begins with `open`.
    #[inline]
    pub(super) fn enter(&mut self, open: u8) -> Result<(), GaveUp> {
        self.depth = self.depth.checked_sub(1).ok_or(GaveUp)?;
        self.take(open)
    }

    /// Goes out of what it entered.
    #[inline]
    pub(super) fn leave(&mut self, close: u8) -> Result<(), GaveUp> {
        self.depth += 1;
        self.take(close)
    }

    /// Goes to the next item of an object or a list; false at its end.
    #[inline]
    pub(super) fn next_item(&mut self, first: bool, close: u8) -> Result<bool, GaveUp> {
        match self.peek() {
            byte if byte == close => return Ok(false),
            b',' if !first => self.at += 1,
            _ if first => {}
            _ => return Err(GaveUp),
        }
        // A comma must not stand before the end.
        if self.peek() == close { Err(GaveUp) } else { Ok(true) }
    }

    /// Goes past `word`, such as `null`.
    pub(super) fn word(&mut self, word: &str) -> Result<(), GaveUp> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(GaveUp);
        }
        self.at += word.len();
        Ok(())
    }

    /// Reads a string. It is borrowed if it has no escapes.
    #[inline]
    pub(super) fn string(&mut self) -> Result<Cow<'a, str>, GaveUp> {
        self.take(b'"')?;
        let start = self.at;
        self.at = self.plain_end();
        if self.text.as_bytes().get(self.at) == Some(&b'"') {
            self.at += 1;
            return Ok(Cow::Borrowed(&self.text[start..self.at - 1]));
        }
        self.at = start;
        let mut text = String::new();
        self.unescape(&mut text)?;
        Ok(Cow::Owned(text))
    }

    /// Reads the rest of a string, behind its quote, to the end of `text`.
    pub(super) fn unescape(&mut self, text: &mut String) -> Result<(), GaveUp> {
        loop {
            let start = self.at;
            self.at = self.plain_end();
            text.push_str(&self.text[start..self.at]);
            match self.next_byte()? {
                b'"' => return Ok(()),
                b'\\' => text.push(self.escaped()?),
                _ => return Err(GaveUp),
            }
        }
    }

    /// What an escape stands for, behind its backslash.
    fn escaped(&mut self) -> Result<char, GaveUp> {
        Ok(match self.next_byte()? {
            byte @ (b'"' | b'\\' | b'/') => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let unit = self.hex()?;
                let low = if (0xd800..0xdc00).contains(&unit) {
                    self.word("\\u")?;
                    Some(self.hex()?)
                } else {
                    None
                };
                let units = std::iter::once(unit).chain(low);
                char::decode_utf16(units).next().ok_or(GaveUp)?.map_err(|_| GaveUp)?
            }
            _ => return Err(GaveUp),
        })
    }

    /// Four hexadecimal digits.
    fn hex(&mut self) -> Result<u16, GaveUp> {
        (0..4).try_fold(0, |unit, _| {
            let digit = char::from(self.next_byte()?).to_digit(16).ok_or(GaveUp)?;
            Ok(unit << 4 | digit as u16)
        })
    }

    fn next_byte(&mut self) -> Result<u8, GaveUp> {
        let byte = *self.text.as_bytes().get(self.at).ok_or(GaveUp)?;
        self.at += 1;
        Ok(byte)
    }

    /// The end of the plain text that begins here: the place of a quote, of a backslash, of a control character, or the end.
    #[inline]
    fn plain_end(&self) -> usize {
        /// Most strings are short: names, ids, kinds.
        const SHORT: usize = 24;
        let (bytes, mut at) = (self.text.as_bytes(), self.at);
        while let Some(byte) = bytes.get(at) {
            if STOPS[usize::from(*byte)] {
                return at;
            }
            at += 1;
            if at - self.at == SHORT {
                return at + plain_len(&bytes[at..]);
            }
        }
        at
    }

    /// Goes past a value of any kind, and gives its text.
    #[inline]
    pub(super) fn skip(&mut self) -> Result<&'a str, GaveUp> {
        self.peek();
        let start = self.at;
        self.pass()?;
        Ok(&self.text[start..self.at])
    }

    /// The text since `start`, a place that [`Self::place`] gave.
    #[inline]
    pub(super) fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.at]
    }

    /// Where the next value begins.
    #[inline]
    pub(super) fn place(&mut self) -> usize {
        self.peek();
        self.at
    }

    fn pass(&mut self) -> Result<(), GaveUp> {
        match self.peek() {
            b'"' => self.pass_string(),
            b'{' => self.pass_items(b'{', b'}'),
            b'[' => self.pass_items(b'[', b']'),
            b'n' => self.word("null"),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            _ => self.number().map(drop),
        }
    }

    fn pass_items(&mut self, open: u8, close: u8) -> Result<(), GaveUp> {
        self.enter(open)?;
        let mut first = true;
        while self.next_item(first, close)? {
            first = false;
            if open == b'{' {
                self.pass_string()?;
                self.take(b':')?;
            }
            self.pass()?;
        }
        self.leave(close)
    }

    fn pass_string(&mut self) -> Result<(), GaveUp> {
        self.take(b'"')?;
        loop {
            self.at = self.plain_end();
            match self.next_byte()? {
                b'"' => return Ok(()),
                b'\\' => match self.next_byte()? {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                    b'u' => drop(self.hex()?),
                    _ => return Err(GaveUp),
                },
                _ => return Err(GaveUp),
            }
        }
    }

    /// Goes past a number, and gives its text.
    pub(super) fn number(&mut self) -> Result<&'a str, GaveUp> {
        let start = self.place();
        let byte = |at: usize| self.text.as_bytes().get(at).copied().unwrap_or(0);
        let digits = |at: usize| at + self.text.as_bytes()[at..].iter().take_while(|b| b.is_ascii_digit()).count();
        let whole = start + usize::from(byte(start) == b'-');
        let mut end = digits(whole);
        if end == whole || (byte(whole) == b'0' && end > whole + 1) {
            return Err(GaveUp);
        }
        if byte(end) == b'.' {
            let fraction = end + 1;
            end = digits(fraction);
            if end == fraction {
                return Err(GaveUp);
            }
        }
        if matches!(byte(end), b'e' | b'E') {
            let exponent = end + 1 + usize::from(matches!(byte(end + 1), b'+' | b'-'));
            end = digits(exponent);
            if end == exponent {
                return Err(GaveUp);
            }
        }
        self.at = end;
        Ok(&self.text[start..end])
    }
}

/// The bytes at which plain text ends.
static STOPS: [bool; 256] = {
    let mut stops = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        stops[byte] = true;
        byte += 1;
    }
    stops[b'"' as usize] = true;
    stops[b'\\' as usize] = true;
    stops
};

/// How many of the bytes come before one of [`STOPS`].
fn plain_len(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The high bit of a byte becomes 1 where the byte is below `limit`. A borrow can only make mistakes behind the first.
        let below = |bytes: u64, limit: u64| bytes.wrapping_sub(ONES * limit) & !bytes;
        let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
        let stops = (below(word, 0x20) | equal(b'"') | equal(b'\\')) & (ONES << 7);
        if stops != 0 {
            return at * 8 + stops.trailing_zeros() as usize / 8;
        }
    }
    let stop = rest.iter().position(|byte| STOPS[usize::from(*byte)]);
    bytes.len() - rest.len() + stop.unwrap_or(rest.len())
}
