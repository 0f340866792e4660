//! Numbers and what stands between them in a text, eight bytes at once.

const SPACES: u64 = u64::from_le_bytes([b' '; 8]);
const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);
/// What brings the byte after a digit's to its top bit.
const SIXES: u64 = u64::from_le_bytes([0x76; 8]);
const TOPS: u64 = u64::from_le_bytes([0x80; 8]);
const TENS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// A text and how far it has been read.
pub struct Input<'a> {
    pub text: &'a [u8],
    pub at: usize,
}

impl Input<'_> {
    /// The next eight bytes, the first lowest; zeros behind the end.
    #[inline]
    fn eight(&self) -> u64 {
        let rest = &self.text[self.at..];
        match rest.get(..8) {
            Some(eight) => u64::from_le_bytes(eight.try_into().unwrap_or_default()),
            None => rest.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)),
        }
    }

    #[inline]
    pub fn space(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
            loop {
                let spaces = (self.eight() ^ SPACES).trailing_zeros() as usize / 8;
                self.at += spaces;
                if spaces < 8 {
                    break;
                }
            }
        }
    }

    pub fn exactly(&mut self, byte: u8) -> Option<()> {
        (self.text.get(self.at) == Some(&byte)).then(|| self.at += 1)
    }

    /// `byte` behind any space.
    pub fn after(&mut self, byte: u8) -> Option<()> {
        self.space();
        self.exactly(byte)
    }

    /// A whole number as JSON spells it, within 63 bits.
    #[inline]
    pub fn digits(&mut self) -> Option<u64> {
        let begin = self.at;
        let mut value = 0u64;
        loop {
            let eight = self.eight() ^ ZEROS;
            let count = ((eight.wrapping_add(SIXES) | eight) & TOPS).trailing_zeros() / 8;
            if count > 0 {
                value = value.wrapping_mul(TENS[count as usize]).wrapping_add(number(eight << (64 - 8 * count)));
                self.at += count as usize;
            }
            if count < 8 {
                break;
            }
            if self.at - begin > 16 {
                return None;
            }
        }
        let length = self.at - begin;
        (length == 1 || (length > 1 && length < 19 && self.text[begin] != b'0')).then_some(value)
    }
}

/// Eight digits, the first lowest, as a number: pairs, fours, all.
#[inline]
fn number(digits: u64) -> u64 {
    const ODD: u64 = 0x0000_00ff_0000_00ff;
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let high = (pairs & ODD).wrapping_mul(1_000_000 << 32 | 100);
    let low = ((pairs >> 16) & ODD).wrapping_mul(10_000 << 32 | 1);
    high.wrapping_add(low) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Option<u64>, usize) {
        let mut input = Input { text: text.as_bytes(), at: 0 };
        (input.digits(), input.at)
    }

    #[test]
    fn numbers_of_every_length_are_read_to_their_end() {
        let digits = "987654321012345678";
        for length in 1..=18 {
            for behind in ["", ",", " 55555555", "/", ":", "\u{80}", "a0000000"] {
                let text = format!("{}{behind}", &digits[..length]);
                assert_eq!(read(&text), (digits[..length].parse().ok(), length), "{text}");
            }
        }
        assert_eq!(read("0"), (Some(0), 1));
    }

    #[test]
    fn what_json_does_not_take_for_a_number_is_none() {
        for text in ["", "x", "-1", "00", "01", "1234567890123456789", "123456789012345678901234567890", "0123456789"] {
            assert_eq!(read(text).0, None, "{text}");
        }
    }

    #[test]
    fn space_of_every_length_is_passed() {
        for length in 0..40 {
            let text = format!("{}\r\n\t{}x", " ".repeat(length), " ".repeat(length));
            let mut input = Input { text: text.as_bytes(), at: 0 };
            assert!(input.after(b'x').is_some() && input.at == text.len());
        }
    }
}
