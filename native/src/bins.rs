//! The latency bins of fio's JSON+, nearly all of such a file, taken out of it in one pass.

use crate::input::Input;
use crate::tally::{bin, edges};

const KEY: &[u8] = b"\"bins\"";

/// More than a thousand hosts have.
const MOST: u32 = 100_000;

/// `text` with each of its histograms that has bins replaced by its number in brackets, which nothing else of fio's
/// JSON can be, `[0]` first; `found` gets each: the numbers of the bins that hold something, ascending, and their counts.
/// None where there is one that fio cannot have written, or an escape by which a key may be spelt otherwise.
pub fn take<E>(text: &[u8], mut found: impl FnMut(&[u16], &[u64]) -> Result<(), E>) -> Result<Option<Vec<u8>>, E> {
    let mut out = Vec::with_capacity(16 << 10);
    let (mut indexes, mut counts) = (Vec::new(), Vec::new());
    let (mut copied, mut at, mut number) = (0, 0, 0);
    while let Some(key) = find(text, at) {
        at = key + KEY.len();
        let mut input = Input { text, at };
        if input.after(b':').is_none() {
            continue; // a value
        }
        if key > 0 && text[key - 1] == b'\\' {
            return Ok(None); // the end of another key
        }
        out.extend_from_slice(&text[copied..input.at]);
        copied = input.at;
        match histogram(&mut input, &mut indexes, &mut counts) {
            None => return Ok(None),
            Some(false) => continue,
            Some(true) => {}
        }
        found(&indexes, &counts)?;
        out.extend_from_slice(format!("[{number}]").as_bytes());
        number += 1;
        if number > MOST {
            return Ok(None);
        }
        copied = input.at;
        at = copied;
    }
    out.extend_from_slice(&text[copied..]);
    Ok(if out.windows(2).any(|two| two == b"\\u") { None } else { Some(out) })
}

fn find(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += text.get(at..)?.iter().position(|byte| *byte == b'b')?;
        if at > from && text[at - 1..].starts_with(KEY) {
            return Some(at - 1);
        }
        at += 1;
    }
}

/// Whether the object here has bins; None where fio cannot have written it.
fn histogram(input: &mut Input, indexes: &mut Vec<u16>, counts: &mut Vec<u64>) -> Option<bool> {
    indexes.clear();
    counts.clear();
    input.after(b'{')?;
    if input.after(b'}').is_some() {
        return Some(false);
    }
    let mut least = 0;
    loop {
        input.after(b'"')?;
        let index = index_of(input.digits()?).filter(|index| *index >= least)?;
        input.exactly(b'"')?;
        input.after(b':')?;
        input.space();
        let count = input.digits()?;
        if count > 0 {
            indexes.push(index as u16);
            counts.push(count);
        }
        least = index + 1;
        if input.after(b',').is_none() {
            return input.after(b'}').map(|()| true);
        }
    }
}

/// The bin that fio calls by this latency in ns (`plat_idx_to_val` in fio's stat.c); None where it calls none so.
fn index_of(centre: u64) -> Option<usize> {
    let index = bin(centre);
    let (low, width) = edges(index);
    (low + if width > 1 { width / 2 } else { 0 } == centre).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::BINS;

    type Histograms = Vec<(Vec<u16>, Vec<u64>)>;

    fn taken(text: &str) -> Option<(String, Histograms)> {
        let mut all = Vec::new();
        let rest = take(text.as_bytes(), |indexes, counts| {
            all.push((indexes.to_vec(), counts.to_vec()));
            Ok::<(), ()>(())
        });
        rest.unwrap().map(|rest| (String::from_utf8(rest).unwrap(), all))
    }

    #[test]
    fn every_bin_is_found_with_its_count() {
        let mut text = String::from("{\"bins\" : ");
        let mut counts = Vec::new();
        for index in 0..BINS {
            let (low, width) = edges(index);
            let centre = low + if width > 1 { width / 2 } else { 0 };
            let count = 1u64 << (index % 59);
            text += &format!("{}\n            \"{centre}\" : {count}", if index == 0 { "{" } else { "," });
            counts.push(count);
        }
        let all = vec![((0..BINS as u16).collect(), counts)];
        assert_eq!(taken(&(text + "\n}, \"N\" : 1}")), Some(("{\"bins\" :[0], \"N\" : 1}".into(), all)));
    }

    #[test]
    fn several_are_numbered_and_empty_bins_left_out() {
        let text = "{\"a\":{\"bins\":{}},\"b\":{\"bins\":{ \"3\":0,\"5\" :7 , \"868\": 999999999999999999}},\"c\":{\"bins\":{\"7\":0}}}";
        let all = vec![(vec![5, 300], vec![7, 999_999_999_999_999_999]), (vec![], vec![])];
        let rest = "{\"a\":{\"bins\":{}},\"b\":{\"bins\":[0]},\"c\":{\"bins\":[1]}}";
        assert_eq!(taken(text), Some((rest.into(), all)));
    }

    #[test]
    fn what_fio_cannot_have_written_is_left_to_others() {
        for text in [
            "{\"1\" : -1}",
            "{\"1\" : 1.0}",
            "{\"1\" : 1e3}",
            "{\"01\" : 1}",
            "{\"1\" : 01}",
            "{\"1\" : \"1\"}",
            "{\"1\" : 1,}",
            "{\"1\" 1}",
            "{\"130\" : 1}",
            "{\"5\" : 1, \"5\" : 2}",
            "{\"5\" : 0, \"5\" : 2}",
            "{\"5\" : 1, \"3\" : 2}",
            "{\"1\" : 1000000000000000000000}",
            "{\"1\" : {}}",
            "[1]",
            "3",
            "\"a\"",
            "{\"1\" : 1",
            "{\"1\" : ",
            "{\"1",
            "{",
            "",
            "{ \"x\" : 1 }",
            "null",
            "{\"\" : 1}",
            "{\"1 \" : 1}",
            "{\"99999999999999\" : 1}",
        ] {
            assert_eq!(taken(&format!("{{\"bins\" : {{}}, \"bins\" : {text}")), None, "{text}");
        }
        assert_eq!(taken("{\"x\\\"bins\" : {\"1\" : 2}}"), None);
        assert_eq!(taken("{\"a\" : {\"bins\" : {\"1\" : 2}}, \"b\\u0069ns\" : [0]}"), None);
    }

    #[test]
    fn only_the_key_is_taken_for_one() {
        for text in ["", "b", "bins", "\"bins", "\"bins\"", "[\"bins\", {\"1\" : 2}]", "{\"Bins\" : {\"1\" : 2}}"] {
            assert_eq!(taken(text), Some((text.into(), vec![])));
        }
    }
}
