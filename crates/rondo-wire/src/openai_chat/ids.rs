use std::borrow::Cow;

/// Characters of an id that Mistral takes.
const ID_CHARS: usize = 9;

/// The alphabet of such an id.
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Returns `id` if it is nine characters of `[A-Za-z0-9]`, else one made from it: the same for the
/// same id, and different for different ones but for a collision of 53 bits.
pub(super) fn nine_chars(id: &str) -> Cow<'_, str> {
    let fits = id.len() == ID_CHARS && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if fits {
        return Cow::Borrowed(id);
    }
    let mut rest = fnv1a(id.as_bytes());
    let mut made = String::with_capacity(ID_CHARS);
    for _ in 0..ID_CHARS {
        let digit = usize::try_from(rest % 62).unwrap_or(0);
        made.push(char::from(ALPHABET.get(digit).copied().unwrap_or(b'0')));
        rest /= 62;
    }
    Cow::Owned(made)
}

/// The 64-bit FNV-1a hash, http://www.isthe.com/chongo/tech/comp/fnv/.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
