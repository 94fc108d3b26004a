//! The text of a page, whatever character set it is in.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::Encoding;

/// Bytes of a page in which browsers look for its declared encoding.
const META_BYTES_MAX: usize = 1024;

/// Decodes text. A byte order mark counts first, then the header, then what the page says of itself, then a guess.
pub(crate) fn decode(bytes: &[u8], header: Option<&str>, is_html: bool) -> String {
    let named = header
        .and_then(of_header)
        .or_else(|| of_meta(bytes).filter(|_| is_html));
    let encoding = named.unwrap_or_else(|| guess(bytes));
    // This looks for a byte order mark first.
    let (text, _, _) = encoding.decode(bytes);
    text.into_owned()
}

/// `text/html; charset=utf-8`
fn of_header(content_type: &str) -> Option<&'static Encoding> {
    let parameters = content_type.split(';').skip(1);
    let mut charsets = parameters.filter_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| value.trim().trim_matches(['"', '\'']))
    });
    Encoding::for_label(charsets.next()?.as_bytes())
}

/// `<meta charset="utf-8">`, and `<meta http-equiv="Content-Type" content="text/html; charset=utf-8">`.
fn of_meta(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes.get(..META_BYTES_MAX).unwrap_or(bytes);
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let mut tags = head.split("<meta").skip(1);
    tags.find_map(|tag| {
        let tag = tag.split('>').next()?;
        let (_, rest) = tag.split_once("charset")?;
        let value = rest.trim_start().strip_prefix('=')?;
        let value = value.trim_start().trim_start_matches(['"', '\'']);
        let end = value.find(['"', '\'', ';', ' ', '/']);
        let label = value.get(..end.unwrap_or(value.len()))?;
        Encoding::for_label(label.as_bytes())
    })
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    detector.guess(None, Utf8Detection::Allow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sign_of_a_character_set_counts_in_its_order() {
        let latin = b"caf\xe9";
        assert_eq!(
            decode(latin, Some("text/html; Charset=\"ISO-8859-1\""), true),
            "café"
        );
        assert_eq!(
            decode(
                "\u{feff}café".as_bytes(),
                Some("text/html; charset=latin1"),
                true
            ),
            "café"
        );
        let meta = b"<meta charset=windows-1252><p>caf\xe9";
        assert_eq!(
            decode(meta, None, true),
            "<meta charset=windows-1252><p>café"
        );
        let meta = b"<META http-equiv=x content='text/html; charset=windows-1251'>\xcf\xf0";
        assert!(decode(meta, None, true).ends_with("Пр"));
        let utf16 = [0xff, 0xfe, b'a', 0, 0xe9, 0];
        assert_eq!(decode(&utf16, None, false), "aé");
        assert_eq!(
            decode("日本語のテキスト".as_bytes(), None, false),
            "日本語のテキスト"
        );
        let shift_jis = b"\x93\xfa\x96{\x8c\xea\x82\xcc\x83e\x83L\x83X\x83g\x82\xc5\x82\xb7";
        assert_eq!(decode(shift_jis, None, false), "日本語のテキストです");
    }

    #[test]
    fn a_name_that_is_none_leads_to_a_guess() {
        let header = Some("text/plain; charset=no-such");
        assert_eq!(decode("né".as_bytes(), header, false), "né");
    }
}
