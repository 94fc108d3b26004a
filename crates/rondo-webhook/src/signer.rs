//! Signatures by Standard Webhooks: HMAC-SHA256 over `id.time.body`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use rondo_http::Secret;
use sha2::Sha256;
use std::fmt;

/// The replay window: how far a request's time may be from ours, in seconds. An older one is not taken.
pub(crate) const TOLERANCE_SECONDS: u64 = 5 * 60;
/// Prefix of a secret.
const PREFIX: &str = "whsec_";
/// The bounds on the key in a secret, in bytes.
const KEY_BYTES_MIN: usize = 24;
const KEY_BYTES_MAX: usize = 64;
/// The version of the signatures.
const VERSION: &str = "v1";
/// The bound on an id, in bytes.
const ID_BYTES_MAX: usize = 120;
/// Signatures of a request that are looked at: there are several while a secret is replaced.
const SIGNATURES_MAX: usize = 8;

/// Signs requests, and checks signatures.
#[derive(Clone)]
pub struct Signer(Hmac<Sha256>);

/// The headers of a signed request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Signed {
    /// `webhook-id`: the same for each attempt.
    pub id: String,
    /// `webhook-timestamp`: seconds since 1970.
    pub timestamp: String,
    /// `webhook-signature`: signatures, separated by spaces.
    pub signature: String,
}

/// Why a text is not a secret. It does not contain the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is not a webhook secret: `whsec_` and the base64 of 24 to 64 random bytes; `echo whsec_$(openssl rand -base64 32)` makes one"
)]
pub struct SignatureError;

/// Why a request is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureRejection {
    /// A header is missing or malformed.
    #[error("the headers `webhook-id`, `webhook-timestamp` and `webhook-signature` are needed")]
    Headers,
    /// Its time is too far from ours.
    #[error("`webhook-timestamp` is more than 5 minutes from now")]
    Time,
    /// No signature is one of this secret's.
    #[error("the signature is wrong")]
    Signature,
}

impl Signer {
    /// Takes a secret, such as `whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw`.
    ///
    /// # Errors
    /// When it is none, or too short to be one: an empty key would let anyone sign.
    pub fn new(secret: &Secret) -> Result<Self, SignatureError> {
        let text = secret.expose();
        let text = text.strip_prefix(PREFIX).unwrap_or(text);
        let key = STANDARD.decode(text).map_err(|_| SignatureError)?;
        if !(KEY_BYTES_MIN..=KEY_BYTES_MAX).contains(&key.len()) {
            return Err(SignatureError);
        }
        let mac = Hmac::new_from_slice(&key).map_err(|_| SignatureError)?;
        Ok(Self(mac))
    }

    /// Signs a body that is sent under an id at a time, in seconds since 1970.
    #[must_use]
    pub fn sign(&self, id: &str, seconds: u64, body: &[u8]) -> Signed {
        let timestamp = seconds.to_string();
        let mac = self.over(id, &timestamp, body).finalize().into_bytes();
        Signed {
            id: id.to_owned(),
            signature: format!("{VERSION},{}", STANDARD.encode(mac)),
            timestamp,
        }
    }

    /// Checks a request. Signatures are compared in constant time.
    ///
    /// # Errors
    /// When the headers, the time or the signature are not valid.
    pub fn verify(
        &self,
        signed: &Signed,
        now_seconds: u64,
        body: &[u8],
    ) -> Result<(), SignatureRejection> {
        let is_id = (1..=ID_BYTES_MAX).contains(&signed.id.len())
            && signed
                .id
                .bytes()
                .all(|it| it.is_ascii_graphic() && it != b'.');
        // Digits alone, so that what was signed is what was read.
        let digits = Some(&signed.timestamp).filter(|it| it.bytes().all(|it| it.is_ascii_digit()));
        let seconds: Option<u64> = digits.and_then(|it| it.parse().ok());
        let seconds = seconds
            .filter(|_| is_id)
            .ok_or(SignatureRejection::Headers)?;
        if seconds.abs_diff(now_seconds) > TOLERANCE_SECONDS {
            return Err(SignatureRejection::Time);
        }
        let signatures = signed.signature.split(' ').take(SIGNATURES_MAX);
        let ours = signatures.filter_map(|it| it.strip_prefix(VERSION)?.strip_prefix(','));
        let is_signed = |text: &str| {
            let mac = self.over(&signed.id, &signed.timestamp, body);
            STANDARD
                .decode(text)
                .is_ok_and(|it| mac.verify_slice(&it).is_ok())
        };
        match ours.into_iter().any(is_signed) {
            true => Ok(()),
            false => Err(SignatureRejection::Signature),
        }
    }

