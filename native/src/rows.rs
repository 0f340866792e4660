//! The rows of fio's bw, iops and latency logs.

use crate::input::Input;

/// Columns that say something of every row: time, value, direction and block size.
pub const COLUMNS: usize = 4;

/// These columns of all rows in `text`, each number as eight bytes of this machine's order; the last two stand `shift`
/// columns further on. None where a row is not as fio writes it.
pub fn take(text: &[u8], shift: usize) -> Option<[Vec<u8>; COLUMNS]> {
    let mut columns: [Vec<u8>; COLUMNS] = Default::default();
    for column in &mut columns {
        column.reserve(text.len() / 4);
    }
    let mut input = Input { text, at: 0 };
    while input.at < text.len() {
        for (place, column) in columns.iter_mut().enumerate() {
            let passed = if place == 2 { shift } else { 0 };
            for _ in 0..passed {
                number(&mut input)?;
                input.exactly(b',')?;
            }
            column.extend_from_slice(&number(&mut input)?.to_ne_bytes());
            if place + 1 < COLUMNS {
                input.exactly(b',')?;
            }
        }
        let more = input.exactly(b',').is_some();
        let end = text[input.at..].iter().position(|byte| *byte == b'\n').unwrap_or(text.len() - input.at);
        if !more && end > 0 && &text[input.at..input.at + end] != b"\r" {
            return None;
        }
        input.at = (input.at + end + 1).min(text.len());
    }
    Some(columns)
}

/// One number, blanks before it.
fn number(input: &mut Input) -> Option<u64> {
    while input.exactly(b' ').is_some() {}
    input.digits()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str, shift: usize) -> Option<Vec<Vec<u64>>> {
        let columns = take(text.as_bytes(), shift)?;
        let number = |eight: &[u8]| u64::from_ne_bytes(eight.try_into().unwrap());
        Some(columns.iter().map(|column| column.chunks(8).map(number).collect()).collect())
    }

    #[test]
    fn rows_of_every_fio_are_read() {
        let rows = vec![vec![1, 20], vec![7, 8_123_456_789], vec![0, 1], vec![4096, 512]];
        for text in [
            "1, 7, 0, 4096\n20, 8123456789, 1, 512\n",
            "1, 7, 0, 4096, 81920\n20, 8123456789, 1, 512, 0, 0x4001",
            "1,7,0,4096\r\n  20,8123456789,1,512\r\n",
        ] {
            assert_eq!(taken(text, 0), Some(rows.clone()), "{text}");
        }
        assert_eq!(taken("1, 7, 9, 0, 4096\n20, 8123456789, 1, 1, 512\n", 1), Some(rows));
        assert_eq!(taken("", 0), Some(vec![vec![]; 4]));
    }

    #[test]
    fn other_rows_are_left_to_others() {
        for text in [
            "1, 2, 0\n",
            "1, 2, 0, \n",
            "1, 2, 0, 4096 x\n",
            "1, 2, 0, 4096\n\n",
            "1, -2, 0, 4096\n",
            "1, 2.5, 0, 4096\n",
            "1; 2; 0; 4096\n",
            "1, 2, 0, 4096\n5, 6",
            "1 , 2, 0, 4096\n",
            "1, 12345678901234567890, 0, 4096\n",
            "time, value, 0, 4096\n",
        ] {
            assert_eq!(taken(text, 0), None, "{text}");
        }
    }
}