    fn over(&self, id: &str, timestamp: &str, body: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            mac.update(part);
        }
        mac
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer([redacted])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Secret, id, time, body and signature as the specification's own libraries test them.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const TIME: u64 = 1_614_265_330;
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    fn signer() -> Signer {
        Signer::new(&Secret::new(SECRET)).unwrap()
    }

    #[test]
    fn it_signs_as_the_specification_does() {
        let signed = signer().sign(ID, TIME, BODY);
        assert_eq!(signed.signature, SIGNATURE);
        assert_eq!(signer().verify(&signed, TIME, BODY), Ok(()));
    }

    #[test]
    fn an_empty_or_short_key_is_refused() {
        for secret in [
            "",
            "whsec_",
            "whsec_AAAA",
            "whsec_$$$",
            "plain text",
            "whsec_YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE=",
        ] {
            assert_eq!(
                Signer::new(&Secret::new(secret)).err(),
                Some(SignatureError),
                "{secret}"
            );
        }
        assert_eq!(format!("{:?}", signer()), "Signer([redacted])");
    }

    #[test]
    fn anything_that_was_changed_is_refused() {
        let good = signer().sign(ID, TIME, BODY);
        let change = |change: &dyn Fn(&mut Signed)| {
            let mut signed = good.clone();
            change(&mut signed);
            signer().verify(&signed, TIME, BODY)
        };
        assert_eq!(
            change(&|it| it.id = "msg_other".to_owned()),
            Err(SignatureRejection::Signature)
        );
        assert_eq!(
            change(&|it| it.timestamp = (TIME + 1).to_string()),
            Err(SignatureRejection::Signature)
        );
        assert_eq!(
            change(&|it| it.signature = it.signature.replace("v1,", "v2,")),
            Err(SignatureRejection::Signature)
        );
        assert_eq!(
            change(&|it| it.signature.truncate(20)),
            Err(SignatureRejection::Signature)
        );
        for header in ["", "+1614265330", " 1614265330", "99999999999999999999999"] {
            assert_eq!(
                change(&|it| it.timestamp = header.to_owned()),
                Err(SignatureRejection::Headers),
                "{header}"
            );
        }
        for header in [
            String::new(),
            "a.b".to_owned(),
            "a b".to_owned(),
            "x".repeat(121),
        ] {
            assert_eq!(
                change(&|it| it.id.clone_from(&header)),
                Err(SignatureRejection::Headers),
                "{header}"
            );
        }
        assert_eq!(
            signer().verify(&good, TIME, b"{}"),
            Err(SignatureRejection::Signature)
        );
        let other = Signer::new(&Secret::new("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")).unwrap();
        assert_eq!(
            other.verify(&good, TIME, BODY),
            Err(SignatureRejection::Signature)
        );
    }

    #[test]
    fn a_request_is_good_for_five_minutes_either_way() {
        let signed = signer().sign(ID, TIME, BODY);
        for (now, expected) in [
            (TIME + 300, Ok(())),
            (TIME - 300, Ok(())),
            (TIME + 301, Err(SignatureRejection::Time)),
            (TIME - 301, Err(SignatureRejection::Time)),
            (0, Err(SignatureRejection::Time)),
        ] {
            assert_eq!(signer().verify(&signed, now, BODY), expected, "{now}");
        }
    }

    #[test]
    fn one_good_signature_of_several_is_enough() {
        let mut signed = signer().sign(ID, TIME, BODY);
        signed.signature = format!("v1,AAAA v1a,xx {}", signed.signature);
        assert_eq!(signer().verify(&signed, TIME, BODY), Ok(()));
        signed.signature = format!("{}{}", "v1,AAAA ".repeat(8), signed.signature);
        assert_eq!(
            signer().verify(&signed, TIME, BODY),
            Err(SignatureRejection::Signature)
        );
    }
}
